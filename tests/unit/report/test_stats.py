"""Statistics: what a figure is made of, and when there is none."""

import statistics

import pytest
from ansible.module_utils.scalebook.report import stats
from hypothesis import given
from hypothesis import strategies as st

# DLPerf's published runs of TF2 BERT: fp32 b64, 1n1g.
ONE_GPU = [114.95, 113.55, 111.67, 112.99, 112.71]

numbers = st.lists(st.floats(min_value=1e-3, max_value=1e6), min_size=1, max_size=9)


def test_the_summary_of_dlperfs_five_repeats():
    result = stats.summary(ONE_GPU)
    assert result["median"] == 112.99
    assert result["mean"] == pytest.approx(113.174)
    assert (result["min"], result["max"]) == (111.67, 114.95)
    assert result["spread"] == pytest.approx(0.029029, rel=1e-4)
    assert result["cv"] == pytest.approx(1.0651, rel=1e-3)


def test_one_repeat_has_no_spread():
    result = stats.summary([100.0])
    assert result["spread"] is None
    assert result["cv"] is None


@pytest.mark.parametrize("values", [[], [float("nan")], [1.0, float("inf")]])
def test_nothing_is_made_of_nothing(values):
    with pytest.raises(stats.StatsError):
        stats.summary(values)


def test_one_of_five_at_minus_30_percent_is_an_outlier_and_moves_the_median_by_nothing():
    values = [100.0, 100.1, 99.9, 100.05, 70.0]
    assert stats.outliers(values) == [4]
    assert abs(statistics.median(values) / 100 - 1) < 0.001


def test_dlperfs_own_repeats_hold_no_outlier():
    assert stats.outliers(ONE_GPU) == []


def test_repeats_that_agree_but_for_the_fourth_digit_hold_no_outlier():
    assert stats.outliers([100.0, 100.0, 100.0, 100.2]) == []


def test_an_outlier_among_identical_repeats_is_found():
    assert stats.outliers([100.0, 100.0, 100.0, 90.0]) == [3]


def test_two_repeats_never_accuse_each_other():
    assert stats.outliers([100.0, 50.0]) == []


def test_the_interval_is_the_same_every_time():
    first = stats.interval(stats.bootstrap_medians(ONE_GPU, "case"))
    assert first == stats.interval(stats.bootstrap_medians(ONE_GPU, "case"))


def test_the_seed_decides_the_draw():
    assert stats.bootstrap_medians(ONE_GPU, "a") != stats.bootstrap_medians(ONE_GPU, "b")


@given(numbers)
def test_the_interval_holds_the_median_and_stays_within_the_repeats(values):
    low, high = stats.interval(stats.bootstrap_medians(values, "x", resamples=200))
    assert min(values) <= low <= high <= max(values)


def test_the_interval_of_known_repeats():
    low, high = stats.interval(stats.bootstrap_medians(ONE_GPU, "x"))
    assert (low, high) == (111.67, 114.95)


def test_the_interval_covers_the_true_median_about_95_times_in_100():
    import random

    source = random.Random(1)
    hits = 0
    for trial in range(200):
        sample = [source.gauss(100, 1) for _ in range(15)]
        low, high = stats.interval(stats.bootstrap_medians(sample, str(trial), resamples=400))
        hits += low <= 100 <= high
    assert 180 <= hits <= 199


def test_the_quotient_of_two_sets_of_medians():
    assert stats.ratio_interval([8.0, 8.0], [2.0, 2.0]) == (4.0, 4.0)


def test_percentiles_are_linear_between_neighbours():
    result = stats.percentiles([float(i) for i in range(101)])
    assert (result["p50"], result["p95"], result["p99"]) == (50.0, 95.0, 99.0)
    assert stats.percentiles([1.0, 2.0])["p50"] == 1.5


@pytest.mark.parametrize(
    ("first", "last", "verdict"),
    [
        (1.00, 1.00, None),
        (1.00, 1.029, None),
        (1.00, 1.04, "slowing down"),
        (1.04, 1.00, "warm-up not over"),
    ],
)
def test_the_first_quarter_is_held_against_the_last(first, last, verdict):
    assert stats.steadiness([first] * 25 + [1.0] * 50 + [last] * 25) == verdict


def test_a_handful_of_steps_says_nothing_about_steadiness():
    assert stats.drift([1.0, 9.0, 9.0]) is None
