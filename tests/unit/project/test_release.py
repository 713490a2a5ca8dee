# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What is published agrees: the version, and the environment of the control node as a container."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
ENVIRONMENT = ROOT / "execution-environment.yml"


def load(name):
    return yaml.safe_load((ROOT / name).read_text())


def test_the_citation_is_of_the_newest_version_of_the_changelog():
    version, date = re.search(
        r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    ).groups()
    citation = load("CITATION.cff")
    assert (citation["version"], str(citation["date-released"])) == (version, date)


def test_every_file_of_news_is_of_a_kind_that_a_release_knows():
    kinds = re.findall(r'^directory = "(added|changed|fixed)"$', (ROOT / "pyproject.toml").read_text(), re.M)
    names = [path.name for path in (ROOT / "changelog.d").iterdir() if path.name != "README.md"]
    assert len(kinds) == 3
    assert [name for name in names if not re.fullmatch(rf"\+?[\w-]+\.({'|'.join(kinds)})\.md", name)] == []


@pytest.mark.parametrize("package", ["ansible_core", "ansible_runner"])
def test_the_container_has_the_versions_of_the_lock(package):
    # Of several lines, the one for Python 3.12 is the newest.
    name = package.replace("_", "-")
    locked = re.findall(rf"^{name}==([\d.]+)", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    dependencies = load("execution-environment.yml")["dependencies"]
    assert dependencies[package]["package_pip"] == f"{name}=={locked[-1]}"


def test_ansible_builder_accepts_the_definition_of_the_container(tmp_path):
    pytest.importorskip("ansible_builder", reason="ansible-builder is not installed: scripts/test does that")
    # By default the file is named after the engine that the machine has.
    given = ["-f", ENVIRONMENT, "-c", tmp_path, "--output-filename", "Containerfile"]
    made = subprocess.run(
        [sys.executable, "-m", "ansible_builder", "create", *given], capture_output=True, text=True
    )
    assert made.returncode == 0, made.stdout + made.stderr
    dependencies = load("execution-environment.yml")["dependencies"]
    container = (tmp_path / "Containerfile").read_text()
    assert dependencies["ansible_core"]["package_pip"] in container
    assert (tmp_path / "_build/requirements.txt").read_text() == (ROOT / "requirements.txt").read_text()
