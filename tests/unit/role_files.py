# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The programs that roles bring to the nodes, as modules."""

import importlib.util
from pathlib import Path

ROLES = Path(__file__).resolve().parents[2] / "roles"


def load(role, name):
    """Return `files/<name>.py` of a role as a new module."""
    path = ROLES / role / "files" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"{role}_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
