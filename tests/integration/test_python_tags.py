# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Role python by its tags: an interpreter is looked for, or an environment made, and nothing else is done."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  vars: {scalebook_home: FOLDER}
  roles:
    - role: python
      vars: {python_versions: ["VERSION"], python_search: [system, pyenv]}
  tasks:
    - ansible.builtin.debug: {msg: "found {{ python_executable | default('nothing') }}"}
      tags: [always]
"""


def play(tmp_path, version, tags):
    (tmp_path / "play.yml").write_text(PLAY.replace("VERSION", version).replace("FOLDER", str(tmp_path)))
    ansible = Path(sys.executable).with_name("ansible-playbook")
    return subprocess.run(
        [ansible, tmp_path / "play.yml", "--tags", tags],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_NOCOLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("tags", ["python_install", "python_verify"])
def test_an_interpreter_is_found_by_the_tag(tmp_path, tags):
    done = play(tmp_path, "%d.%d" % sys.version_info[:2], tags)
    assert (done.returncode, "found /" in done.stdout) == (0, True), done.stdout + done.stderr


@pytest.mark.parametrize("tags", ["python_install", "python_verify"])
def test_a_missing_interpreter_is_told_by_the_tag(tmp_path, tags):
    done = play(tmp_path, "3.99", tags)
    assert (done.returncode, "has no CPython 3.99" in done.stdout + done.stderr) == (2, True), done.stdout
