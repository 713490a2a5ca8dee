# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed's BERT and the micro-benchmarks with real torch: on simulated nodes, then on four hosts.

On the hosts, DeepSpeed logs in from the first to the others.
"""

import json

import pytest
from container_nodes import said
from frameworks import NODES, record_of
from local_nodes import changed, play

pytestmark = pytest.mark.slow


def test_provisioning_again_changes_nothing(deepspeed_bert):
    """Takes half a minute, three minutes more the first time."""
    assert changed(deepspeed_bert.said) == []


def test_one_and_two_nodes_are_measured(deepspeed_bert, tmp_path):
    """Takes a minute: the campaign starts DeepSpeed's launcher on each node."""
    place = {"campaign_results": str(tmp_path), "campaign": "ds", "campaign_port": 24530}
    deepspeed_bert.play("bench.yml", nodes="1,2", gpus=1, bsz=4, repeats=1, **place)
    records = [json.loads(path.read_text()) for path in (tmp_path / "ds/runs").glob("*/1/result.json")]
    assert {(record["case"]["label"], record["status"]) for record in records} == {
        ("1n1g", "ok"),
        ("2n1g", "ok"),
    }
    steps = [record["nodes"][0]["steps"] for record in records]
    assert steps == [list(range(3, 121))] * 2


def test_operations_and_collectives_are_measured(deepspeed_bert, tmp_path):
    """Takes half a minute."""
    shown = play(
        "microbench.yml",
        stack_name="modern",
        scalebook_home=str(deepspeed_bert.home),
        microbench_python=str(deepspeed_bert.home / "deepspeed_bert/venv/bin/python"),
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


def test_a_stack_without_todays_deepspeed_is_refused():
    refusal = "stack_name=dlperf2020: it has no versions for deepspeed_bert; leave it out, or use modern"
    with pytest.raises(AssertionError, match=refusal):
        play("bench.yml", plan_only=True, workload="deepspeed_bert", stack_name="dlperf2020")


# -- four hosts; order matters: they have no pdsh at first ---------------------------------------------------


@pytest.fixture(scope="module")
def hosts(four_hosts, deepspeed_bert):
    deepspeed_bert.provision_hosts()


def measured(framework, results, launcher, **options):
    """Measure the hosts with DeepSpeed started by `launcher`; return (record, the first one's log)."""
    place = {"campaign_results": str(results), "campaign": "ds", "deepspeed_bert_launcher": launcher}
    framework.on_hosts("bench.yml", bsz=2, repeats=1, slots=2, **place, **options)
    record, folder = record_of(results)
    return record, (folder / "NODE1.log").read_text()


@pytest.mark.cluster
def test_four_hosts_train_together(hosts, deepspeed_bert, tmp_path):
    record, _ = measured(deepspeed_bert, tmp_path, "job", nodes=4, gpus=1)
    assert (record["status"], record["reason"]) == ("ok", None)


@pytest.mark.cluster
def test_a_campaign_is_refused_where_pdsh_is_missing(hosts, deepspeed_bert):
    few = {"nodes": 2, "gpus": 1, "repeats": 1}
    done = deepspeed_bert.on_hosts("bench.yml", ok=False, deepspeed_bert_launcher="pdsh", **few)
    assert "NODE1 has no pdsh, which launcher=pdsh needs" in said(done)


@pytest.mark.cluster
def test_pdsh_starts_two_ranks_on_each_of_two_hosts(hosts, deepspeed_bert, tmp_path):
    deepspeed_bert.on_hosts("provision.yml", deepspeed_bert_launcher="pdsh")
    record, log = measured(deepspeed_bert, tmp_path, "pdsh", nodes=2, gpus=2)
    assert (record["status"], record["reason"]) == ("ok", None)
    assert f"{NODES.net}.2: DEEPSPEED_BERT world_size=4 nodes=2 backend=gloo" in log


@pytest.mark.cluster
def test_mpirun_starts_two_ranks_on_each_of_two_hosts(hosts, deepspeed_bert, tmp_path):
    record, log = measured(deepspeed_bert, tmp_path, "openmpi", nodes=2, gpus=2)
    assert (record["status"], record["reason"]) == ("ok", None)
    assert "DEEPSPEED_BERT world_size=4 nodes=2 backend=gloo" in log
    assert "host=NODE1" in log
    assert "host=NODE2" in log
