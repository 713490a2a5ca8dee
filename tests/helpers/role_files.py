# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The programs and modules that roles bring to the nodes, as Python modules."""

import importlib.util
from pathlib import Path

from ansible.module_utils.scalebook.workloads import load_workloads

ROLES = Path(__file__).resolve().parents[2] / "roles"


def load(role, name):
    """Return a program or module of a role as a new Python module; of role workload, one of its kit."""
    folders = ("files/kit",) if role == "workload" else ("files", "library")
    paths = [ROLES / role / folder / f"{name}.py" for folder in folders]
    [path] = [path for path in paths if path.exists()]
    spec = importlib.util.spec_from_file_location(f"{role}_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def declaration(role):
    """Return the declaration of a workload, `meta/workload.yml` with what load_workloads adds."""
    return load_workloads([str(ROLES)])[role]
