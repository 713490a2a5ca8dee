# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The verdict on parts: rules, and how often it is wrong on simulated fleets."""

import fleets
import pytest
from ansible.module_utils.scalebook.accept import verdict

CRITERIA = verdict.Criteria()


def verdicts(rates, criteria=CRITERIA):
    return [each.verdict for each in verdict.against_equals(rates, criteria, len(rates)).values()]


def turned(*rates):
    """Return the rates of four parts that scatter alike, but not at the same time."""
    return {f"NODE{index}": [*rates[index:], *rates[:index]] for index in range(4)}


def of_values(value, *rates):
    [found] = verdict.against_value({"GPU0": rates}, value, CRITERIA, 1).values()
    return found


def test_a_part_that_is_slow_again_and_again_is_bad():
    rates = {f"NODE{index}": [100.0, 100.2, 99.9] for index in range(7)}
    assert verdicts({**rates, "NODE8": [95.0, 94.8, 95.1]}) == ["good"] * 7 + ["bad"]


def test_one_slow_measurement_condemns_nobody():
    rates = {f"NODE{index}": [100.0, 100.2] for index in range(7)}
    assert verdicts({**rates, "NODE8": [50.0]})[-1] == "open"
    assert verdicts({**rates, "NODE8": [50.0, 100.1, 100.0]})[-1] == "good"


def test_a_part_that_is_slow_no_more_often_than_its_equals_is_not_bad():
    rates = {f"NODE{index}": [100.0, 80.0, 100.2, 99.9] for index in range(7)}
    assert verdicts({**rates, "NODE8": [80.0, 79.8, 80.1]})[-1] == "open"
    assert verdicts({**rates, "NODE8": [80.0, 79.8, 80.1] * 3})[-1] == "bad"


def test_least_says_which_part_is_slow():
    rates = {f"NODE{index}": [100.0, 100.2, 99.9] for index in range(7)} | {"NODE8": [90.0, 90.2, 89.9]}
    assert verdicts(rates)[-1] == "bad"
    assert verdicts(rates, CRITERIA._replace(least=0.8))[-1] == "good"


def test_equal_parts_that_scatter_too_much_for_a_verdict_are_unclear():
    assert set(verdicts(turned(*[100.0, 60.0, 140.0, 80.0, 120.0] * 4))) == {"unclear"}


def test_parts_that_scatter_hopelessly_are_unclear_after_six_measurements():
    rates = turned(100.0, 60.0, 140.0, 80.0, 120.0, 90.0)
    assert set(verdicts({part: values[:5] for part, values in rates.items()})) == {"open"}
    assert set(verdicts(rates)) == {"unclear"}


def test_a_part_that_is_far_slower_than_the_others_scatter_is_bad():
    rates = turned(100.0, 60.0, 140.0, 80.0, 120.0, 90.0)
    found = verdicts({**rates, "NODE5": [20.0, 12.0, 28.0, 20.0, 22.0, 20.0]})
    assert found == ["unclear"] * 4 + ["bad"]


def test_a_time_at_which_all_parts_are_slow_is_no_fault_of_one_and_hides_none():
    times = [100.0, 60.0, 101.0, 75.0, 99.0]
    rates = {f"NODE{index}": [time * (1 + index / 1000) for time in times] for index in range(4)}
    assert set(verdicts(rates)) == {"good"}
    assert verdicts({**rates, "NODE5": [time * 0.9 for time in times]}) == ["good"] * 4 + ["bad"]


def test_a_slow_half_is_bad_where_it_is_far_slower_than_the_other_half():
    """As two of four nodes on a core that another process takes."""
    slow = {f"NODE{index}": [55.0, 54.0, 56.0, 55.5] for index in (1, 2)}
    fast = {f"NODE{index}": [100.0, 101.0, 99.0, 100.5] for index in (3, 4)}
    assert verdicts({**slow, **fast}) == ["bad"] * 2 + ["good"] * 2


def test_halves_that_differ_by_less_are_compared_with_the_median_of_all():
    slow = {f"NODE{index}": [97.0, 97.1, 96.9, 97.0] for index in (1, 2)}
    fast = {f"NODE{index}": [100.0, 100.1, 99.9, 100.0] for index in (3, 4)}
    assert verdicts({**slow, **fast}) == ["good"] * 4


def test_two_parts_do_not_say_which_of_them_is_slow():
    assert verdicts({"NODE1": [100.0] * 9, "NODE2": [50.0] * 9}) == ["no reference"] * 2


def test_few_parts_are_measured_more_than_once_before_any_verdict():
    assert set(verdicts({f"NODE{index}": [100.0] for index in range(7)})) == {"open"}
    assert set(verdicts({f"NODE{index}": [100.0] for index in range(8)})) == {"good"}


@pytest.mark.parametrize("wrong", [0.0, -1.0, float("nan"), float("inf")])
def test_a_rate_that_is_not_one_is_refused_with_the_part(wrong):
    with pytest.raises(ValueError, match=f"NODE2: {wrong}; a part is judged by rates above zero"):
        verdicts({"NODE1": [1.0], "NODE2": [wrong], "NODE3": [1.0]})


def test_a_part_without_a_rate_is_refused():
    with pytest.raises(ValueError, match="NODE1: no rate"):
        verdicts({"NODE1": [], "NODE2": [1.0], "NODE3": [1.0]})


def test_a_published_value_is_reached_missed_or_not_decided_yet():
    assert of_values(100, 99.0).verdict == "good"
    assert of_values(100, 92.0, 92.0, 92.0).verdict == "bad"
    assert of_values(100, 92.0) == verdict.Finding("open", 0.92, 1)


def test_healthy_parts_are_condemned_in_at_most_one_fleet_of_a_hundred_and_slow_ones_found_19_times_of_20():
    """Takes three seconds."""
    errors = fleets.Errors(2000)
    assert errors.condemned <= 0.01
    assert errors.found >= 0.95
    # A fixed number with these errors takes 5 measurements of each part (tests/bench/acceptance).
    assert errors.measurements < 1.2
    assert errors.measurements_of_slow < 5


def test_on_a_busy_machine_a_healthy_part_is_condemned_in_at_most_two_fleets_of_a_hundred():
    """One measurement of five is disturbed. Takes a second."""
    errors = fleets.Errors(600, disturbed=0.2, sizes=(4, 6, 8, 16))
    assert errors.condemned <= 0.02
    assert errors.found >= 0.9
