# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Statistics of repeats and of step times.  Pure functions over lists of floats.

Rates are in samples per second (or the workload's unit), steps in seconds; shares are fractions.  What a
rule promises is measured in tests/unit/test_coverage.py and tests/bench/statistics.

Every function refuses an empty list and anything that is not a finite number with StatsError:
a mean of nothing must never become a figure in a table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from statistics import fmean, median, stdev
from typing import NamedTuple

LEVEL = 0.95
INTERVAL_RUNS = 6
"""Runs from which there is a 95 % interval: the range of five covers the true median in 93.75 % of cases."""

OUTLIER_RUNS = 5
"""Runs below which nothing is called an outlier: the others are too few to show how much runs scatter."""
OUTLIER_LEVEL = 0.01
"""The share of cases without an outlier in which one is flagged."""
OUTLIER_SHARE = 0.01
"""Runs closer to the median than this share of it are never outliers: the difference is of no use."""

STEADY_SHARE = 0.03
STEADY_ERRORS = 3.0
"""A window drifts if its quarters differ by more than this share and this many standard errors."""
STEADY_STEPS = 20
"""Steps of a window below which its drift is not judged."""
LARGEST_CORRELATION = 0.9


class StatsError(ValueError):
    """Numbers no statistic can be made of."""


def _checked(values: Sequence[float]) -> Sequence[float]:
    if not values:
        raise StatsError("no value to make a statistic of")
    if not all(map(math.isfinite, values)):
        wrong = next(value for value in values if not math.isfinite(value))
        raise StatsError(f"{wrong} is not a finite number")
    return values


def spread(values: Sequence[float]) -> float | None:
    """Return (max - min) / median as a fraction; None for one value or a median of zero."""
    middle = median(_checked(values))
    if len(values) < 2 or not middle:
        return None
    return (max(values) - min(values)) / middle


def variation(values: Sequence[float]) -> float | None:
    """Return the coefficient of variation in per cent (sample standard deviation over mean).

    None for one value or a mean of zero.
    """
    mean = fmean(_checked(values))
    if len(values) < 2 or not mean:
        return None
    return 100 * stdev(values) / mean


def outliers(values: Sequence[float]) -> list[int]:
    """Return the index of the value that is too far from the others, as a list of one or none.

    Grubbs' test (Technometrics 11, 1969; NIST e-Handbook 1.3.5.17.1) in its form of a t test of the value
    against the others: the quantile of OUTLIER_LEVEL / 2n, at n - 2 degrees of freedom.  An outlier is to
    be flagged, never dropped: the median is robust to it.
    """
    middle = median(_checked(values))
    count = len(values)
    if count < OUTLIER_RUNS:
        return []
    mean = fmean(values)
    farthest = max(range(count), key=lambda index: abs(values[index] - mean))
    others = [value for index, value in enumerate(values) if index != farthest]
    distance = abs(values[farthest] - fmean(others))
    error = math.sqrt(_variance(others) * (1 + 1 / len(others)))
    limit = t_quantile(1 - OUTLIER_LEVEL / (2 * count), count - 2) * error
    return (
        [farthest]
        if distance > limit and abs(values[farthest] - middle) > OUTLIER_SHARE * abs(middle)
        else []
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the quantile `share` (0..1) of an ascending list, linear between neighbours."""
    if not ordered:
        raise StatsError("no value to take a quantile of")
    position = (len(ordered) - 1) * share
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def summary(values: Sequence[float]) -> dict[str, float | None]:
    """Return median, mean, min, max, cv (per cent) and spread (fraction) of `values`."""
    return {
        "median": median(_checked(values)),
        "mean": fmean(values),
        "min": min(values),
        "max": max(values),
        "cv": variation(values),
        "spread": spread(values),
    }


@cache
def t_quantile(probability: float, freedom: int) -> float:
    """Return the quantile of Student's t distribution, for a probability from 0.5 on (below 1).

    The sums for a whole number of degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4), turned
    round by bisection.
    """
    if not 0.5 <= probability < 1 or freedom < 1:
        raise StatsError(f"no t quantile of {probability} at {freedom} degrees of freedom")
    low, high = 0.0, 1.0
    while _t_within(high, freedom) < 2 * probability - 1:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        if _t_within(middle, freedom) < 2 * probability - 1:
            low = middle
        else:
            high = middle
    return high


def _t_within(limit: float, freedom: int) -> float:
    """Return the probability that t is between -limit and limit."""
    angle = math.atan(limit / math.sqrt(freedom))
    odd = freedom % 2
    term = total = math.cos(angle) if odd else 1.0
    for step in range(3 if odd else 2, freedom - 1, 2):
        term *= math.cos(angle) ** 2 * (step - 1) / step
        total += term
    if not odd:
        return math.sin(angle) * total
    return 2 / math.pi * (angle + (math.sin(angle) * total if freedom > 1 else 0.0))


def median_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % interval of the median, None for fewer than INTERVAL_RUNS values.

    The k-th smallest and the k-th largest value, with the largest k of which the chance to leave the true
    median out is at most 5 %.  That is exact for independent runs of any distribution (David and Nagaraja,
    Order Statistics, 7.1): with 6 runs it covers 96.9 %, with 7 98.4 %, with 10 97.9 %.
    """
    ordered = sorted(_checked(values))
    count = len(ordered)
    if count < INTERVAL_RUNS:
        return None
    place, below = 0, 2  # how many of 2^count draws of sides leave the median out
    while below <= (1 - LEVEL) * 2**count:
        place += 1
        below += 2 * math.comb(count, place)
    return ordered[place - 1], ordered[-place]


def ratio_range(above: Sequence[float], below: Sequence[float]) -> tuple[float, float]:
    """Return the least and the largest quotient of a run of `above` and one of `below`."""
    return min(_checked(above)) / max(_checked(below)), max(above) / min(below)


def ratio_interval(above: Sequence[float], below: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % interval of a quotient of rates, None if either has fewer than INTERVAL_RUNS runs.

    Welch's t interval (Biometrika 34, 1947) of the difference of the mean logarithms.
    """
    if min(len(above), len(below)) < INTERVAL_RUNS:
        return None
    difference, error, freedom = log_difference(above, below)
    margin = t_quantile((1 + LEVEL) / 2, freedom) * error
    return math.exp(difference - margin), math.exp(difference + margin)


def log_difference(above: Sequence[float], below: Sequence[float]) -> tuple[float, float, int]:
    """Return how far the mean logarithms of two sets of rates differ, its standard error and its freedom.

    Each set needs two rates above zero.  The degrees of freedom are those of Welch and Satterthwaite,
    rounded down as for a table.
    """
    sides = [[math.log(value) for value in _checked(side)] for side in (above, below)]
    parts = [_variance(side) / len(side) for side in sides]
    total = sum(parts)
    most = len(above) + len(below) - 2
    squares = sum(part**2 / (len(side) - 1) for part, side in zip(parts, sides, strict=True))
    freedom = max(1, min(most, int(total**2 / squares))) if squares else most
    return fmean(sides[0]) - fmean(sides[1]), math.sqrt(total), freedom


class Equivalence(NamedTuple):
    """How far two sides differ: the mean quotient, its 90 % interval, and whether it is within the margin."""

    ratio: float
    low: float
    high: float
    shown: bool


def equivalence(above: Sequence[float], below: Sequence[float], margin: float) -> Equivalence:
    """Return whether runs that were made in pairs are equal within `margin`, a fraction.

    Two one-sided t tests of the logarithms of the quotients, each at 5 % (Schuirmann, Journal of
    Pharmacokinetics and Biopharmaceutics 15, 1987): both refuse where the 90 % interval of the quotient lies
    within 1 - margin and 1 + margin.  That they do not refuse says nothing: equality is then not shown.
    """
    if not 0 < margin < 1 or len(above) != len(below) or len(above) < 2:
        raise StatsError(f"no test of {len(above)} and {len(below)} runs in pairs with a margin of {margin}")
    if min(*_checked(above), *_checked(below)) <= 0:
        raise StatsError("a quotient needs values above 0")
    logs = [math.log(one / other) for one, other in zip(above, below, strict=True)]
    half = t_quantile(LEVEL, len(logs) - 1) * math.sqrt(_variance(logs) / len(logs))
    low, high = (math.exp(fmean(logs) + side * half) for side in (-1, 1))
    return Equivalence(math.exp(fmean(logs)), low, high, 1 - margin < low and high < 1 + margin)


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Return p50, p95, p99, min and max of `values`, in their own unit."""
    ordered = sorted(_checked(values))
    return {
        "p50": quantile(ordered, 0.50),
        "p95": quantile(ordered, 0.95),
        "p99": quantile(ordered, 0.99),
        "min": ordered[0],
        "max": ordered[-1],
    }


def mean_of_longest(values: Sequence[float], count: int) -> float:
    """Return the mean of the longest of `count` values, each drawn from `values` independently.

    The longest is at most the i-th smallest of n values with a probability of (i / n) ** count.
    """
    ordered = sorted(_checked(values))
    number = len(ordered)
    return math.fsum(
        value * ((index / number) ** count - ((index - 1) / number) ** count)
        for index, value in enumerate(ordered, 1)
    )


def thinned(values: Sequence[float], most: int) -> list[float]:
    """Return at most `most` values for a drawing: the least and the greatest of each stretch, in order."""
    stretches = most // 2
    if len(values) <= most:
        return list(values)
    ends = [len(values) * index // stretches for index in range(stretches + 1)]
    points: list[float] = []
    for first, end in pairwise(ends):
        stretch = sorted(range(first, end), key=values.__getitem__)
        points += [values[place] for place in sorted((stretch[0], stretch[-1]))]
    return points


def drift(seconds: Sequence[float]) -> float | None:
    """Return how much longer the last quarter of the steps took than the first, as a fraction.

    `seconds` are step times in order.  Positive: slowing down.  Negative: the first quarter was
    the slow one, so the warm-up was not over.  None for fewer than 8 steps, where a quarter is
    one step.
    """
    quarter = len(_checked(seconds)) // 4
    # fsum: the sum of floats differs between Python 3.11 and 3.12.
    first = math.fsum(seconds[:quarter])
    if quarter < 2 or first <= 0:
        return None
    return math.fsum(seconds[-quarter:]) / first - 1


def drift_error(seconds: Sequence[float]) -> float | None:
    """Return the standard error of `drift`, as a fraction; None for fewer than STEADY_STEPS steps.

    It comes from the scatter of the steps, by what either the two quarters or the steps between them show,
    whichever is less: a warm-up is a slope in the first quarter, a throttled GPU a step between.
    """
    quarter = len(_checked(seconds)) // 4
    if len(seconds) < STEADY_STEPS:
        return None
    first, last = seconds[:quarter], seconds[-quarter:]
    ends = [*_residuals(first), *_residuals(last)]
    between = _without_slope(seconds[quarter:-quarter])
    error = min(_mean_error(residuals, quarter) for residuals in (ends, between))
    return math.sqrt(2) * error * quarter / math.fsum(first)


def _variance(values: Sequence[float]) -> float:
    """Return the variance of a sample, twenty times as fast as by the fractions of statistics.variance."""
    return math.fsum(each * each for each in _residuals(values)) / (len(values) - 1)


def _residuals(values: Sequence[float]) -> list[float]:
    mean = math.fsum(values) / len(values)
    return [value - mean for value in values]


def _without_slope(values: Sequence[float]) -> list[float]:
    """Return the distances of `values` from the straight line through them."""
    residuals = _residuals(values)
    places = _residuals(range(len(values)))
    products = math.fsum(place * each for place, each in zip(places, residuals, strict=True))
    slope = products / math.fsum(place * place for place in places)
    return [each - slope * place for each, place in zip(residuals, places, strict=True)]


def _mean_error(residuals: Sequence[float], count: int) -> float:
    """Return the standard error of the mean of `count` steps that scatter like `residuals`.

    Two means, or a line, have been subtracted from what they are the residuals of.

    Steps that follow each other are alike, so `count` of them tell as much as count (1 - r) / (1 + r)
    independent ones (von Storch and Zwiers, Statistical Analysis in Climate Research, 6.6), where r is
    their correlation with the step before, corrected for its bias (Kendall, Biometrika 41, 1954).
    """
    squares = math.fsum(each * each for each in residuals)
    if not squares:
        return 0.0
    products = math.fsum(a * b for a, b in zip(residuals, residuals[1:], strict=False))
    correlation = (products / squares + 1 / count) / (1 - 4 / count)
    correlation = min(max(correlation, 0.0), LARGEST_CORRELATION)
    return math.sqrt(squares / (len(residuals) - 2) / count * (1 + correlation) / (1 - correlation))


def steadiness(seconds: Sequence[float]) -> str | None:
    """Return "warm-up-not-over", "slowing-down" (codes of flags), or None for a steady window.

    Its last quarter has to differ from the first by more than STEADY_SHARE and STEADY_ERRORS standard errors.
    """
    change, error = drift(seconds), drift_error(seconds)
    if change is None or error is None or abs(change) <= max(STEADY_SHARE, STEADY_ERRORS * error):
        return None
    return "slowing-down" if change > 0 else "warm-up-not-over"
