# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Runs of a campaign as they are read: the same log counts once."""

import pytest
from ansible.module_utils.scalebook.judge import flags
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.report import terminal
from ansible.module_utils.scalebook.store.load import load_campaign
from dlperf_logs import log_of_speed
from dlperf_trees import place, read
from in_english import in_english
from report_records import campaign, case, record


def with_log(made, sha256):
    made["nodes"][0]["sha256"] = sha256
    return made


def counted(path):
    return {(run["case"], run["repeat"]) for run in load_campaign(path).runs if run["rate"]}


def test_two_runs_with_the_same_log_count_as_one(tmp_path):
    made = [with_log(record(case(), repeat), "a" * 64) for repeat in (1, 2)]
    top = campaign(tmp_path, [*made, record(case(), 3)])
    assert counted(top) == {(case()["name"], 1), (case()["name"], 3)}


def test_the_report_names_both_runs_with_the_same_log(tmp_path):
    top = campaign(tmp_path, [with_log(record(case(), repeat), "a" * 64) for repeat in (1, 2)])
    made = build_results(load_campaign(top))
    (entry,) = made["uncounted"]
    assert (entry["repeat"], entry["status"]) == (2, "refused")
    assert in_english(entry["reason"]) == (
        f"its log has the same content as that of runs/{case()['name']}/1: the same log counts as one run"
    )
    assert in_english(entry["reason"]) in terminal.display(made, "report.html")
    assert flags.flag("runs", good=1, planned=2) in made["rows"][0]["flags"]


def test_a_log_that_was_copied_to_another_case_counts_once(tmp_path):
    made = [with_log(record(of, 1), "a" * 64) for of in (case(), case(1, 2))]
    assert counted(campaign(tmp_path, made)) == {(case()["name"], 1)}


def test_a_log_that_does_not_count_excludes_no_other(tmp_path):
    made = [with_log(record(case(), 1, None), "a" * 64), with_log(record(case(), 2), "a" * 64)]
    assert counted(campaign(tmp_path, made)) == {(case()["name"], 2)}


def test_runs_whose_logs_have_no_checksum_all_count(tmp_path):
    made = [with_log(record(case(), repeat), None) for repeat in (1, 2)]
    assert len(counted(campaign(tmp_path, made))) == 2


@pytest.mark.parametrize("limit", [4 << 20, 10])
def test_a_log_that_was_copied_before_an_import_counts_once_whatever_its_size(tmp_path, monkeypatch, limit):
    monkeypatch.setattr("ansible.module_utils.scalebook.read.import_dlperf.CHECKSUM_LIMIT", limit)
    names = [f"1n1g/bert_b64_fp32_{repeat}.log" for repeat in (1, 2, 3)]
    place(tmp_path / "logs", *names[:2])
    place(tmp_path / "logs", names[2], text=log_of_speed(131.0))
    read(tmp_path / "logs", tmp_path / "out")
    assert {repeat for _, repeat in counted(tmp_path / "out")} == {1, 3}
    (entry,) = build_results(load_campaign(tmp_path / "out"))["uncounted"]
    assert "that of logs/1n1g/bert_b64_fp32_1.log:" in in_english(entry["reason"])
