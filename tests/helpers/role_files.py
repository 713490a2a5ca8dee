# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The programs and modules that roles bring to the nodes, as Python modules."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from ansible.module_utils.scalebook.workloads import load_workloads

ROLES = Path(__file__).resolve().parents[2] / "roles"
KIT = ROLES / "workload/files/kit"
WORKLOADS = load_workloads([str(ROLES)])
FRAMEWORKS = sorted({each.install["framework"] for each in WORKLOADS.values() if "framework" in each.install})
BESIDE = [str(KIT), *(str(ROLES / name / "files") for name in FRAMEWORKS)]


def load(role, name):
    """Return a program or module of a role as a new Python module; of role workload, one of its kit.

    It finds the modules that are beside it on a node: those of the role, of the kit, and of its framework.
    """
    folders = ("files/kit",) if role == "workload" else ("files", "library")
    paths = [ROLES / role / folder / f"{name}.py" for folder in folders]
    [path] = [path for path in paths if path.exists()]
    spec = importlib.util.spec_from_file_location(f"{role}_{name}", path)
    module = importlib.util.module_from_spec(spec)
    beside = [str(path.parent), *BESIDE]
    sys.path[:0] = beside
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.path[: len(beside)]
    return module


def run(role, name, *words):
    """Run a program of a role (of role workload, one of its kit) beside the kit; return how it ended."""
    path = KIT / name if role == "workload" else ROLES / role / "files" / name
    argv = [sys.executable, str(path), *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(BESIDE)}
    return subprocess.run(argv, capture_output=True, text=True, env=environment, check=False)


def declaration(role):
    """Return a workload."""
    return load_workloads([str(ROLES)])[role]
