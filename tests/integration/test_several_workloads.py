# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""One campaign of three workloads with two stacks on four hosts over ssh: provisioned, measured, reported."""

import json

import pytest
from frameworks import NODES
from local_nodes import HOME

WORKLOADS = ["tf2_bert", "torch_bert", "hf_mlm"]
pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@pytest.fixture(scope="module")
def provisioned(four_hosts, tf2_bert, torch_bert, hf_mlm):
    """Run Molecule's scenario of the workloads on four hosts. Takes three minutes."""
    workloads = ",".join(WORKLOADS)
    NODES.molecule("workload", SCALEBOOK_TEST_WORKLOADS=workloads, SCALEBOOK_TEST_HOME=str(HOME))


@pytest.fixture(scope="module")
def campaign(provisioned, tmp_path_factory):
    """Return the directory of the campaign. Takes three minutes."""
    results = tmp_path_factory.mktemp("several")
    few = {"hf_mlm_train_samples": 256, "hf_mlm_eval_samples": 64, "bsz": 4, "repeats": 1}
    place = {"campaign": "several", "campaign_results": str(results)}
    NODES.playbook("bench.yml", HOME, workload=",".join(WORKLOADS), nodes="1,4", **few, **place)
    return results / "several"


@pytest.fixture(scope="module")
def records(campaign):
    return [json.loads(path.read_text()) for path in campaign.glob("runs/*/1/result.json")]


@pytest.mark.parametrize("nodes", [1, 4])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_each_workload_is_measured_on_one_and_on_four_hosts(records, workload, nodes):
    found = [
        (record["status"], record["reason"])
        for record in records
        if (record["case"]["workload"], record["case"]["nodes"]) == (workload, nodes)
    ]
    assert found == [("ok", None)]


def test_four_hosts_see_each_step_of_four_ranks(records):
    (record,) = [r for r in records if (r["case"]["workload"], r["case"]["nodes"]) == ("torch_bert", 4)]
    assert record["nodes"][0]["steps"] == list(range(1, 121))


def test_one_report_has_the_rows_of_all(campaign):
    results = json.loads((campaign / "report/results.json").read_text())
    assert {row["workload"] for row in results["rows"]} == set(WORKLOADS)
