# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""environment.csv: what a campaign ran on and with, and `not recorded` for what its records do not say."""

from pathlib import Path

import pytest
from ansible.module_utils.scalebook.contracts import message
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.report import environment
from ansible.module_utils.scalebook.store.load import load_campaign
from report_records import campaign, case, record

RESULTS = Path(__file__).resolve().parents[3] / "docs" / "results"


def values(document):
    return {line["what"]: line["value"] for line in environment.table(document)}


@pytest.fixture(scope="module")
def real():
    return values(build_results(load_campaign(RESULTS / "h200-2026-11-23" / "tf2_plain")))


@pytest.mark.parametrize(
    ("what", "value"),
    [
        ("GPUs", "1 × NVIDIA H200 (140 GiB), PCIe 5 x16"),
        ("power limit of the GPUs", "700 W"),
        ("processor", "Intel(R) Xeon(R) Processor, 1 socket, 16 cores, 16 threads"),
        ("system", "Ubuntu 24.04"),
        ("driver", "580.159.04"),
        ("framework of tf2_bert", "tensorflow 2.20.0"),
        ("NCCL of tf2_bert", "2.28.3-1+cuda13.0, 2.25.1 of the framework's own"),
        ("commit of scalebook", "not recorded"),
        ("machines", "no simulated nodes"),
    ],
)
def test_the_environment_of_a_campaign_is_that_of_its_records(real, what, value):
    assert real[what] == value


def test_the_command_makes_the_campaign_again(real):
    assert real["command"].startswith('ansible-playbook -i inventory/one bench.yml -e "workload=tf2_bert ')
    assert " dtype=fp16,fp32 xla=false bsz=64 nodes=1 gpus=1 repeats=3 " in real["command"]


def test_records_without_hardware_say_not_recorded(tmp_path):
    found = values(build_results(load_campaign(campaign(tmp_path, [record(case())]))))
    assert {found[what] for what in ("GPUs", "processor", "memory", "driver", "NCCL", "framework")} == {
        "not recorded"
    }


def test_simulated_nodes_are_called_that():
    document = build_results(load_campaign(RESULTS / "h200x4-2026-11-21" / "logical"))
    assert "simulated nodes" in values(document)["machines"]


def test_what_a_workload_used_beside_its_framework_is_a_line():
    nodes = {name: {"framework": "torch 2.13.0", "features": "DALI 2.4.0"} for name in ("NODE1", "NODE2")}
    document = {"hardware": [], "provenance": {"workloads": {"w": nodes}}, "plan": {}, "campaign": "x"}
    found = values({**document, "started": None, "simulated": None, "kind": "campaign"})
    assert found["features of w"] == "DALI 2.4.0"


def test_nodes_without_a_gpu_have_none():
    document = {"hardware": [{"nodes": ["NODE1"], "gpus": []}], "provenance": None, "plan": {}}
    found = values({**document, "campaign": "x", "started": None, "simulated": None, "kind": "campaign"})
    assert found["GPUs"] == "none"


def test_the_head_names_the_software_and_the_commit_of_scalebook():
    document = build_results(load_campaign(RESULTS / "h200x4-2026-11-26" / "tf2_bert"))
    said = (
        "tensorflow 2.20.0; CUDA 13.0.96-1, 12.5.82 of the framework's own; "
        "cuDNN 9.14.0.64-1, 9.3.0.75 of the framework's own; "
        "NCCL 2.28.3-1+cuda13.0, 2.25.1 of the framework's own; Open MPI 4.1.8; Python 3.11.7; "
        "scalebook ccd2033d4c3e"
    )
    assert environment.software(document["provenance"]) == [said]


def test_software_that_no_record_names_is_not_recorded(tmp_path):
    document = build_results(load_campaign(campaign(tmp_path, [record(case())])))
    assert environment.software(document) == ["not recorded; scalebook not recorded"]


def test_nodes_and_workloads_with_other_software_have_sentences_of_their_own():
    old, new = {"python": "3.8.18"}, {"python": "3.11.2"}
    workloads = {"tf2_bert": {"NODE1": old, "NODE2": old}, "torch_bert": {"NODE1": new, "NODE2": old}}
    assert environment.software({"workloads": workloads}) == [
        "tf2_bert: Python 3.8.18",
        "torch_bert, NODE1: Python 3.11.2",
        "torch_bert, NODE2: Python 3.8.18; scalebook not recorded",
    ]


WARNED = {
    "verdict": "warn",
    "warnings": [
        message(
            "preflight.finding",
            nodes="NODE1",
            check="disk",
            what=message("preflight.inodes", path="/w", count=3),
        ),
        message(
            "preflight.finding",
            nodes="NODE2",
            check="shm",
            what=message("preflight.accepted", what="no answer"),
        ),
    ],
}


@pytest.mark.parametrize(
    ("language", "lines"),
    [
        ("en", ["warn", "NODE1: disk: /w has 3 inodes left; NODE2: shm: no answer (accepted)"]),
        ("zh", ["有警告", "NODE1：disk：/w 仅剩 3 个 inode；NODE2：shm：no answer（已接受）"]),
    ],
)
def test_the_findings_of_the_preflight_are_in_the_language_of_the_report(language, lines):
    wording = Wording(language)
    rows = environment.provenance_rows({"preflight": WARNED, "nodes": {}}, wording)
    assert [wording.fact(row["value"]) for row in rows] == lines


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_preflight_that_was_skipped_is_one_line(language):
    rows = environment.provenance_rows(
        {"preflight": message("preflight.skipped"), "nodes": {}}, Wording(language)
    )
    assert [row["what"] for row in rows] == ["preflight"]
