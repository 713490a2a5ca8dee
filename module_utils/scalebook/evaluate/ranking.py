# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Who is faster by how much where several workloads ran the same case, and whether the runs show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from ansible.module_utils.scalebook.contracts import Message, Statement
from ansible.module_utils.scalebook.evaluate.options import (
    FEWEST_RUNS,
    Option,
    devices,
    setting,
    setting_name,
)
from ansible.module_utils.scalebook.grouping import grouped
from ansible.module_utils.scalebook.stats import ratio_interval

FASTER, TIE, UNKNOWN = "faster", "tie", "unknown"


class Lead(TypedDict):
    """The lead of the fastest option of a case over another one.

    `times` is the quotient of the rates, which are medians, between `least` and `most`: a 95 % interval
    (`interval`) where both have six runs, else the quotients of their slowest and fastest runs.  `verdict`
    is FASTER where `least` is above 1, else TIE, or UNKNOWN where one has a single run, or is a published
    figure.  `place` is 1 for the second fastest.
    """

    case: str
    setting: Message
    devices: int
    place: int
    first: str | Message
    other: str | Message
    times: float
    least: float
    most: float
    interval: bool
    verdict: str


class ModelFamily(TypedDict):
    """A model family of evaluation.json: its frameworks, options, leads, and what was not the same."""

    name: str
    frameworks: list[dict[str, Statement]]
    options: list[Option]
    ranking: list[Lead]
    differences: list[dict[str, Any]]


def of_family(options: Sequence[Option]) -> list[Lead]:
    """Return, for each case that several workloads ran, the lead of the fastest over each other workload."""
    leads = []
    for rivals in grouped(options, _case).values():
        ordered = sorted(rivals, key=lambda each: -each["rate"])
        others = [each for each in ordered[1:] if each["workload"] != ordered[0]["workload"]]
        leads += [_lead(ordered[0], other, place) for place, other in enumerate(others, 1)]
    return leads


def _case(option: Option) -> tuple[Any, ...]:
    return *setting(option), option["nodes"], option["gpus"], option.get("link", "")


def _lead(first: Option, other: Option, place: int) -> Lead:
    times = first["rate"] / other["rate"]
    interval = _interval(first["rates"], other["rates"], times)
    least, most = interval or (first["slowest"] / other["fastest"], first["fastest"] / other["slowest"])
    verdict = FASTER if least > 1 else TIE
    if min(first["runs"], other["runs"]) < FEWEST_RUNS:
        verdict = UNKNOWN
    return {
        "case": f"{first['nodes']}n{first['gpus']}g",
        "setting": setting_name(first),
        "devices": devices(first),
        "place": place,
        "first": first["name"],
        "other": other["name"],
        "times": times,
        "least": least,
        "most": most,
        "interval": interval is not None,
        "verdict": verdict,
    }


def _interval(above: Sequence[float], below: Sequence[float], times: float) -> tuple[float, float] | None:
    """Return the 95 % interval of a quotient of rates, None for too few runs.

    It is that of the means.  Where it leaves out `times`, the quotient of the medians, the runs are too
    skewed for it, and there is none either.
    """
    bounds = ratio_interval(above, below) if above and below else None
    return bounds if bounds and bounds[0] <= times <= bounds[1] else None
