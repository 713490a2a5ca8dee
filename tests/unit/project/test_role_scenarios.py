# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Every role that installs something on a node is tested by a scenario of Molecule."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
# Why a role needs no scenario of its own.
OTHERS = {
    "campaign": "installs nothing",
    "microbench": "installs role torch_bert and nothing else",
    "torch_resnet50": "installs what torch_bert installs, and its trainer; measured on simulated nodes",
    "torch_gpt2": "as torch_resnet50",
    "deepspeed": "the scenario workload has it through deepspeed_bert",
    "tf2_resnet50": "the scenario workload takes it by hand: 880 MB, and minutes to the first step on a CPU",
    "paddle_resnet50": "the scenario workload takes it by hand: 570 MB, as tf2_resnet50",
    "paddle_bert": "as paddle_resnet50, whose Paddle it uses",
    # Their sources are on GitHub only; their integration tests use stand-ins.
    "bing_bert": "the scenario workload takes it by hand: 1.5 GB of 2020",
    "oneflow_resnet50": "the scenario workload takes it by hand: 4 GB, the libraries of CUDA among them",
    "oneflow_wide_deep": "installs what oneflow_resnet50 installs, and its trainer",
    "oneflow_bert": "as oneflow_wide_deep",
    "mxnet_resnet50": "the scenario workload takes it by hand: it compiles Horovod for MXNet",
    "tf1_resnet50": "as horovod_tf1_bert, whose TensorFlow it uses",
    "horovod_tf1_bert": "the scenario workload takes it by hand: it compiles Horovod for TensorFlow 1",
}


def provisioned_workloads():
    """Return the workloads for which the integration tests run the scenario `workload`."""
    tree = ast.parse((ROOT / "tests/integration/frameworks.py").read_text())
    (parts,) = (
        node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "PARTS"
    )
    return set(ast.literal_eval(parts))


def test_every_role_that_installs_something_has_a_scenario():
    roles = {path.parent.parent.name for path in ROOT.glob("roles/*/tasks/main.yml")}
    scenarios = {path.parent.name for path in ROOT.glob("molecule/*/molecule.yml")}
    assert roles - scenarios - provisioned_workloads() == set(OTHERS)
