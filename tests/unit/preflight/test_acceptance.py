# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The verdicts of acceptance.yml in a campaign: condemned nodes are refused, old verdicts are named."""

import copy
import datetime
import json

import pytest
from ansible.module_utils.scalebook.accept import document, reasons
from ansible.module_utils.scalebook.preflight import acceptance
from ansible.module_utils.scalebook.report.preflight_lines import spoken

NOW = datetime.datetime(2026, 11, 28, 12, tzinfo=datetime.timezone.utc)
NODES = ("NODE1", "NODE2", "NODE3", "NODE4")
MACHINES = [
    {"name": name, "nodes": [name], "address": f"10.11.0.{index}", "local": False, "slots": 1}
    for index, name in enumerate(NODES, 2)
]
PROBED = {name: {"facts": {"smi": {"gpus": [{"uuid": f"GPU-{name}"}]}}, "failed": {}} for name in NODES}


@pytest.fixture
def accepted():
    """acceptance.json of four nodes, of which NODE3 computes wrongly."""
    measurements = [
        {
            "nodes": [name],
            "name": "NVIDIA H100 80GB HBM3",
            "rates": {},
            "traces": {"GPU0": f"{'bad' if name == 'NODE3' else 'good'} torch 2.13"},
            "problems": {},
            "gpus": [f"GPU-{name}"],
        }
        for name in NODES
    ]
    made = document.document(NODES, measurements, [], document.Criteria(least=0.95, most=20))
    for machine in MACHINES:
        made["machines"][machine["name"]]["address"] = machine["address"]
    return {**made, "time": "2026-11-20T12:00:00+00:00"}


def reported(accepted, machines=MACHINES, probed=PROBED, days=30):
    rows = spoken(acceptance.findings(accepted, machines, probed, days, NOW))
    return [(each["level"], each["nodes"], each["found"]) for each in rows]


def test_a_condemned_node_is_refused_with_its_reason_and_a_fix(accepted):
    (refused,) = spoken(acceptance.findings(accepted, MACHINES, PROBED, 30, NOW))
    assert (refused["level"], refused["nodes"]) == ("refuse", ["NODE3"])
    assert refused["found"] == (
        "acceptance.yml condemned it on 2026-11-20: NODE3 GPU0 trace differs from that of its equals"
    )
    assert "--limit 'all,!NODE3'" in refused["fix"]
    assert "preflight_accept=acceptance" in refused["fix"]


def test_a_node_of_another_cluster_with_the_same_name_is_not_condemned(accepted):
    others = [{**machine, "address": "10.99.0.1"} for machine in MACHINES]
    assert reported(accepted, others) == []


def test_good_nodes_are_not_mentioned(accepted):
    good = [machine for machine in MACHINES if machine["name"] != "NODE3"]
    assert reported(accepted, good) == []


def test_a_node_that_was_not_judged_with_the_others_is_named(accepted):
    new = {"name": "NODE5", "nodes": ["NODE5"], "address": "10.11.0.6", "local": False, "slots": 1}
    assert reported(accepted, [MACHINES[0], new]) == [
        ("warn", ["NODE5"], "was not judged with the other nodes")
    ]


def test_an_old_verdict_is_named_with_its_age(accepted):
    assert reported(accepted, MACHINES[:1], days=7) == [("warn", ["NODE1"], "was judged 8 days ago")]


def test_another_gpu_than_was_judged_is_named(accepted):
    probed = copy.deepcopy(PROBED)
    probed["NODE1"]["facts"]["smi"]["gpus"][0]["uuid"] = "GPU-new"
    assert reported(accepted, MACHINES[:1], probed) == [
        ("warn", ["NODE1"], "has other GPUs than were judged")
    ]


def test_a_file_of_another_version_is_named(accepted):
    assert reported({**accepted, "schema": 1}, MACHINES[:1]) == [
        ("warn", ["NODE1"], "acceptance.json is from another version of scalebook")
    ]


def test_without_an_acceptance_there_is_nothing_to_say(tmp_path):
    assert reported(acceptance.read(tmp_path / "acceptance.json")) == []


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    path = tmp_path / "acceptance.json"
    path.write_text(json.dumps([1]))
    with pytest.raises(ValueError, match=r"acceptance.json: is not a JSON object"):
        acceptance.read(path)


def row_of(quantity="best_bf16", rate=512.0, unit="TFLOP/s", ratio=512 / 790, verdict="bad"):
    """Return the finding of acceptance.json on a GPU of NODE1."""
    named = {"part": "NODE1 GPU0", "nodes": ["NODE1"], "quantity": quantity, "against": "equals"}
    return {**named, "verdict": verdict, "rate": rate, "unit": unit, "ratio": ratio, "measurements": 4}


def test_a_condemned_node_is_named_with_its_rate_and_what_was_expected(accepted):
    made = {
        **accepted,
        "findings": [row_of()],
        "bad": ["NODE1"],
        "reasons": {"NODE1": reasons.of_part(row_of())},
    }
    ((_, _, text),) = reported(made, MACHINES[:1])
    assert text.endswith("NODE1 GPU0 best_bf16 512 of 790 TFLOP/s expected (64.8% of its equals)")


def test_a_node_without_a_verdict_is_named_with_its_rate_and_what_was_expected(accepted):
    row = row_of("launch", 1e6 / 8, "1/s", 5 / 8, "unclear")
    made = {**accepted, "findings": [row], "bad": [], "unclear": ["NODE1"]}
    ((_, _, text),) = reported(made, MACHINES[:1])
    assert text.endswith("no verdict; NODE1 GPU0 launch 8 of 5 µs expected (62.5% of its equals)")
