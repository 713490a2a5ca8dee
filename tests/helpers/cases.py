# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Cases and clusters made to order."""

from ansible.module_utils.scalebook.pages import catalogue
from ansible.module_utils.scalebook.plan import matrix
from ansible.module_utils.scalebook.plan.parameters import Context, read


def case(nodes=1, gpus=1, bsz=16, warmup=20, window=100, **other):
    values = {
        "workload": "tf2_bert",
        "model": "tiny",
        "dtype": "fp32",
        "xla": False,
        "bsz": bsz,
        "nodes": nodes,
        "gpus": gpus,
        "device": "cpu",
        "warmup": warmup,
        "window": window,
    }
    return matrix.make_case({**values, **other})


def gpu_case(nodes, gpus, device="gpu"):
    values = {
        "workload": "f",
        "model": "m",
        "dtype": "fp32",
        "xla": False,
        "bsz": 64,
        "nodes": nodes,
        "gpus": gpus,
    }
    return matrix.make_case({**values, "device": device, "warmup": 20, "window": 100})


def cluster(count, slots=8):
    return [
        {"name": f"NODE{i}", "address": f"10.11.0.{i + 1}", "slots": slots, "machine": f"10.11.0.{i + 1}"}
        for i in range(1, count + 1)
    ]


def machine(count, slots):
    return [
        {"name": f"NODE{i}", "address": "127.0.0.1", "slots": slots, "machine": "localhost"}
        for i in range(1, count + 1)
    ]


def plan(given, workload, nodes, name, device):
    """The plan of what -e gives, of one workload or of several by name."""
    return planned(given, nodes, device, **({name: workload} if isinstance(name, str) else workload))


def read_parameters(given, **workloads):
    """Return the parameters of a campaign of these workloads, as -e gives them."""
    return read(["bench"], {"workload": list(workloads), **given}, {}, Context(workloads, {}, {}))


def planned(given, nodes, device="cpu", outcome=lambda campaign, case: None, **workloads):
    """Return the plan of a campaign of these workloads (declarations by name), its reasons in words.

    `outcome` returns what became of a run that searches for the largest batch.
    """
    made = matrix.plan(read_parameters(given, **workloads), workloads, nodes, device, outcome=outcome)
    return catalogue.in_words(made)
