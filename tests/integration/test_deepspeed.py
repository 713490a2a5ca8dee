# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed's BERT and the micro-benchmarks with real torch, on logical nodes without a GPU.

They share an installation that stays below .scalebook.
"""

import json
from functools import partial

import local_nodes
import pytest
from local_nodes import ROOT, changed, provision_twice

HOME = ROOT / ".scalebook/test-deepspeed"

pytestmark = pytest.mark.slow


play = partial(local_nodes.play, stack_name="modern", scalebook_home=str(HOME))


def provision():
    return play("provision.yml", framework="deepspeed_bert", deepspeed_bert_device="cpu")


@pytest.fixture(scope="module")
def installed():
    """Install what is not there yet; what provisioning says that finds all in place."""
    return provision_twice(provision)


def test_provisioning_again_changes_nothing(installed):
    """Takes half a minute, three minutes more the first time."""
    assert changed(installed) == []


def test_one_and_two_nodes_are_measured(installed, tmp_path):
    """Takes a minute: DeepSpeed's launcher on each node of the gang."""
    place = {"campaign_results": str(tmp_path), "campaign": "ds", "campaign_port": 24530, "device": "cpu"}
    play("bench.yml", framework="deepspeed_bert", nodes="1,2", gpus=1, bsz=4, repeats=1, **place)
    records = [json.loads(path.read_text()) for path in (tmp_path / "ds/runs").glob("*/1/result.json")]
    assert {(record["case"]["label"], record["status"]) for record in records} == {
        ("1n1g", "ok"),
        ("2n1g", "ok"),
    }
    steps = [record["nodes"][0]["steps"] for record in records]
    assert steps == [list(range(3, 121))] * 2


def test_operations_and_collectives_are_measured(installed, tmp_path):
    """Takes half a minute."""
    shown = play(
        "microbench.yml",
        microbench_python=str(HOME / "deepspeed_bert/venv/bin/python"),
        microbench_out=str(tmp_path),
        microbench_seconds=0.01,
        microbench_most=65536,
        microbench_port=24540,
        device="cpu",
        nodes=2,
    )
    assert "Matrix product" in shown and "all_reduce" in shown
    best = json.loads((tmp_path / "microbench.json").read_text())["best"]
    names = ["bert", "bert_part", "gpt2", "matmul", "t5_decoder", "t5_encoder", "vector"]
    assert sorted({row["benchmark"] for row in best}) == names
    group = json.loads((tmp_path / "collectives.json").read_text())
    assert (group["world_size"], group["nodes"], group["backend"]) == (2, 2, "gloo")
