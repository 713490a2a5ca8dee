# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The file of criteria: its thresholds count instead of the defaults, and mistakes in it are refused."""

import pytest
from ansible.module_utils.scalebook.accept import criteria, document
from ansible.module_utils.scalebook.accept.verdict import Criteria

COMMON = Criteria()
LINE = {"name": "A", "traces": {}, "problems": {}}


def verdicts(content, *rates):
    lines = [
        {**LINE, "nodes": [f"NODE{index}"], "rates": {"GPU0": {"copy": rate}}}
        for index, rate in enumerate(rates, 1)
    ] * 6
    rows = document.findings(lines, [], criteria.read(content, COMMON))
    return [row["verdict"] for row in rows]


def test_a_share_of_a_quantity_counts_instead_of_the_common_one():
    rates = (100.0, 100.2, 99.8, 90.0)
    assert verdicts({}, *rates)[-1] == "bad"
    assert verdicts({"quantities": {"copy": {"least": 75}}}, *rates)[-1] == "good"


@pytest.mark.parametrize(("rate", "verdict"), [(104, "bad"), (96, "good")])
def test_parts_that_are_equal_are_bad_where_all_are_below_the_rate_that_is_asked_for(rate, verdict):
    content = {"quantities": {"copy": {"at_least": rate}}}
    assert set(verdicts(content, 100.0, 100.2, 99.8, 100.1)) == {verdict}


def test_a_rate_is_enough_to_judge_a_single_part():
    assert verdicts({"quantities": {"copy": {"at_least": 90}}}, 100.0) == ["good"]


def test_title_share_and_measurements_are_those_of_the_file():
    wanted = criteria.read({"title": "Tender 7", "least": 97, "measurements": 5}, COMMON)
    assert (wanted.title, wanted.common.least, wanted.common.most) == ("Tender 7", 0.97, 5)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"lest": 90}, "the file has lest; allowed are title, least, measurements, quantities"),
        ({"quantities": {"cpoy": {"least": 90}}}, "quantities has cpoy; allowed are matmul_fp32"),
        ({"quantities": {"copy": {"most": 90}}}, "copy has most; allowed are least, at_least"),
        (
            {"quantities": {"copy": {"least": 100}}},
            "copy: least=100; it must be a number above 0 and below 100",
        ),
        ({"quantities": {"copy": {"at_least": "fast"}}}, "copy: at_least=fast; it must be a number above 0"),
        ({"quantities": {"copy": 90}}, "copy must have keys with values"),
        ({"least": True}, "least=True"),
        ({"measurements": 0}, "measurements=0; it must be a whole number from 1 to 1000"),
        ({"title": 7}, "title=7; it must be text"),
        (["copy"], "the file must have keys"),
    ],
)
def test_a_mistake_is_refused_with_what_is_allowed(content, problem):
    with pytest.raises(ValueError, match=problem):
        criteria.read(content, COMMON)


def test_everything_that_has_a_default_of_its_own_is_a_quantity():
    assert set(criteria.BY_DEFAULT) <= set(criteria.QUANTITIES)
