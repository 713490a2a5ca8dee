# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What pip installs has a hash, and so has what builds it."""

import re

import pytest
import yaml
from role_files import ROLES

ROOT = ROLES.parent
LOCKS = sorted(ROLES.glob("*/files/*.txt")) + sorted(ROOT.glob("requirements*.txt"))
BUILD = ROLES / "python/files/build.txt"
# The lines of a package: its name, and all that belongs to it.
ENTRY = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==((?:.*\\\n)*.*)$", re.MULTILINE)
# The only packages that are built on the nodes; each was looked up: the index has no wheel of it.
SOURCES = {"promise", "gast", "deepspeed"}


def entries(path):
    """Return {name: its lines} of a lock."""
    return dict(ENTRY.findall(path.read_text()))


def built(path):
    """Return the names that a lock lets pip build."""
    return set(re.findall(r"^--no-binary (\S+)$", path.read_text(), re.MULTILINE))


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_package_of_a_lock_has_a_hash(path):
    assert [name for name, lines in entries(path).items() if "--hash=sha256:" not in lines] == []


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_lock_names_what_is_built_and_has_no_other_option(path):
    options = re.findall(r"^--?\w.*$", path.read_text(), re.MULTILINE)
    assert options == [f"--no-binary {name}" for name in built(path)]
    assert built(path) <= SOURCES & set(entries(path))


def test_each_package_that_is_built_is_built_somewhere():
    assert set().union(*map(built, LOCKS)) == SOURCES


def test_what_builds_packages_is_of_every_python_that_a_lock_is_for():
    text = BUILD.read_text()
    for name in ("setuptools", "wheel"):
        marks = re.findall(rf"^{name}==\S+ ; python_version (\S+ '\S+') \\$", text, re.MULTILINE)
        assert marks == ["== '3.7'", "== '3.8'", ">= '3.9'"]


def calls():
    """Yield each file that calls pip with a lock, and its text without comments."""
    files = [*ROLES.glob("*/*/*.yml"), *ROLES.glob("*/library/*.py"), ROOT / "scripts/lib.sh"]
    for path in sorted(files):
        text = re.sub(r"^ *#.*$", "", path.read_text(), flags=re.MULTILINE)
        if "--require-hashes" in text:
            yield path, text


@pytest.mark.parametrize(("path", "text"), list(calls()), ids=lambda value: getattr(value, "name", ""))
def test_pip_builds_nothing_that_a_lock_does_not_name(path, text):
    assert re.search(r"--only-binary\W+:all:", text) or "--no-binary=:all:" in text


def test_the_arguments_of_pip_in_the_variables_of_roles_are_texts():
    """YAML reads a word that ends with a colon as a mapping."""
    variables = [yaml.safe_load(path.read_text()) or {} for path in ROLES.glob("*/vars/main.yml")]
    lists = [
        value
        for each in variables
        for name, value in each.items()
        if name.endswith("_pip") and isinstance(value, list)
    ]
    assert lists
    assert [each for value in lists for each in value if not isinstance(each, str)] == []
