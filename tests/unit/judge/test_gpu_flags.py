# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Flags of GPUs: which one, for which share of the window."""

import pytest
from ansible.module_utils.scalebook.judge import runs
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.pages.catalogue import sentence
from ansible.module_utils.scalebook.store.load import load_campaign
from in_english import in_english
from recordings import recorded, torch_bert
from report_records import campaign, case, record

CODES = ("power-limited", "throttled", "gpu-swings")


def node(name, gpus):
    """Return telemetry of a node; `gpus` are (idle share, highest utilisation, throttle_thermal share)."""
    quantities = {}
    for index, (_, highest, thermal) in enumerate(gpus):
        quantities[f"gpu:{index}:utilization"] = {"mean": 50.0, "max": highest}
        quantities[f"gpu:{index}:throttle_thermal"] = {"mean": thermal}
    idle = {str(index): share for index, (share, _, _) in enumerate(gpus)}
    return {"node": name, "quantities": quantities, "gpu_idle": idle, "about": {}}


def flags(tmp_path, *records):
    made = build_results(load_campaign(campaign(tmp_path, records)))
    return [
        (flag["code"], sentence(flag["message"]))
        for row in made["rows"]
        for flag in row["flags"]
        if flag["code"] in CODES
    ]


def test_a_recorded_run_at_the_power_limit_is_flagged(tmp_path):
    """torch_bert at batch 512 drew 693 of 700 W; at batch 64 the same GPU drew 433 W."""
    assert flags(tmp_path, torch_bert(64), torch_bert(512)) == [
        ("power-limited", "the power limit held the clocks down: NODE1 GPU 0 for 100 % of the window")
    ]


def test_a_gpu_whose_driver_reports_the_limit_after_short_bursts_is_not_flagged(tmp_path):
    """It drew 269 of 700 W on average, and the driver reported the limit for 91 % of the window."""
    [node] = recorded("h200_made_loader_main")
    assert node["quantities"]["gpu:0:throttle_power_cap"]["mean"] == pytest.approx(0.909, abs=0.001)
    assert flags(tmp_path, record(case(), 1, telemetry=[node])) == []


def test_a_gpu_that_swings_is_named_with_its_idle_share(tmp_path):
    nodes = [node("A", [(0.0, 100, 0), (0.31, 98, 0)]), node("B", [(0.12, 100, 0), (0.04, 99, 0)])]
    assert flags(tmp_path, record(case(2, 2), 1, telemetry=nodes)) == [
        (
            "gpu-swings",
            "GPUs swing between idle and busy; idle: A GPU 1 for 31 % of the window (1 more, from 12 % on)",
        )
    ]


@pytest.mark.parametrize("gpu", [(0.04, 100, 0.04), (1.0, 8, 0), (0.9, 79, 0)])
def test_a_gpu_that_is_steadily_busy_or_steadily_idle_is_not_flagged(tmp_path, gpu):
    assert flags(tmp_path, record(case(), 1, telemetry=[node("A", [gpu])])) == []


def test_a_share_is_the_mean_over_the_runs_that_count(tmp_path):
    of = case()
    records = [
        record(of, 1, 100.0, telemetry=[node("A", [(0, 100, 0.2)])]),
        record(of, 2, 101.0, telemetry=[node("A", [(0, 100, 0.0)])]),
        record(of, 3, None, telemetry=[node("A", [(0, 100, 1.0)])]),
    ]
    assert flags(tmp_path, *records) == [
        ("throttled", "the temperature held the clocks down: A GPU 0 for 10 % of the window")
    ]


def test_gpus_that_make_no_sense_leave_the_rate_and_a_note():
    bad = node("A", [(0, 100, "x")])
    run = runs.digest(record(case(), telemetry=[bad]))
    assert run["rate"] and run["gpus"] == []
    assert any("telemetry cannot be used" in note for note in in_english(run["notes"]))
