"""Statistics: what a figure is made of, and when there is none."""

import math
import statistics

import pytest
from ansible.module_utils.scalebook import stats
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
    assert stats.outliers([100.0, 100.0, 100.0, 100.0, 90.0]) == [4]


def test_what_is_less_than_1_percent_off_is_no_outlier():
    assert stats.outliers([100.0, 100.0, 100.0, 100.0, 99.1]) == []


@pytest.mark.parametrize("values", [[100.0, 50.0], [100.0, 100.0, 50.0], [100.0, 100.1, 100.0, 50.0]])
def test_fewer_than_five_repeats_never_accuse_each_other(values):
    assert stats.outliers(values) == []


@pytest.mark.parametrize(
    ("probability", "freedom", "printed"),
    [
        # NIST e-Handbook, 1.3.6.7.2, and Abramowitz and Stegun, table 26.10.
        (0.975, 1, 12.706),
        (0.975, 2, 4.303),
        (0.975, 3, 3.182),
        (0.95, 4, 2.132),
        (0.995, 5, 4.032),
        (0.999, 8, 4.501),
        (0.9995, 7, 5.408),
        (0.975, 10, 2.228),
        (0.975, 30, 2.042),
        (0.995, 100, 2.626),
        (0.5, 4, 0.0),
    ],
)
def test_quantiles_of_t_are_those_of_the_tables(probability, freedom, printed):
    assert stats.t_quantile(probability, freedom) == pytest.approx(printed, abs=0.0005)


@pytest.mark.parametrize(("probability", "freedom"), [(1.0, 3), (0.4, 3), (0.975, 0)])
def test_a_quantile_that_does_not_exist_is_refused(probability, freedom):
    with pytest.raises(stats.StatsError):
        stats.t_quantile(probability, freedom)


PAIRS = (
    [100.0, 101.0, 99.5, 100.4, 100.2, 99.9, 100.6, 100.1],
    [100.3, 100.8, 99.4, 100.9, 100.0, 100.1, 100.2, 100.4],
)


def test_the_interval_of_runs_in_pairs_is_that_of_scipy():
    # exp of scipy 1.17.1's ttest_1samp(log(above / below), 0).confidence_interval(0.9)
    expected = pytest.approx((0.9995018756924656, 0.997395657674853, 1.0016125414478478), rel=1e-12)
    assert stats.equivalence(*PAIRS, 0.01)[:3] == expected


def test_the_interval_of_student_s_pairs_is_the_published_one():
    # Student, Biometrika 6, 1908: the mean 1.58 and, as R prints it, t = 4.0621; the table's t is 1.833.
    hours = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]
    result = stats.equivalence([math.exp(each) for each in hours], [1.0] * 10, 0.01)
    assert math.log(result.ratio) == pytest.approx(1.58)
    assert math.log(result.high) == pytest.approx(1.58 + 1.833 * 1.58 / 4.0621, abs=1e-3)


@pytest.mark.parametrize(("margin", "shown"), [(0.01, True), (0.003, True), (0.002, False)])
def test_equality_is_shown_where_the_whole_interval_is_within_the_margin(margin, shown):
    assert stats.equivalence(*PAIRS, margin).shown is shown


def test_runs_that_differ_by_more_than_the_margin_are_not_shown_to_be_equal_however_alike_they_are():
    assert not stats.equivalence([102.0, 102.0, 102.0], [100.0, 100.0, 100.0], 0.01).shown


@pytest.mark.parametrize(
    ("above", "below", "margin"),
    [
        ([1.0], [1.0], 0.01),
        ([1.0, 1.0], [1.0], 0.01),
        ([1.0, 1.0], [1.0, 0.0], 0.01),
        ([1.0] * 2, [1.0] * 2, 0),
    ],
)
def test_what_is_no_runs_in_pairs_has_no_equivalence(above, below, margin):
    with pytest.raises(stats.StatsError):
        stats.equivalence(above, below, margin)


@pytest.mark.parametrize(
    ("runs", "limits"), [(5, None), (6, (1, 6)), (8, (1, 8)), (9, (2, 8)), (10, (2, 9)), (20, (6, 15))]
)
def test_the_interval_of_the_median_is_that_of_the_tables_of_order_statistics(runs, limits):
    assert stats.median_interval(list(range(1, runs + 1))) == limits


@given(numbers)
def test_the_interval_holds_the_median_and_stays_within_the_repeats(values):
    values = values * 6
    low, high = stats.median_interval(values)
    assert min(values) <= low <= statistics.median(values) <= high <= max(values)


def test_the_range_of_a_quotient_is_that_of_all_its_pairs():
    assert stats.ratio_range([8.0, 9.0], [2.0, 3.0]) == (8 / 3, 4.5)


def test_fewer_than_six_runs_on_either_side_make_no_interval_of_a_quotient():
    six, five = [8.0, 8.1, 7.9, 8.0, 8.2, 7.8], [2.0, 2.1, 1.9, 2.0, 2.0]
    assert stats.ratio_interval(six, five) is None
    assert stats.ratio_interval(five, six) is None


def test_welchs_interval_of_a_quotient_worked_by_hand():
    # Logarithms 1..6 and 0..5: means 3.5 and 2.5, variances 3.5, error sqrt(7/6), 10 degrees of freedom.
    above, below = ([math.exp(i + shift) for i in range(6)] for shift in (1, 0))
    low, high = stats.ratio_interval(above, below)
    margin = 2.228139 * math.sqrt(7 / 6)
    assert (math.log(low), math.log(high)) == pytest.approx((1 - margin, 1 + margin), abs=1e-5)


def test_equal_rates_have_a_quotient_without_an_error():
    assert stats.ratio_interval([8.0] * 6, [2.0] * 6) == pytest.approx((4.0, 4.0))


def test_the_longest_of_one_value_is_their_mean():
    assert stats.mean_of_longest([1.0, 2.0, 6.0], 1) == pytest.approx(3.0)


def test_the_longest_of_many_dice_is_that_of_probability_theory():
    assert stats.mean_of_longest([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2) == pytest.approx(161 / 36)


def test_percentiles_are_linear_between_neighbours():
    result = stats.percentiles([float(i) for i in range(101)])
    assert (result["p50"], result["p95"], result["p99"]) == (50.0, 95.0, 99.0)
    assert stats.percentiles([1.0, 2.0])["p50"] == 1.5


@pytest.mark.parametrize(
    ("first", "last", "verdict"),
    [
        (1.00, 1.00, None),
        (1.00, 1.029, None),
        (1.00, 1.04, "slowing-down"),
        (1.04, 1.00, "warm-up-not-over"),
    ],
)
def test_the_first_quarter_is_held_against_the_last(first, last, verdict):
    assert stats.steadiness([first] * 25 + [1.0] * 50 + [last] * 25) == verdict


def test_a_difference_of_5_percent_in_steps_that_scatter_by_10_says_nothing():
    steps = [1.1, 0.9] * 10 + [1.0] * 0 + [1.1, 0.9] * 30 + [1.1555, 0.9455] * 10
    noisy = [step * (1.3 if index % 7 == 0 else 1.0) for index, step in enumerate(steps)]
    assert stats.drift(noisy) > 0.03
    assert stats.steadiness(noisy) is None


def test_a_warm_up_at_the_beginning_of_the_window_is_found():
    steps = [1 + 0.3 * math.exp(-step / 6) + 0.002 * (step % 3) for step in range(100)]
    assert stats.steadiness(steps) == "warm-up-not-over"


def test_a_gpu_that_slows_down_in_the_middle_of_the_window_is_found():
    steps = [(1 if step < 50 else 1.05) + 0.002 * (step % 3) for step in range(100)]
    assert stats.steadiness(steps) == "slowing-down"


def test_steps_that_resemble_the_step_before_have_a_larger_error():
    alternating = [1.0, 1.1] * 50
    in_blocks = ([1.0] * 5 + [1.1] * 5) * 10
    assert stats.drift_error(in_blocks) > 2 * stats.drift_error(alternating)


def test_a_handful_of_steps_says_nothing_about_steadiness():
    assert stats.drift([1.0, 9.0, 9.0]) is None
    assert stats.steadiness([1.0] * 9 + [9.0] * 10) is None


def test_steps_that_are_thinned_for_a_drawing_keep_their_extremes_in_order():
    steps = [1.0] * 450 + [9.0, 0.1] + [1.0] * 448
    kept = stats.thinned(steps, 100)
    assert len(kept) == 100
    assert kept.index(9.0) + 1 == kept.index(0.1)
    assert stats.thinned([1.0, 2.0], 100) == [1.0, 2.0]
