# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""reading=printed: the printed rates count, the report says so, and a run without them does not count."""

import pytest
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.store.load import load_campaign
from report_records import campaign, case, record


def printed(repeat, rate, stamps=100.0):
    """Return a record whose stamps give `stamps` samples/s and whose log prints `rate` for each step."""
    made = record(case(), repeat, stamps)
    made["nodes"][0]["rates"] = [rate] * len(made["nodes"][0]["steps"])
    return made


@pytest.fixture
def top(tmp_path):
    return campaign(tmp_path, [printed(1, 104.0), printed(2, 105.0), record(case(), 3)])


def rates(document):
    return [(run["time_source"], run["rate"]) for run in document["rows"][0]["runs"]]


def test_time_stamps_count_by_default(top):
    document = build_results(load_campaign(top))
    assert [round(rate, 6) for _, rate in rates(document)] == [100.0] * 3
    assert not [note for note in document["notes"] if note["code"] == "note.printed-rates"]


def test_printed_rates_count_when_asked_for_and_stamps_are_the_second_source(top):
    document = build_results(load_campaign(top, "printed"))
    assert rates(document) == [("rates", pytest.approx(104.0)), ("rates", pytest.approx(105.0))]
    assert document["rows"][0]["runs"][0]["second"]["time_source"] == "times"


def test_the_report_says_that_printed_rates_count(top):
    (note, *_) = build_results(load_campaign(top, "printed"))["notes"]
    assert note["code"] == "note.printed-rates"


def test_a_run_without_printed_rates_does_not_count(top):
    [lost] = build_results(load_campaign(top, "printed"))["uncounted"]
    assert lost["reason"]["values"]["why"]["code"] == "reason.no-rates"
