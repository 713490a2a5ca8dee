# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""tf2_bert_version=auto takes a TensorFlow that has code for the GPUs of a node."""

import json
import subprocess
import sys

import pytest
from local_nodes import ROOT

# {host: (compute capabilities of its GPUs, version)}
CHOICES = {
    "cpu": ([], "2.3.0"),
    "v100": (["7.0"], "2.3.0"),
    "a100": (["8.0"], "2.15"),
    "h100": (["9.0"], "2.20"),
    "a100-and-h100": (["8.0", "9.0"], "2.20"),
    "newer": (["12.0"], "2.20"),
}
PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.include_role: {name: tf2_bert, tasks_from: version}
    - name: Write it down
      ansible.builtin.copy:
        content: "{{ __tf2_bert_version }}"
        dest: "{{ out }}/{{ inventory_hostname }}"
        mode: "0644"
"""


@pytest.fixture(scope="module")
def chosen(tmp_path_factory):
    """Return what ansible-playbook printed, and the directory with the version of each host."""
    folder = tmp_path_factory.mktemp("versions")
    hosts = {
        name: {"workload_compute_capabilities": capabilities} for name, (capabilities, _) in CHOICES.items()
    }
    hosts["fixed"] = {"workload_compute_capabilities": ["9.0"], "tf2_bert_version": "2.3.0"}
    every = {"ansible_connection": "local", "tf2_bert_version": "auto", "stack": {}}
    every |= {"scalebook_home": str(folder), "out": str(folder), "ansible_python_interpreter": sys.executable}
    (folder / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts, "vars": every}}))
    (folder / "play.yml").write_text(PLAY)
    words = ["ansible-playbook", "-i", folder / "hosts.json", folder / "play.yml"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, timeout=300)
    return done.stdout, folder


@pytest.mark.parametrize("host", CHOICES)
def test_auto_takes_the_oldest_version_with_code_for_all_gpus(chosen, host):
    assert (chosen[1] / host).read_text() == CHOICES[host][1]


def test_a_version_without_code_for_the_gpu_is_refused(chosen):
    said = " ".join(chosen[0].split())
    assert "tf2_bert_version=2.3.0: TensorFlow 2.3.0" in said
    assert "has code for compute capability 3.5 to 7.5, a GPU of fixed has 9.0" in said
    assert not (chosen[1] / "fixed").exists()
