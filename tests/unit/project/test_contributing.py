# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""CONTRIBUTING.md shows a workload, the smallest one, whole and as it is."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
ROLE = ROOT / "roles/oneflow_wide_deep"
MADE = {"README.md", "__pycache__"}
FILES = sorted(str(path.relative_to(ROLE)) for path in ROLE.rglob("*.*") if not MADE & set(path.parts))
SECTION = (
    (ROOT / "CONTRIBUTING.md").read_text().partition("## Add a workload\n")[2].partition("\n## Tests\n")[0]
)
SHOWN = dict(
    re.findall(r"^### `([^`]+)`\n(?:(?!^### ).*\n)*?```\w+\n((?:.*\n)*?)```\n", SECTION, re.MULTILINE)
)


def test_a_workload_needs_eight_files_at_most():
    assert len(FILES) <= 8


def test_every_file_of_the_workload_is_shown():
    assert sorted(SHOWN) == FILES


def test_the_files_are_shown_as_they_are():
    assert [name for name in FILES if SHOWN[name] != (ROLE / name).read_text()] == []
