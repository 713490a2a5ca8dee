# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Samples of telemetry -> the course of one node around the window, in few enough points for a chart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ansible.module_utils.scalebook.contracts import Timeline
from ansible.module_utils.scalebook.quantities import TIMELINE_COLUMNS

POINTS = 96
"""Points of a line at most: a chart of 400 pixels shows no more."""

MARGIN, MARGIN_SECONDS = 0.5, 10.0
"""How much of the run is kept before and after the window: this part of the window, and at least so long."""

DIGITS = 4
"""Significant digits of a value."""

Sample = tuple[float, float, float]
"""When a sample began and ended, and its value: of a counter the rate."""


def decimate(
    samples: Mapping[str, Sequence[Sample]], begin: float, end: float, interval: float
) -> Timeline | None:
    """Return the course of what charts show, from before `begin` to after `end`; None without a sample.

    Time is cut into pieces of one length, `interval` seconds or longer; a value is the mean of the samples in
    its piece, weighted by time, None where there are none.  A column without any value is left out.
    """
    timelines = {
        name: values for name, values in samples.items() if TIMELINE_COLUMNS.fullmatch(name) and values
    }
    if not timelines:
        return None
    margin = max(MARGIN * (end - begin), MARGIN_SECONDS)
    first = max(begin - margin, min(values[0][0] for values in timelines.values()))
    right = min(end + margin, max(values[-1][1] for values in timelines.values()))
    if right <= first:
        return None
    step = max(interval, (right - first) / POINTS)
    count = max(1, math.ceil(round((right - first) / step, 6)))
    columns = {name: _pieces(values, first, step, count) for name, values in timelines.items()}
    return {
        "begin": round(first - begin, 3),
        "step": round(step, 6),
        "window": round(end - begin, 3),
        "columns": {name: values for name, values in columns.items() if set(values) != {None}},
    }


def _pieces(samples: Sequence[Sample], begin: float, step: float, count: int) -> list[float | None]:
    weights, sums = [0.0] * count, [0.0] * count
    for start, end, value in samples:
        first = max(0, int((start - begin) / step))
        for index in range(first, min(count, int((end - begin) / step) + 1)):
            shared = min(end, begin + (index + 1) * step) - max(start, begin + index * step)
            if shared > 0:
                weights[index] += shared
                sums[index] += shared * value
    return [_rounded(total / weight) if weight else None for total, weight in zip(sums, weights, strict=True)]


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
