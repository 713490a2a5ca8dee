# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Roles share through their public variables and through role workload, and never ask which workload runs."""

import re
from pathlib import Path

import pytest

ROLES = Path(__file__).resolve().parents[3] / "roles"
NAMES = sorted(path.name for path in ROLES.iterdir() if path.is_dir())
# A comparison of the workload (framework) that was asked for.
SWITCH = re.compile(r"(?<![\w.])(framework|workload|__campaign_framework)\b[^}\n]*?[=!]=")


def texts():
    """Yield (role, file, text) of the tasks, variables and templates of the roles."""
    for name in NAMES:
        for part in ("defaults", "vars", "tasks", "templates", "handlers"):
            for path in sorted((ROLES / name / part).rglob("*")):
                if path.is_file():
                    yield name, path.relative_to(ROLES), path.read_text()


def owner(variable):
    """Return the role whose prefix an internal variable has, the one with the longest name, or None."""
    return max((n for n in NAMES if variable.startswith(f"__{n}_")), key=len, default=None)


def test_no_symlink_leads_out_of_a_role():
    links = [path for path in ROLES.rglob("*") if path.is_symlink()]
    assert [
        str(link) for link in links if ROLES / link.relative_to(ROLES).parts[0] not in link.resolve().parents
    ] == []


def test_no_role_uses_an_internal_variable_of_another():
    foreign = [
        f"{path}: {variable}"
        for role, path, text in texts()
        for variable in re.findall(r"(?<!\w)__[a-z]\w*", text)
        if owner(variable) not in (None, role)
    ]
    assert foreign == []


def test_no_role_asks_which_workload_runs():
    assert [f"{path}: {match[0]}" for _, path, text in texts() for match in SWITCH.finditer(text)] == []


@pytest.mark.parametrize(
    "line", ["when: framework == 'tf2_bert'", "{{ 1 if workload | default('x') != 'y' }}"]
)
def test_such_a_question_would_be_found(line):
    assert SWITCH.search(line)
