# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Ranges, intervals and flags keep what the report promises of them, on simulated runs with fixed seeds.

tests/bench/statistics measures the same with more draws.
"""

import noise
import numpy as np
import pytest
from ansible.module_utils.scalebook import stats

DRAWS = 4000

pytestmark = pytest.mark.slow


@pytest.fixture
def source():
    return np.random.default_rng(18)


def covered(limits, truth):
    return sum(low <= truth <= high for low, high in limits) / len(limits)


@pytest.mark.parametrize(("runs", "share"), [(3, 0.75), (4, 0.875), (5, 0.9375)])
def test_the_range_of_few_runs_covers_the_true_median_as_often_as_the_page_says(source, runs, share):
    limits = [(min(each), max(each)) for each in noise.rates(source, DRAWS, runs, 0.01)]
    assert covered(limits, 100) == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize("kind", noise.DRAWS)
@pytest.mark.parametrize(("runs", "share"), [(6, 0.969), (7, 0.984), (10, 0.979)])
def test_the_95_percent_interval_of_the_median_covers_it_whatever_the_distribution(source, runs, share, kind):
    limits = [stats.median_interval(each) for each in noise.rates(source, DRAWS, runs, 0.01, kind)]
    assert covered(limits, 100) == pytest.approx(share, abs=0.01)


def test_runs_that_resemble_each_other_tell_less_than_the_interval_assumes(source):
    drawn = noise.rates(source, DRAWS, 10, 0.01, correlation=0.3)
    assert 0.90 < covered([stats.median_interval(each) for each in drawn], 100) < 0.95


@pytest.mark.parametrize("kind", noise.DRAWS)
@pytest.mark.parametrize("runs", [6, 7, 10])
def test_the_95_percent_interval_of_a_speedup_covers_it_19_times_of_20(source, runs, kind):
    above, below = (noise.rates(source, DRAWS, runs, 0.01, kind) for _ in range(2))
    limits = [stats.ratio_interval(*pair) for pair in zip(above, below, strict=True)]
    # It is wider than it needs to be for long tails.
    assert covered(limits, 1) == pytest.approx(0.95, abs=0.01 if kind == "normal" else 0.035)
    assert covered(limits, 1) >= 0.94


@pytest.mark.parametrize("runs", [6, 7, 10])
def test_a_speedup_over_a_case_that_scatters_three_times_as_much_is_covered_too(source, runs):
    above, below = (noise.rates(source, DRAWS, runs, scatter) for scatter in (0.01, 0.03))
    limits = [stats.ratio_interval(*pair) for pair in zip(above, below, strict=True)]
    assert 0.94 <= covered(limits, 1) <= 0.97


@pytest.mark.parametrize("scatter", [0.0043, 0.01, 0.03])
@pytest.mark.parametrize("runs", [5, 7, 10])
def test_at_most_1_percent_of_cases_without_an_outlier_have_one_flagged(source, runs, scatter):
    drawn = noise.rates(source, DRAWS, runs, scatter)
    # A share of 1 % of 4,000 draws has a standard error of 0.16 %.
    assert sum(bool(stats.outliers(each)) for each in drawn) / DRAWS <= 0.01 + 2 * 0.0016


def test_a_run_10_percent_off_is_found_19_times_of_20_in_five_runs_of_1_percent_spread(source):
    drawn = noise.rates(source, DRAWS, 5, noise.SPREAD_1_PERCENT)
    found = sum(stats.outliers([0.9 * first, *rest]) == [0] for first, *rest in drawn)
    assert found / DRAWS >= 0.95


@pytest.mark.parametrize("scatter", [0.005, 0.02, 0.1])
def test_at_most_4_percent_of_steady_windows_are_flagged(source, scatter):
    drawn = noise.windows(source, 1000, scatter=(scatter, scatter))
    assert sum(stats.steadiness(each) is not None for each in drawn) / 1000 <= 0.04


def test_a_drift_of_5_percent_is_found_in_9_windows_of_10(source):
    drawn = noise.windows(source, 2000, drift=0.05)
    assert sum(stats.steadiness(each) == "slowing-down" for each in drawn) / 2000 >= 0.9


@pytest.mark.parametrize("repeats", [3, 5, 7])
def test_at_most_1_percent_of_the_rows_of_clean_campaigns_carry_a_flag(source, repeats):
    rows = [row for _ in range(250) for row in noise.campaign(source, repeats)]
    assert noise.share_flagged(rows) <= 0.01


def test_a_case_with_a_run_10_percent_off_is_flagged_19_times_of_20(source):
    def plant(drawn):
        return [0.9 * drawn[0], *drawn[1:]]

    scatter = (0.0002, noise.SPREAD_1_PERCENT)
    rows = [row for _ in range(100) for row in noise.campaign(source, scatter=scatter, change=plant)]
    assert noise.share_flagged(rows, "outlier") >= 0.95


def test_a_case_that_slows_down_by_5_percent_is_flagged_19_times_of_20(source):
    rows = [row for _ in range(100) for row in noise.campaign(source, drift=0.05)]
    assert noise.share_flagged(rows, "slowing-down") >= 0.95
