# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Files that are made from other files are current; made again by: .venv/bin/python scripts/pages."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts"))

from generated import everything, text  # noqa: E402

FILES = everything.files()


@pytest.mark.parametrize("name", FILES)
def test_a_generated_file_is_current(name):
    path = ROOT / name
    assert path.exists() and path.read_text() == FILES[name], "run: .venv/bin/python scripts/pages"


def test_every_role_has_a_readme_and_metadata():
    roles = {path.name for path in (ROOT / "roles").iterdir() if path.is_dir()}
    assert {name.split("/")[1] for name in FILES if name.endswith("/README.md")} == roles
    assert {name.split("/")[1] for name in FILES if name.endswith("/meta/main.yml")} == roles


@pytest.mark.parametrize(
    ("ansible", "markdown"),
    [
        ("Default is C(data) below O(torch_bert_home).", "Default is `data` below `torch_bert_home`."),
        ("with O(main:torch_bert_for=x)", "with `torch_bert_for=x`"),
        ("as role P(telemetry#role) installs it", "as role `telemetry` installs it"),
        ("C(openmpi-<version>) below <home>", "`openmpi-<version>` below &lt;home>"),
    ],
)
def test_the_markup_of_ansible_becomes_markdown(ansible, markdown):
    assert text.markdown(ansible) == markdown


def test_a_bar_does_not_end_a_cell():
    assert text.table(("a",), [("x | y",)]) == "| a |\n|---|\n| x \\| y |\n"
