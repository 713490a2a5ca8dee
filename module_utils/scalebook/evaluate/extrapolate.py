# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The efficiency to expect of more machines than were measured. Only measurements are judged, never this.

The model is that of Amdahl (1967, Validity of the single processor approach): with a fixed batch per device,
the time of a step grows by a constant with each machine: 1 / efficiency is a line in the number of machines.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypedDict

from ansible.module_utils.scalebook import stats
from ansible.module_utils.scalebook.contracts import Message, MessageError
from ansible.module_utils.scalebook.evaluate.options import Option, values_of
from ansible.module_utils.scalebook.grouping import grouped

FEWEST = 3
"""Numbers of machines that a fit needs: a line through two points has no scatter to judge it by."""
STRETCH = 8
"""The largest multiple of the measured machines that is extrapolated to."""


HIGHEST = 1.0
"""The efficiency that nothing exceeds: no machine makes the others faster."""
ROUNDING = 1e-9


class RefusedError(MessageError):
    """Measurements that nothing can be extrapolated from."""


class Fit(TypedDict):
    """An efficiency that the model expects on `machines` machines, with its 95 % interval `least` to `most`.

    `growth` is what a machine adds to 1 / efficiency, `alone` 1 / efficiency of one machine.  `measured` are
    the (machines, efficiency) it rests on.  The interval is that of the fit: it holds if the model holds.
    All three efficiencies are cut at HIGHEST: the true one is not above, so the interval covers it as often.
    """

    machines: int
    efficiency: float
    least: float
    most: float
    growth: float
    alone: float
    measured: list[tuple[int, float]]


class Extrapolation(TypedDict):
    """A fit to a curve of options, or the reason why there is none."""

    name: str | Message
    fit: Fit | None
    refused: Message | None


def fit(measured: Sequence[tuple[int, float]], machines: int) -> Fit:
    """Return the efficiency to expect on `machines` machines, from (machines, efficiency) of others.

    Weighted least squares, as the scatter of a rate is a share of it.  Raises RefusedError, also where
    the whole interval is above HIGHEST: then what the efficiency is relative to was measured too low.
    """
    points = sorted(measured)
    counts = sorted({count for count, _ in points})
    if len(counts) < FEWEST:
        raise RefusedError("evaluation.refused-few", measured=len(counts), needed=FEWEST)
    if machines > STRETCH * counts[-1]:
        raise RefusedError("evaluation.refused-far", machines=machines, times=STRETCH, measured=counts[-1])
    rows = [(efficiency**2, float(count), 1 / efficiency) for count, efficiency in points]
    total = sum(weight for weight, _, _ in rows)
    x_mean = sum(weight * x for weight, x, _ in rows) / total
    y_mean = sum(weight * y for weight, _, y in rows) / total
    spread = sum(weight * (x - x_mean) ** 2 for weight, x, _ in rows)
    growth = sum(weight * (x - x_mean) * (y - y_mean) for weight, x, y in rows) / spread
    free = len(points) - 2
    squares = sum(weight * (y - y_mean - growth * (x - x_mean)) ** 2 for weight, x, y in rows)
    expected = y_mean + growth * (machines - x_mean)
    error = math.sqrt(squares / free * (1 / total + (machines - x_mean) ** 2 / spread))
    margin = stats.t_quantile((1 + stats.LEVEL) / 2, free) * error
    if expected - margin <= 0:
        raise RefusedError("evaluation.refused-scattered", machines=machines)
    if 1 / (expected + margin) > HIGHEST + ROUNDING:
        raise RefusedError("evaluation.refused-above", machines=machines)
    return {
        "machines": machines,
        "efficiency": min(HIGHEST, 1 / expected),
        "least": min(HIGHEST, 1 / (expected + margin)),
        "most": min(HIGHEST, 1 / (expected - margin)),
        "growth": growth,
        "alone": y_mean + growth * (1 - x_mean),
        "measured": points,
    }


SERIES = ("source", "group", "workload", "model", "size", "variant", "gpu", "gpus", "bsz", "dtype", "xla")
"""What the options of one curve share; the number of machines differs."""


def of_options(options: Sequence[Option], machines: int) -> list[Extrapolation]:
    """Return a fit, or why there is none, of each curve that was measured on fewer than `machines`.

    A single point is not a curve, and a curve that reaches `machines` needs no extrapolation.
    """
    scaled: list[Any] = [option for option in options if option["efficiency"]]
    curves = grouped(scaled, lambda option: values_of(option, SERIES))
    extrapolations = []
    for curve in curves.values():
        counts = [option["machines"] for option in curve]
        if len(set(counts)) < 2 or max(counts) >= machines:
            continue
        name = max(curve, key=lambda option: option["machines"])["name"]
        entry: Extrapolation = {"name": name, "fit": None, "refused": None}
        try:
            entry["fit"] = fit(
                [(each["machines"], float(each["efficiency"] or 0)) for each in curve], machines
            )
        except RefusedError as error:
            entry["refused"] = error.message
        extrapolations.append(entry)
    return extrapolations
