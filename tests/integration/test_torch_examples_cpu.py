# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The line that main.py of pytorch/examples gets for CPUs."""

import json
import os
import subprocess
import sys

import pytest
from local_nodes import ROOT

STAND_IN = (ROOT / "tests/stand_ins/pytorch_examples/main.py").read_text()
PLACE = "        print('using CPU, this will be slow')\n    elif args.distributed:\n"
LINE = "        model = torch.nn.parallel.DistributedDataParallel(model)\n"
PLAY = """
- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.include_role: {name: torch_resnet50, tasks_from: examples_cpu}
"""


@pytest.fixture
def patched(tmp_path):
    """Return a function that runs the tasks on a text of main.py and returns what they printed and wrote."""
    source = tmp_path / "examples/imagenet"
    source.mkdir(parents=True)
    (tmp_path / "play.yml").write_text(PLAY)

    def run(text):
        (source / "main.py").write_text(text)
        given = json.dumps(
            {"torch_resnet50_home": str(tmp_path), "ansible_python_interpreter": sys.executable}
        )
        done = subprocess.run(
            ["ansible-playbook", "-i", "localhost,", "-c", "local", tmp_path / "play.yml", "-e", given],
            capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=ROOT, timeout=120,
            env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")},
        )  # fmt: skip
        written = source / "main_cpu.py"
        return done.stdout + done.stderr, written.read_text() if written.exists() else None

    return run


def test_the_copy_for_cpus_has_one_more_line_and_main_py_stays_as_it_is(patched):
    shown, written = patched(STAND_IN)
    assert written is not None, shown
    before, after = STAND_IN.split("    elif args.distributed:\n")
    assert written == f"{before}{LINE}    elif args.distributed:\n{after}"


@pytest.mark.parametrize(
    "text",
    [
        STAND_IN.replace("using CPU", "on a CPU"),
        STAND_IN.replace(PLACE, PLACE.replace("\n", f"\n{LINE}", 1)),
        2 * STAND_IN,
    ],
)
def test_another_main_py_is_refused(patched, text):
    shown, written = patched(text)
    assert ("is not the one that this role is for" in shown, written) == (True, None)
    assert "torch_resnet50_commit" in shown
