# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""auto takes a TensorFlow with code for the GPUs of a node, tf2_bert_python the models for its own."""

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
# {TensorFlow of an environment of the user's own: version of the models}
MODELS = {
    "2.3.4": "2.3.0",
    "2.10.1": "2.15",
    "2.15.1": "2.15",
    "2.16.0": "2.20",
    "2.20.0": "2.20",
    "2.21.0": "2.20",
}
PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.include_role: {name: workload, tasks_from: variables}
      vars: {workload_name: tf2_bert}
    - ansible.builtin.include_role: {name: tensorflow, tasks_from: version}
      vars: {workload_name: tf2_bert}
    - name: Write it down
      ansible.builtin.copy:
        content: "{{ workload_version }}"
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
    for number, version in enumerate(MODELS):
        # What the role asks of the interpreter, answered without a TensorFlow.
        python = folder / f"python{number}"
        python.write_text(f"#!/bin/sh\necho {version}\n")
        python.chmod(0o755)
        hosts[f"own{number}"] = {"tf2_bert_python": str(python)}
    hosts["bare"] = {"tf2_bert_python": sys.executable}
    every = {
        "ansible_connection": "local",
        "tf2_bert_version": "auto",
        "stack": {"tf2_bert": {"commit": "none"}},
    }
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


@pytest.mark.parametrize(("number", "version"), list(enumerate(MODELS)))
def test_an_own_tensorflow_gets_the_models_of_the_oldest_that_is_not_older(chosen, number, version):
    assert (chosen[1] / f"own{number}").read_text() == MODELS[version]


def test_an_own_environment_without_tensorflow_is_refused(chosen):
    said = " ".join(chosen[0].split())
    assert f"tf2_bert_python={sys.executable} on bare cannot import TensorFlow: ModuleNotFoundError" in said
    assert not (chosen[1] / "bare").exists()
