# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed's BERT and the micro-benchmarks with real torch, on logical nodes without a GPU.

They share an installation that stays below .scalebook, as do four container nodes, on which DeepSpeed logs
in by itself from the first to the others.
"""

import json
import os
from functools import partial

import local_nodes
import pytest
from container_nodes import Nodes, said, shown
from local_nodes import ROOT, changed, provision_twice
from nets import free_net

HOME = ROOT / ".scalebook/test-deepspeed"
NODES = Nodes(free_net("10.11.19", "10.12.19", "10.13.19", "10.14.19"))

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


# -- four hosts --------------------------------------------------------------------------------------------


on_nodes = partial(
    NODES.playbook, home=HOME, stack_name="modern", framework="deepspeed_bert", deepspeed_bert_device="cpu"
)


@pytest.fixture(scope="module")
def hosts(installed):
    """Four hosts that have what is installed here; pdsh they have not."""
    if os.geteuid():
        pytest.skip("containers with networks of their own need root")
    NODES.up(*shown(HOME / "openmpi", HOME / "deepspeed_bert"))
    on_nodes("provision.yml")
    yield
    NODES.down()


def measured(results, launcher, **options):
    """Measure the hosts with DeepSpeed started by `launcher`; return (record, the first one's log)."""
    place = {"campaign_results": str(results), "campaign": "ds", "device": "cpu"}
    on_nodes("bench.yml", bsz=2, repeats=1, slots=2, deepspeed_bert_launcher=launcher, **place, **options)
    (path,) = (results / "ds/runs").glob("*/1/result.json")
    return json.loads(path.read_text()), (path.parent / "NODE1.log").read_text()


@pytest.mark.cluster
def test_four_hosts_train_together(hosts, tmp_path):
    record, _ = measured(tmp_path, "gang", nodes=4, gpus=1)
    assert (record["status"], record["reason"]) == ("ok", None)


@pytest.mark.cluster
def test_a_campaign_is_refused_where_pdsh_is_missing(hosts):
    done = on_nodes("bench.yml", ok=False, nodes=2, gpus=1, repeats=1, deepspeed_bert_launcher="pdsh")
    assert "NODE1 has no pdsh, which deepspeed_bert_launcher=pdsh asks for" in said(done)


@pytest.mark.cluster
def test_pdsh_starts_two_ranks_on_each_of_two_hosts(hosts, tmp_path):
    on_nodes("provision.yml", deepspeed_bert_launcher="pdsh")
    record, log = measured(tmp_path, "pdsh", nodes=2, gpus=2)
    assert (record["status"], record["reason"]) == ("ok", None)
    assert f"{NODES.net}.2: DEEPSPEED_BERT world_size=4 nodes=2 backend=gloo" in log


@pytest.mark.cluster
def test_mpirun_starts_two_ranks_on_each_of_two_hosts(hosts, tmp_path):
    record, log = measured(tmp_path, "openmpi", nodes=2, gpus=2)
    assert (record["status"], record["reason"]) == ("ok", None)
    assert "DEEPSPEED_BERT world_size=4 nodes=2 backend=gloo" in log
    assert "host=NODE1" in log
    assert "host=NODE2" in log
