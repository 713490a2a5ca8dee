# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Ansible sends the same files with a module, whether it parses a source or the imports that are kept."""

import ast
import sys
from pathlib import Path

import ansible.modules
import module_imports
import pytest
from ansible.executor.module_common import ModuleDepFinder

ROOT = Path(__file__).resolve().parents[3]
ANSIBLES = [Path(ansible.modules.__path__[0]) / f"{name}.py" for name in ("apt", "copy", "setup", "systemd")]
SOURCES = [*ANSIBLES, *sorted(ROOT.glob("library/*.py")), *sorted(ROOT.glob("module_utils/scalebook/*.py"))]


@pytest.fixture(autouse=True)
def kept(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "prefix", str(tmp_path))


def found(source):
    finder = ModuleDepFinder("ansible.module_utils.scalebook.any", ast.parse(source))
    return finder.submodules, finder.optional_imports


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_ansible_finds_the_same_imports(path):
    source = path.read_bytes()
    assert found(module_imports.imports_of(source)) == found(source)
    assert found(module_imports.imports_of(source)) == found(source), "read again"


def test_an_optional_import_stays_optional():
    source = "try:\n    from ansible.module_utils.some import thing\nexcept ImportError:\n    thing = None\n"
    assert found(module_imports.imports_of(source))[1] == {("ansible", "module_utils", "some", "thing")}


def test_a_source_that_cannot_be_parsed_is_left_to_ansible():
    assert module_imports.imports_of(b"def (") == b"def ("
