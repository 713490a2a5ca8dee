# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The burn-in of acceptance.yml: rounds of measurements over hours, and what drifted or went wrong meanwhile.

A part drifts where its last rounds are slower than its own first FIRST ones.  The test is that of verdict.py,
with the median of the first rounds as the reference and their scatter: it weighs the rounds from the newest
one back, so that one fast round among the newest ends it.  It is made after every round: the share of false
alarms that is spent after round r of n series is false_alarms / (n r (r + 1)), whose sum over all series and
any number of rounds is false_alarms, 1 %.  In 225 simulated burn-ins of 200 rounds with 1 to 100 parts, which
scatter as in tests/helpers/fleets.py, no part was failed wrongly; of 900 parts that became 5 % slower, 99.8 %
were found within 50 rounds, half of them within 6 (tests/unit/accept/test_burnin.py repeats some of it).
What is slow from the start does not drift: the verdict on the cluster has it.

The state, burnin.json, keeps FIRST and LAST rates of each part, so its size does not grow with the hours.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any, TypedDict

from ansible.module_utils.scalebook.accept import document, verdict
from ansible.module_utils.scalebook.accept.contracts import TRACE, BurnIn, Measurement, Problem, Watched
from ansible.module_utils.scalebook.accept.criteria import Wanted
from ansible.module_utils.scalebook.accept.verdict import Criteria
from ansible.module_utils.scalebook.contracts import Message, message
from ansible.module_utils.scalebook.preflight import gpus
from ansible.module_utils.scalebook.preflight.site import Site

FIRST = verdict.FEWEST_VALUES
"""Rounds that are the reference of the later ones."""
LAST = 40
"""Newest rounds that are kept; the test has ended before it has weighed so many."""
CHECKS = ("gpu", "ecc", "rows", "throttle", "nvlink", "mode", "xid")
"""The checks of preflight that are made after each round."""
COUNTERS = {
    "remapped_rows/remapped_row_corr": message("fix.replace-gpu-if-more"),
    "remapped_rows/remapped_row_unc": gpus.RESET,
    "retired_pages/multiple_single_bit_retirement/retired_count": message("fix.replace-gpu-if-more"),
    "retired_pages/double_bit_retirement/retired_count": gpus.RESET,
    **dict.fromkeys(
        (
            f"clocks_event_reasons_counters/clocks_event_reasons_counters_{reason}"
            for reason in ("hw_therm_slowdown", "sw_therm_slowdown", "hw_power_brake")
        ),
        message("fix.cooling"),
    ),
}
"""What only grows where something goes wrong, with the fix; slowing down is counted in microseconds."""
CORRECTED = ("sram_correctable", "dram_correctable", "single_bit/total")


class Series(TypedDict):
    """The rates of one quantity of a part: the first and the last of `count` rounds."""

    part: str
    nodes: list[str]
    quantity: str
    count: int
    first: list[float]
    last: list[float]


class State(TypedDict):
    """burnin.json: what a start with the same hours and nodes goes on from.

    `mark` is the time from which the next round counts, `known` what preflight's checks have reported,
    `before` the part of it from before the first round.
    """

    schema: int
    hours: float
    nodes: list[str]
    mark: float
    seconds: float
    rounds: int
    series: dict[str, Series]
    traces: dict[str, str]
    counters: dict[str, dict[str, float]]
    known: list[Message]
    before: list[Message]
    watched: dict[str, Watched]
    wrong: dict[str, Problem]


def new(schema: int, hours: float, nodes: Sequence[str]) -> State:
    """Return the state before the first round."""
    return {
        "schema": schema, "hours": hours, "nodes": [*nodes], "mark": 0.0, "seconds": 0.0, "rounds": 0,
        "series": {}, "traces": {}, "counters": {}, "known": [], "before": [], "watched": {}, "wrong": {},
    }  # fmt: skip


def goes_on(earlier: Mapping[str, Any], schema: int, hours: float, nodes: Sequence[str]) -> bool:
    """Return whether a start with these hours and nodes continues the state."""
    same = (earlier.get("schema"), earlier.get("hours"), earlier.get("nodes")) == (schema, hours, [*nodes])
    return same and earlier["seconds"] < hours * 3600


def left(state: State) -> float:
    """Return how many seconds are left."""
    return max(0.0, state["hours"] * 3600 - state["seconds"])


def add_round(state: State, measurements: Sequence[Measurement], thresholds: Wanted) -> None:
    """Add the rates, traces and failures of a round, and judge the drift."""
    state["rounds"] += 1
    for part, nodes, quantity, rate in (one for each in measurements for one in document.values(each)):
        empty: Series = {
            "part": part, "nodes": nodes, "quantity": quantity, "count": 0, "first": [], "last": [],
        }  # fmt: skip
        one = state["series"].setdefault(f"{part} {quantity}", empty)
        one["count"] += 1
        rates = one["first"] if one["count"] <= FIRST else one["last"]
        rates.append(rate)
        del one["last"][:-LAST]
    for measurement in measurements:
        for device, text in measurement["traces"].items():
            part = f"{measurement['nodes'][0]} {device}"
            if state["traces"].setdefault(part, text) != text:
                _report(state, part, measurement["nodes"], TRACE, message("burn-in.other-numbers"))
    for problem in document.problems(measurements):
        _report(state, problem["part"], problem["nodes"], "", problem["reason"])
    tests = len(state["series"]) * state["rounds"] * (state["rounds"] + 1)
    for one in state["series"].values():
        criteria = thresholds.for_quantity(one["quantity"])
        if drifts(one["first"], one["last"], criteria, tests):
            was, now = median(one["first"]), median(one["last"][-FIRST:])
            reason = message("burn-in.drift", quantity=one["quantity"], now=now, was=was, ratio=now / was)
            _report(state, one["part"], one["nodes"], one["quantity"], reason)


def drifts(first: Sequence[float], last: Sequence[float], criteria: Criteria, tests: int) -> bool:
    """Return whether the last rates are below the first ones, all tests together seldom wrong."""
    spread = verdict.scatter({"": first}, median(first)) if last else None
    if spread is None:
        return False
    return verdict.decide(reversed(last), median(first), spread, criteria, tests) == verdict.BAD


def watch(
    state: State,
    machines: Sequence[Mapping[str, Any]],
    probed: Mapping[str, Mapping[str, Any]],
    device: str,
) -> None:
    """Add what the GPUs report after a round; what they reported before the first one fails nothing."""
    site = Site(machines, probed, {"gpu_spare_degrees": 0}, device)
    for check in gpus.CHECKS:
        if check.name not in CHECKS or not check.applies(site):
            continue
        for each in check.inspect(site):
            reported = message("burn-in.reported", nodes=each["nodes"], what=each["message"])
            if reported in state["known"]:
                continue
            state["known"].append(reported)
            if state["rounds"]:
                reason = message("burn-in.new", what=each["message"], fix=each["fix"])
                error = json.dumps(each["message"], sort_keys=True)
                _report(state, f"{each['nodes'][0]} {each['check']}", each["nodes"], error, reason)
            else:
                state["before"].append(reported)
    for gpu in gpus.all_gpus(site):
        name = f"{gpu.machine['nodes'][0]} GPU{gpu.index}"
        before = state["counters"].setdefault(name, {})
        for path, value in _counters(gpu):
            if value > before.get(path, value) and path in COUNTERS:
                counter = path.rsplit("/", 1)[-1]
                figures = {"counter": counter, "before": before[path], "now": value}
                reason = message("burn-in.counter", **figures, fix=COUNTERS[path])
                _report(state, name, gpu.machine["nodes"], path, reason)
            before[path] = value
        _add_watched(state, name, gpu)


def _counters(gpu: gpus.Gpu) -> Iterator[tuple[str, float]]:
    """Yield the counters of a GPU that are watched, with the sum of corrected errors as `corrected`."""
    for path in COUNTERS:
        value = gpu.number(path)
        if value is not None:
            yield path, value
    paths = [path for path in gpu.values if path.startswith("ecc_errors/volatile/")]
    yield "corrected", sum(gpu.number(path) or 0 for path in paths if path.endswith(CORRECTED))


def _add_watched(state: State, name: str, gpu: gpus.Gpu) -> None:
    """Add temperature and clock of a GPU, which a round has just ended on."""
    earlier = state["watched"].get(name, {"degrees": None, "clocks": None, "corrected": 0.0})
    degrees, clock = gpu.number("temperature/gpu_temp"), gpu.number("clocks/sm_clock")
    clocks = [*(earlier["clocks"] or ()), *([] if clock is None else [clock])]
    state["watched"][name] = {
        "degrees": max(filter(None, (earlier["degrees"], degrees)), default=None),
        "clocks": [min(clocks), max(clocks)] if clocks else None,
        "corrected": max(earlier["corrected"], state["counters"][name]["corrected"]),
    }


def _report(state: State, part: str, nodes: Sequence[str], quantity: str, reason: Message) -> None:
    """Keep what went wrong, the same thing of a part once."""
    in_round = message("burn-in.round", round=state["rounds"], what=reason)
    problem: Problem = {"part": part, "nodes": [*nodes], "reason": in_round}
    state["wrong"].setdefault(f"{part} {quantity}", problem)


def summary(state: State, thresholds: Wanted) -> BurnIn:
    """Return what acceptance.json says of the burn-in."""
    rated = [
        (math.log(ratio) / math.log(thresholds.for_quantity(one["quantity"]).least), ratio, one)
        for one in state["series"].values()
        if one["last"]
        for ratio in [median(one["last"][-FIRST:]) / median(one["first"])]
    ]
    _, ratio, one = max(rated, key=lambda each: each[0], default=(0.0, 0.0, None))
    return {
        "hours": state["hours"],
        "seconds": round(state["seconds"], 1),
        "rounds": state["rounds"],
        "worst": {"part": one["part"], "quantity": one["quantity"], "ratio": ratio} if one else None,
        "errors": len(state["wrong"]),
        "before": state["before"],
        "watched": state["watched"],
    }


def refusals(burnin: BurnIn) -> list[Message]:
    """Return why a burn-in without an error is not passed, with what to do; nothing for one that is."""
    if burnin["seconds"] < burnin["hours"] * 3600:
        return [message("burn-in.not-ended")]
    if burnin["rounds"] <= FIRST:
        return [message("burn-in.few-rounds", rounds=burnin["rounds"], least=FIRST + 1)]
    return []
