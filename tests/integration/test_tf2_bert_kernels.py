# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""provision.yml has the driver compile the kernels of a TensorFlow that has no machine code for the GPUs.

The trainer and nvidia-smi are stand-ins: they write down how they are called.
"""

import json
import os
import subprocess
import sys

import pytest
from local_nodes import ROOT

TRAINER = """#!/bin/sh
echo "$DTYPE $XLA $CUDA_CACHE_PATH $CUDA_CACHE_MAXSIZE $*" >>"$(dirname "$0")/$NODE.calls"
[ "$NODE" != broken ] || { echo "no kernel image is available"; exit 1; }
"""
SMI = """#!/bin/sh
case "$1" in *driver_version) echo 580.159.04 ;; *) echo 12.0 ;; esac
"""
PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.include_role: {name: workload, tasks_from: variables}
    - ansible.builtin.include_role: {name: tensorflow, tasks_from: compile_kernels}
      vars: {tensorflow_case: {MODEL: base, GLOBAL_BATCH: "8"}}
"""
CAPABILITIES = {"covered": ["9.0"], "newer": ["12.0"], "both": ["9.0", "12.0"], "cpu": [], "broken": ["12.0"]}


@pytest.fixture(scope="module")
def provisioned(tmp_path_factory):
    """Return the output of two provisionings, and the folder with the calls of each host."""
    folder = tmp_path_factory.mktemp("kernels")
    for name, text in {"nvidia-smi": SMI, "python": TRAINER}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    hosts = {}
    for name, capabilities in CAPABILITIES.items():
        home = folder / name
        (home / "code").mkdir(parents=True)
        (home / "code/run_head.sh").symlink_to(ROOT / "roles/workload/files/kit/run_head.sh")
        install = {
            "version": "2.20",
            "versions": "TensorFlow 2.20",
            "device": "gpu",
            "python": f"{folder}/python",
            "models": str(home),
        }
        install["code"] = str(home / "code")
        install |= {
            "script": "train.py",
            "environment": {},
            "gpus": "9.0",
            "nccl": "",
            "xla_flags": [],
            "tfrecords": [],
        }
        hosts[name] = {
            "workload_compute_capabilities": capabilities,
            "tf2_bert_install": install,
            "workload_install": install,
        }
    every = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "stack": {"tf2_bert": {"version": "2.20", "commit": "none"}},
    }
    every |= {
        "workload_name": "tf2_bert",
        "scalebook_home": str(folder),
        "tf2_bert_home": f"{folder}/{{{{ inventory_hostname }}}}",
    }
    (folder / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts, "vars": every}}))
    (folder / "play.yml").write_text(PLAY)
    words = ["ansible-playbook", "-i", folder / "hosts.json", folder / "play.yml"]
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    runs = [
        subprocess.run(words, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=300)
        for _ in range(2)
    ]
    return [" ".join(run.stdout.split()) for run in runs], folder


def calls(folder, name):
    path = folder / f"{name}.calls"
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.parametrize("host", ["newer", "both"])
def test_three_steps_of_each_dtype_fill_the_cache_once(provisioned, host):
    made = calls(provisioned[1], host)
    assert [line.split()[:4] for line in made] == [
        [dtype, "false", f"{provisioned[1]}/{host}/cuda_cache", "4294967296"] for dtype in ("fp32", "fp16")
    ]
    assert all("--num_steps_per_epoch=3" in line and "--num_gpus=1" in line for line in made)


@pytest.mark.parametrize("host", ["covered", "cpu"])
def test_nothing_is_compiled_where_there_is_machine_code(provisioned, host):
    assert calls(provisioned[1], host) == []


def test_these_steps_leave_nothing_but_the_cache(provisioned):
    home = provisioned[1] / "newer"
    assert {path.name for path in home.iterdir()} == {"code", "cuda_cache"}
    assert [path.name for path in (home / "cuda_cache").iterdir()] == ["2.20-580.159.04"]


def test_a_trainer_that_fails_is_reported_and_tried_again(provisioned):
    assert "no kernel image is available" in provisioned[0][0]
    assert [line.split()[0] for line in calls(provisioned[1], "broken")] == ["fp32", "fp16"] * 2
