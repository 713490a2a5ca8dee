# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A program of a role imports no program of a role whose files its node need not have."""

import ast

import pytest
from role_files import ROLES

# Whose programs others may import; scripts/types.sh has them too.
SHARED = (
    "workload/files/kit",
    "horovod/files",
    "microbench/files",
    "mxnet/files",
    "oneflow/files",
    "paddle/files",
    "pytorch/files",
    "transformers/files",
)
PROGRAMS = sorted(ROLES.glob("*/files/*.py")) + sorted(ROLES.glob("*/files/kit/*.py"))
NAMES = {path.stem for path in PROGRAMS}


def imported(text):
    """Return the first parts of the names of the modules that a program imports."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: str(path.relative_to(ROLES)))
def test_a_program_imports_its_own_roles_and_what_is_shared(path):
    places = [path.parent, *(ROLES / place for place in SHARED)]
    there = {other.stem for place in places for other in place.glob("*.py")}
    assert imported(path.read_text()) & NAMES - there == set()


def test_the_runs_of_mypy_know_the_same_places():
    text = (ROLES.parent / "scripts/types.sh").read_text()
    assert f'shared="{" ".join(f"roles/{place}" for place in SHARED)}"' in text
