# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The chart of one run of each case, made from recordings of real runs."""

import re

import pytest
from ansible.module_utils.scalebook.judge import runs
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.report import timeline
from ansible.module_utils.scalebook.store.load import load_campaign
from in_english import in_english
from recordings import containers, torch_bert
from report_records import campaign, case, record


def drawings(document):
    return timeline.charts(document["timelines"], document["groups"])


def report(tmp_path, *records):
    return build_results(load_campaign(campaign(tmp_path, records)))


def test_a_recorded_run_is_drawn_with_its_window(tmp_path):
    made = report(tmp_path, torch_bert(64))
    [line] = made["timelines"]
    assert (line["case"], line["repeat"], line["node"], line["gpus"]) == (
        made["rows"][0]["case"],
        1,
        "NODE1",
        1,
    )
    assert (line["begin"], line["window"], line["step"]) == (-10.0, 9.119, 1.0)
    assert sorted(line["lines"]) == [
        "cpu",
        "disk",
        "gpu",
        "gpu_memory",
        "gpu_power",
        "memory",
        "network",
        "sm_active",
    ]
    in_window = line["lines"]["sm_active"][10:19]
    assert sum(in_window) / len(in_window) == pytest.approx(43.76, abs=0.2)
    [drawn] = drawings(made)
    assert "GPU utilisation, SM active, CPU" in drawn["svg"]
    # The scale goes from -10 to 10 s over 292 pixels: the window begins in the middle.
    [(x, width)] = set(
        re.findall(r'<rect class="window" x="([\d.]+)" y="\d+" width="([\d.]+)"', drawn["svg"])
    )
    assert (x, width) == ("196.0", "133.1")


def test_without_gpus_the_chart_has_no_panel_for_them(tmp_path):
    [drawn] = drawings(report(tmp_path, containers()))
    assert "GPU" not in drawn["svg"]
    assert drawn["svg"].count('class="window"') == 3


def test_a_chart_of_a_recorded_run_stays_small(tmp_path):
    [drawn] = drawings(report(tmp_path, torch_bert(512)))
    assert len(drawn["svg"]) < 6000


def test_the_run_nearest_to_the_median_is_shown(tmp_path):
    of, telemetry = case(), torch_bert(64)["telemetry"]
    records = [
        record(of, repeat, rate, telemetry=telemetry) for repeat, rate in ((1, 90.0), (2, 130.0), (3, 100.0))
    ]
    [line] = report(tmp_path, *records)["timelines"]
    assert line["repeat"] == 3


def test_a_run_without_readings_has_no_chart(tmp_path):
    made = report(tmp_path, record(case(), telemetry=[{"node": "A", "reason": "killed"}]))
    assert made["timelines"] == [] and drawings(made) == []


def test_cases_that_are_not_drawn_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(timeline, "DRAWN", 1)
    made = report(tmp_path, torch_bert(64), torch_bert(512))
    assert len(drawings(made)) == 1
    assert timeline.rule(len(made["timelines"])).endswith("is shaded. 1 more case in results.json.")


@pytest.mark.parametrize("line", [{"begin": 0}, 7, {"begin": 0, "step": 0, "window": 1, "columns": {}}])
def test_a_timeline_that_makes_no_sense_leaves_the_rate_and_a_note(line):
    run = runs.digest(record(case(), telemetry=[{"node": "A", "timeline": line}]))
    assert run["rate"] == pytest.approx(100.0) and run["timeline"] is None
    assert any("timeline cannot be used" in note for note in in_english(run["notes"]))
