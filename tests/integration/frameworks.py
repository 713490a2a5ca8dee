# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Workloads with their real frameworks: installed on this machine, and shown to two hosts.

That four hosts train together is seen with TensorFlow, in test_tf2_bert_cluster.py.
"""

import json
import os
import subprocess
from functools import partial

import local_nodes
from ansible.module_utils.scalebook.workloads import load_workloads
from container_nodes import Nodes, shown
from local_nodes import CACHE, ROOT, provision_twice, turn
from nets import free_net

HOME = CACHE / "workloads"
NODES = Nodes(free_net("10.11.19", "10.12.19", "10.13.19", "10.14.19"), count=2)
# The environments of each workload, below the home of all of them. The hosts are shown these and Open MPI.
PARTS = {
    "tf2_bert": ["tf2_bert/venv"],
    "torch_bert": ["pytorch/venv"],
    "hf_mlm": ["transformers/venv"],
    "deepspeed_bert": ["deepspeed_bert/venv"],
    "horovod_bert": ["pytorch/venv", "horovod_bert/horovod"],
    # Measured on simulated nodes alone: on hosts that would take minutes.
    "torch_resnet50": ["transformers/venv"],
    "torch_gpt2": ["pytorch/venv"],
    "torch_wide_deep": ["pytorch/venv"],
    "torch_insightface": ["pytorch/venv"],
    "hf_llama": ["transformers/venv"],
    "torchtitan_llama": ["pytorch/venv", "torchtitan_llama/packages"],
}
# Horovod's build, by far the longest part, is without optimization and with MPI alone; the wheel is kept, and
# built again only when its recipe has changed.
VARIABLES = {
    "scalebook_home": str(HOME),
    # The hosts take the interpreters that they are shown: with others they would install everything again.
    "python_search": ["pyenv", "system", "conda", "uv"],
    "deepspeed_bert_device": "cpu",
    "deepspeed_bert_launcher": "pdsh",
    "horovod_bert_device": "cpu",
    "horovod_operations": ["MPI"],
    "horovod_environment": {"HOROVOD_DEBUG": "1"},
}


def install(workloads):
    """Install what is not there yet; return what provision.yml prints once all is in place."""
    play = partial(local_nodes.play, "provision.yml", workload=",".join(workloads), **VARIABLES)
    with turn(HOME):
        return provision_twice(play)


def start_hosts(workloads):
    """Make the hosts, show them what is installed here, and provision them by Molecule's scenario.

    Its step `check` is played on one host; that installing again changes nothing is seen on this machine.
    """
    homes = dict.fromkeys(HOME / part for name in workloads for part in ["openmpi", *PARTS[name]])
    NODES.up("--ready", *shown(*homes))
    given = NODES.files / "inventory/group_vars/all.json"
    given.parent.mkdir(exist_ok=True)
    given.write_text(json.dumps({**VARIABLES, "workload": ",".join(workloads)}))
    NODES.play("workload", "--check", node="NODE1")
    NODES.molecule("workload", "converge", "verify")


def bench(results, ok=True, on_hosts=True, **variables):
    """Run bench.yml on the hosts or on local nodes, with one repeat unless another number is given."""
    given = {"campaign": "test", "campaign_results": str(results), "repeats": 1, "device": "cpu", **variables}
    if on_hosts:
        return NODES.playbook("bench.yml", HOME, ok=ok, **given)
    return local_nodes.play("bench.yml", scalebook_home=str(HOME), **given)


def record_of(results):
    """Return the record of the one run below `results`, and the folder that it lies in."""
    (path,) = results.glob("*/runs/*/1/result.json")
    return json.loads(path.read_text()), path.parent


def train_tiny(workload, *words):
    """Return what a trainer of torch prints, whose smallest model's sizes are in the environment."""
    size = load_workloads([str(ROOT / "roles")])[workload].flops.models["tiny"]
    env = {**os.environ, "MODEL_SIZE": json.dumps(dict(size)), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [HOME / "pytorch/venv/bin/python", *map(str, words)],
        capture_output=True, text=True, timeout=120, env=env, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
