# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed's BERT with its own launchers on two hosts, and the micro-benchmarks with its torch.

Its run that pdsh starts is in test_several_workloads.py.
"""

import json

import frameworks
import pytest
from container_nodes import said
from frameworks import NODES
from local_nodes import play

pytestmark = pytest.mark.slow


def test_operations_and_collectives_are_measured(deepspeed_bert, tmp_path):
    """Takes half a minute."""
    shown = play(
        "microbench.yml",
        stack_name="modern",
        scalebook_home=str(deepspeed_bert),
        microbench_python=str(deepspeed_bert / "deepspeed_bert/venv/bin/python"),
        microbench_out=str(tmp_path),
        microbench_seconds=0.01,
        microbench_most=65536,
        microbench_port=24540,
        device="cpu",
        nodes=2,
    )
    assert "Matrix product" in shown and "all_reduce" in shown
    made = json.loads((tmp_path / "microbench.json").read_text())
    best = made["best"]
    names = ["bert", "bert_part", "gpt2", "matmul", "t5_decoder", "t5_encoder", "vector"]
    assert sorted({row["benchmark"] for row in best}) == names
    group = json.loads((tmp_path / "collectives.json").read_text())
    assert (group["world_size"], group["nodes"], group["backend"]) == (2, 2, "gloo")
    where = [(each["kind"], each["status"], each["nodes"]) for each in made["records"]]
    assert where == [("compute", "ok", ["NODE1"]), ("collectives", "ok", ["NODE1", "NODE2"])]
    assert all("microbench.yml" in each["command"] and each["hardware"] for each in made["records"])


def test_provisioning_does_not_see_modules_of_pythonpath_as_runs_do_not(
    deepspeed_bert, tmp_path, monkeypatch
):
    (tmp_path / "deepspeed.py").write_text('__version__ = "0.0.1"\n')
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    play("provision.yml", workload="deepspeed_bert", provision_force=True, **frameworks.VARIABLES)
    recorded = json.loads((deepspeed_bert / "deepspeed_bert/install.json").read_text())
    assert recorded["deepspeed"] != "0.0.1"


def test_a_stack_without_todays_deepspeed_is_refused():
    refusal = "stack_name=dlperf2020: it has no versions for deepspeed_bert; leave it out, or use modern"
    with pytest.raises(AssertionError, match=refusal):
        play("bench.yml", plan_only=True, workload="deepspeed_bert", stack_name="dlperf2020")


# -- hosts -------------------------------------------------------------------------------------------------


def measured(results, launcher, ok=True):
    """Measure two devices on each of two hosts; return what ansible-playbook did."""
    case = {"nodes": 2, "gpus": 2, "slots": 2, "bsz": 2, "deepspeed_bert_launcher": launcher}
    return frameworks.bench(results, ok=ok, workload="deepspeed_bert", **case)


@pytest.mark.cluster
def test_a_campaign_is_refused_where_pdsh_is_missing(two_hosts, deepspeed_bert, tmp_path):
    NODES.ssh("NODE1", "mv /usr/bin/pdsh /usr/bin/pdsh.aside")
    try:
        done = measured(tmp_path, "pdsh", ok=False)
    finally:
        NODES.ssh("NODE1", "mv /usr/bin/pdsh.aside /usr/bin/pdsh")
    assert "NODE1 has no pdsh, which launcher=pdsh needs" in said(done)


@pytest.mark.cluster
def test_mpirun_starts_two_ranks_on_each_of_two_hosts(two_hosts, deepspeed_bert, tmp_path):
    measured(tmp_path, "openmpi")
    record, folder = frameworks.record_of(tmp_path)
    log = (folder / "NODE1.log").read_text()
    assert (record["status"], record["reason"]) == ("ok", None)
    assert "DEEPSPEED_BERT world_size=4 nodes=2 backend=gloo" in log
    assert "host=NODE1" in log
    assert "host=NODE2" in log
