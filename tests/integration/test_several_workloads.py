# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""One campaign of seven workloads with two stacks on two hosts over ssh: provisioned, measured, reported."""

import json

import frameworks
import pytest
from local_nodes import changed

WORKLOADS = [
    "tf2_bert",
    "torch_bert",
    "torch_resnet50",
    "torch_gpt2",
    "hf_mlm",
    "deepspeed_bert",
    "horovod_bert",
]
pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@pytest.fixture(scope="module")
def campaign(
    two_hosts,
    tf2_bert,
    torch_bert,
    torch_resnet50,
    torch_gpt2,
    hf_mlm,
    deepspeed_bert,
    horovod_bert,
    tmp_path_factory,
):
    """Return the directory of the campaign. Takes two minutes."""
    results = tmp_path_factory.mktemp("several")
    few = {
        "hf_mlm_train_samples": 256,
        "hf_mlm_eval_samples": 64,
        "torch_resnet50_image_size": 32,
        "torch_gpt2_seq_length": 64,
        "bsz": 4,
    }
    frameworks.bench(results, workload=",".join(WORKLOADS), nodes=2, **few)
    return results / "test"


@pytest.fixture(scope="module")
def records(campaign):
    """Return {workload: record}."""
    found = [json.loads(path.read_text()) for path in campaign.glob("runs/*/1/result.json")]
    return {record["case"]["workload"]: record for record in found}


def test_provisioning_this_machine_again_changes_nothing(frameworks_here):
    assert changed(frameworks_here) == []


@pytest.mark.parametrize("workload", WORKLOADS)
def test_each_workload_is_measured_on_two_hosts(records, workload):
    assert (records[workload]["status"], records[workload]["reason"]) == ("ok", None)


@pytest.mark.parametrize(
    ("workload", "first"),
    [("torch_bert", 1), ("torch_resnet50", 1), ("torch_gpt2", 1), ("deepspeed_bert", 3), ("horovod_bert", 1)],
)
def test_every_step_of_two_hosts_is_read(records, workload, first):
    assert records[workload]["nodes"][0]["steps"] == list(range(first, 121))


def test_pdsh_starts_the_ranks_of_deepspeed(campaign):
    """Its launcher, which frameworks.VARIABLES name, puts the address of a host before its lines."""
    (folder,) = campaign.glob("runs/deepspeed_bert-*/1")
    world = f"{frameworks.NODES.net}.2: DEEPSPEED_BERT world_size=2 nodes=2 backend=gloo"
    assert world in (folder / "NODE1.log").read_text()


def test_one_report_has_the_rows_of_all(campaign):
    results = json.loads((campaign / "report/results.json").read_text())
    assert {row["workload"] for row in results["rows"]} == set(WORKLOADS)


def test_the_report_counts_images_and_samples_apart(campaign):
    results = json.loads((campaign / "report/results.json").read_text())
    units = {row["workload"]: row["unit"] for row in results["rows"]}
    assert {workload for workload, unit in units.items() if unit == "images"} == {"torch_resnet50"}


def test_the_report_has_the_row_of_the_table_that_hf_mlm_publishes(campaign):
    text = (campaign / "report/report.md").read_text().replace("\\", "")
    assert "Metrics reported by hf_mlm" in text
    assert "CPU_2x1cpu_4" in text
