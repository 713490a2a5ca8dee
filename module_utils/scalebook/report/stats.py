# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Statistics of repeats and of step times.  Pure functions over lists of floats.

Every function refuses an empty list and anything that is not a finite number with StatsError:
a mean of nothing must never become a figure in a table.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from statistics import fmean, median, stdev

RESAMPLES = 2000
LEVEL = 0.95

# A deviation counts from 3.5 robust standard deviations on (Iglewicz and Hoaglin, 1993).
OUTLIER_SCORE = 3.5
# 1.4826 x MAD estimates the standard deviation of normal data.
MAD_TO_SIGMA = 1.4826
# Repeats that agree to four digits have a MAD near zero; below this share of the median a
# deviation is ordinary jitter, never an outlier.
SIGMA_FLOOR = 0.002

# First against last quarter of the window: above this share the run was not steady.
STEADY_LIMIT = 0.03


class StatsError(ValueError):
    """Numbers no statistic can be made of."""


def _checked(values: Sequence[float]) -> Sequence[float]:
    if not values:
        raise StatsError("no value to make a statistic of")
    for value in values:
        if not math.isfinite(value):
            raise StatsError(f"{value} is not a finite number")
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
    """Return the indices of values far from the median, by median absolute deviation.

    They are to be flagged, never dropped: the median already bears them.
    """
    middle = median(_checked(values))
    deviations = [abs(value - middle) for value in values]
    sigma = max(MAD_TO_SIGMA * median(deviations), SIGMA_FLOOR * abs(middle))
    return [i for i, deviation in enumerate(deviations) if deviation > OUTLIER_SCORE * sigma]


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


def bootstrap_medians(values: Sequence[float], seed: str, resamples: int = RESAMPLES) -> list[float]:
    """Return medians of `resamples` draws with replacement, always the same for the same seed."""
    _checked(values)
    count = len(values)
    # Not for secrets: a seeded generator is what makes a report reproducible.
    draw = random.Random(seed).choices  # noqa: S311
    flat = draw(values, k=resamples * count)
    if count % 2:
        middle = count // 2
        return [sorted(flat[i : i + count])[middle] for i in range(0, len(flat), count)]
    return [median(flat[i : i + count]) for i in range(0, len(flat), count)]


def interval(samples: Sequence[float], level: float = LEVEL) -> tuple[float, float]:
    """Return the percentile interval that holds `level` of `samples`."""
    ordered = sorted(_checked(samples))
    tail = (1 - level) / 2
    return quantile(ordered, tail), quantile(ordered, 1 - tail)


def ratio_interval(above: Sequence[float], below: Sequence[float]) -> tuple[float, float]:
    """Return the interval of a quotient from two lists of independent bootstrap medians."""
    return interval([a / b for a, b in zip(above, below, strict=True)])


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


def steadiness(seconds: Sequence[float]) -> str | None:
    """Return "warm-up not over", "slowing down", or None for a steady window."""
    change = drift(seconds)
    if change is None or abs(change) <= STEADY_LIMIT:
        return None
    return "slowing down" if change > 0 else "warm-up not over"
