# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Against an earlier campaign: what is a difference and what is noise."""

import random

import pytest
from ansible.module_utils.scalebook.contracts import message
from ansible.module_utils.scalebook.judge import baseline
from ansible.module_utils.scalebook.workload import Was, Workload
from dlperf_figures import SPEEDS_BY_SIZE as SPEEDS
from noise import SPREAD_1_PERCENT
from report_records import case


def row(rates, **of):
    each = case(**of)
    return {**each, "case": each["name"], "runs": [{"rate": rate} for rate in rates]}


def rows(rates):
    return [row(each, nodes=nodes, gpus=gpus) for (nodes, gpus), each in rates.items()]


def noisy(source, count, noise, speed=100.0):
    return [source.gauss(speed, noise * speed) for _ in range(count)]


def verdicts(now, before, **limit):
    return [entry["verdict"] for entry in baseline.compare(now, before, **limit)["rows"]]


def test_the_same_campaign_is_the_same():
    made = baseline.compare(rows(SPEEDS), rows(SPEEDS))
    assert {entry["verdict"] for entry in made["rows"]} == {"same"}
    assert [entry["ratio"] for entry in made["rows"]] == [1.0] * 6
    assert made["regressions"] == 0


def test_rates_in_another_unit_are_not_compared():
    now, before = row([100.0] * 3), {**row([200.0] * 3), "unit": "tokens"}
    (entry,) = baseline.compare([now], [before])["rows"]
    assert (entry["verdict"], entry["ratio"]) == ("n/a", None)
    assert entry["why"] == message("compare.units", now="samples", before="tokens")


def test_printed_rates_are_not_compared_with_those_of_time_stamps():
    now, before = row([100.0] * 3), row([200.0] * 3)
    for run in before["runs"]:
        run["time_source"] = "rates"
    (entry,) = baseline.compare([now], [before])["rows"]
    assert (entry["verdict"], entry["regression"]) == ("n/a", False)


def test_200_bootstrapped_pairs_of_dlperfs_campaign_raise_no_false_alarm():
    source = random.Random(28)
    for _ in range(200):
        pair = [rows({at: source.choices(rates, k=5) for at, rates in SPEEDS.items()}) for _ in range(2)]
        assert set(verdicts(*pair)) == {"same"}


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.01, 0.03])
@pytest.mark.parametrize("repeats", [3, 5, 7])
@pytest.mark.parametrize(("cases", "comparisons"), [(1, 2000), (6, 600)])
def test_at_most_1_comparison_of_100_with_the_same_thing_raises_a_false_alarm(
    cases, comparisons, repeats, noise
):
    source = random.Random(29)
    alarms = 0
    for _ in range(comparisons):
        pair = [[row(noisy(source, repeats, noise), nodes=n + 1) for n in range(cases)] for _ in range(2)]
        alarms += set(verdicts(*pair)) != {"same"}
    assert alarms <= comparisons / 100


@pytest.mark.slow
@pytest.mark.parametrize("cases", [1, 6, 20])
def test_a_slowdown_of_5_percent_at_a_spread_of_1_percent_is_found_19_times_of_20_with_5_repeats(cases):
    source = random.Random(30)
    found = 0
    for _ in range(200):
        now, before = (
            [row(noisy(source, 5, SPREAD_1_PERCENT, speed), nodes=n + 1) for n in range(cases)]
            for speed in (95.0, 100.0)
        )
        found += baseline.compare(now, before)["regressions"]
    assert found >= 0.95 * 200 * cases


def test_one_slow_run_among_five_is_no_slowdown():
    made = baseline.compare([row([70, 100.1, 99.9, 100, 100])], [row([100, 100.1, 99.9, 100, 100])])
    assert [entry["verdict"] for entry in made["rows"]] == ["same"]


def test_the_more_rows_are_compared_the_larger_a_difference_has_to_be():
    def margin(cases):
        rates = [100, 102, 98]
        here = [row(rates, nodes=n + 1) for n in range(cases)]
        return baseline.compare(here, here)["rows"][0]["margin"]

    assert margin(20) > margin(1) > baseline.EFFECT


def test_a_speedup_is_no_regression():
    made = baseline.compare([row([110, 111, 109.5])], [row([100, 101, 99.5])])
    assert ([entry["verdict"] for entry in made["rows"]], made["regressions"]) == (["faster"], 0)


def test_slower_by_less_than_the_limit_is_said_and_no_regression():
    made = baseline.compare([row([95, 95.1, 94.9])], [row([100, 100.1, 99.9])], limit=0.1)
    assert ([entry["verdict"] for entry in made["rows"]], made["regressions"]) == (["slower"], 0)


def test_the_ratio_of_five_repeats_has_a_range_and_no_interval():
    (entry,) = baseline.compare([row([95, 96, 94])], [row([100, 101, 99])])["rows"]
    assert (entry["range"], entry["interval"]) == ([94 / 101, 96 / 99], None)


def test_the_interval_of_a_ratio_of_six_repeats_holds_it():
    (entry,) = baseline.compare([row([95, 96, 94] * 2)], [row([100, 101, 99] * 2)])["rows"]
    low, high = entry["interval"]
    assert low <= entry["ratio"] == 0.95 <= high < 1


@pytest.mark.parametrize("rates", [[], [50.0], [50.0, 50.0]])
def test_fewer_than_three_repeats_decide_nothing(rates):
    (entry,) = baseline.compare([row(rates)], [row([100.0] * 3)])["rows"]
    assert entry["verdict"] == "n/a"
    assert entry["why"] == message("compare.too-few", now=len(rates), before=3, needed=3)


def test_rows_of_only_one_of_them_are_listed():
    now, before = [row([100.0] * 3), row([1.0], bsz=8)], [row([100.0] * 3), row([1.0], nodes=9)]
    made = baseline.compare(now, before)
    assert [each["bsz"] for each in made["only_here"]] == [8]
    assert [each["label"] for each in made["only_there"]] == ["9n1g"]


@pytest.mark.parametrize("other", [{"dtype": "fp16"}, {"settings": {"seq": 512}}, {"accumulation": 2}])
def test_what_did_other_work_is_not_compared(other):
    with pytest.raises(baseline.BaselineError, match="no case in common"):
        baseline.compare([row([100.0] * 3)], [row([100.0] * 3, **other)])


DECLARED = {"tf2_bert": Workload(settings_before={"loader": "auto"})}


def test_a_case_of_before_there_was_a_setting_had_the_value_that_is_declared():
    now = [row([90.0] * 3, settings={"seq": 128, "loader": "auto"})]
    before = [row([100.0] * 3, settings={"seq": 128})]
    made = baseline.compare(now, before, declared=DECLARED)
    assert ([each["ratio"] for each in made["rows"]], made["only_here"], made["only_there"]) == (
        [0.9],
        [],
        [],
    )


# A workload without its setting `trainer`, and one that was a value of it.
SPLIT = {
    name: Workload(name=name, was=Was("tf2_bert", {"trainer": trainer}))
    for name, trainer in (("tf2_bert", "own"), ("of_others", "theirs"))
}


@pytest.mark.parametrize(("workload", "trainer"), [("tf2_bert", "own"), ("of_others", "theirs")])
def test_a_case_is_compared_with_what_it_was_called_before(workload, trainer):
    now = [row([90.0] * 3, workload=workload, settings={"seq": 128})]
    before = [row([100.0] * 3, settings={"seq": 128, "trainer": trainer})]
    made = baseline.compare(now, before, declared=SPLIT)
    assert ([each["ratio"] for each in made["rows"]], made["only_here"]) == ([0.9], [])


def test_another_value_than_that_of_before_is_another_case():
    now, before = [row([90.0] * 3, settings={"loader": "dali"})], [row([100.0] * 3)]
    with pytest.raises(
        baseline.BaselineError, match='settings is {"loader": "dali"} here and {"loader": "auto"} there'
    ):
        baseline.compare(now, before, declared=DECLARED)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "has no rows"),
        ({"rows": [], "schema": 4}, "has schema 4, this report reads 2"),
        ({"rows": [], "schema": 1}, "has schema 1, this report reads 2"),
        ({"rows": [{}], "schema": 2}, "a row lacks its case"),
        ({"rows": [row([float("nan")])], "schema": 2}, "not a positive number"),
        ({"rows": [row([True])], "schema": 2}, "not a positive number"),
        ({"rows": [{**row([]), "runs": [{}]}], "schema": 2}, "a run without a rate"),
        ({"rows": [{**row([1.0]), "hardware": ["x"]}], "schema": 2}, "hardware"),
        ({"rows": [{**row([1.0]), "machines": "two"}], "schema": 2}, "machines"),
    ],
)
def test_what_is_no_result_is_refused(document, said):
    with pytest.raises(baseline.BaselineError, match=said):
        baseline.check(document)


def test_a_result_with_sentences_is_read_with_messages():
    flags = [{"code": "runs", "text": "2/3 repeats valid"}]
    before = {**row([1.0]), "runs": [{"rate": 1.0, "notes": ["step 7 took long"]}], "flags": flags}
    (read,) = baseline.check({"schema": 2, "rows": [before]})
    assert read["runs"][0]["notes"] == [message("text", text="step 7 took long")]
    assert read["flags"] == [{"code": "runs", "message": message("text", text="2/3 repeats valid")}]


@pytest.mark.parametrize(("text", "limit"), [("3%", 0.03), ("3 %", 0.03), (0.05, 0.05), ("0.5%", 0.005)])
def test_a_limit_is_per_cent_or_a_fraction(text, limit):
    assert baseline.read_limit(text) == pytest.approx(limit)


@pytest.mark.parametrize("text", ["", "3", "-3%", "nan%", "x", "100%"])
def test_a_limit_that_is_none_is_refused(text):
    with pytest.raises(baseline.BaselineError, match="must be a share such as"):
        baseline.read_limit(text)
