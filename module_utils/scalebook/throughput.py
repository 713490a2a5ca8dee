# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A result record -> samples per second over the window, from the best reading there is."""

from __future__ import annotations

import math
import typing
from collections.abc import Sequence
from typing import Any, Literal

from ansible.module_utils.scalebook.contracts import Case, MessageError, NodeLog, Record, global_batch

DIFFER = 0.02
"""If two time sources of the same window differ by more than this, a note reports it (see tolerance)."""


Stamps = Literal["times", "received"]
"""The time stamps of a log: the trainer's own, or those of the node script."""

READINGS = ("stamps", "printed")
"""Which time source counts: time stamps where there are any, or the rates that the framework prints."""


class ThroughputError(MessageError):
    """A record whose window cannot be measured."""


def measure(record: Record, reading: str = "stamps") -> dict[str, Any]:
    """Return the throughput of a record: `{"rate", "seconds", "time_source", "second", "differs"}`.

    `rate` is in samples/s of all devices together: devices x bsz x accumulation x window over `seconds`, the
    time from step warmup to step warmup + window on the node with task_index 0; a micro-step has no
    accumulation.
    `time_source` says where it comes from: the framework's own time stamps (`times`), run_node's receive
    stamps (`received`), or the rates the framework prints (`rates`).  `second` is the next of these
    there is, `{"time_source", "rate"}`, and `differs` how far it lies off the first, as a fraction.
    Workers are never added up: each sees every step of all.

    With `reading` printed the printed rates come first, those that follow from printed means of all steps so
    far (`printed_mean`) among them, and a record without them is not measured.

    Raises ThroughputError when no reading covers the window.
    """
    node = first_node(record)
    if node is None:
        raise ThroughputError("reason.no-first-node")
    samples = window_samples(record)
    readings: list[dict[str, Any]] = []
    for key in typing.get_args(Stamps):
        seconds = window_seconds(node, key, record["case"])
        if seconds is not None and seconds > 0:
            readings.append({"time_source": key, "rate": samples / seconds, "seconds": seconds})
    rate = printed_rate(node, record["case"], record.get("rate_scope", "global"))
    mean = record.get("printed_mean") or 0.0
    if rate is None and reading == "printed" and 0 < mean < math.inf:
        rate = mean
    if rate is not None:
        readings.append({"time_source": "rates", "rate": rate, "seconds": samples / rate})
    if not readings:
        raise ThroughputError("reason.no-reading")
    if reading == "printed":
        if rate is None:
            raise ThroughputError("reason.no-rates")
        readings.insert(0, readings.pop())
    first = readings[0]
    second = {key: readings[1][key] for key in ("time_source", "rate")} if len(readings) > 1 else None
    return {
        **first,
        "second": second,
        "differs": abs(readings[1]["rate"] - first["rate"]) / first["rate"] if second else None,
    }


def tolerance(window: int | None, *sources: str | None) -> float:
    """Return how far readings of one window by these time sources may differ, as a fraction.

    A trainer that prints the line of a step while it queues the next one is up to a step late (torch_run of
    role workload), but not after the last step: by its receive stamps a window may be a step shorter.
    `window` is its number of steps, None for that of an epoch, where a step is next to nothing.
    """
    return DIFFER + ("received" in sources) / (window or math.inf)


def first_node(record: Record) -> NodeLog | None:
    """Return what the log of the node with task_index 0 shows, None without it."""
    return next((node for node in record["nodes"] if node.get("task_index") == 0), None)


def window_samples(record: Record) -> int:
    """Return how many samples all devices take in the window."""
    case = record["case"]
    samples = global_batch(case) * int(case["window"])
    return samples // int(case.get("accumulation") or 1) if record.get("micro_steps") else samples


def window_ends(node: NodeLog, key: Stamps, case: Case) -> tuple[float, float] | None:
    """Return the stamps `key` of the window's first and last step on a node, None without them."""
    stamps: Sequence[float] | None = node.get(key)
    if not stamps or len(stamps) != len(node["steps"]):
        return None
    steps: Sequence[int] = node["steps"]
    try:
        begin = steps.index(case["warmup"])
        end = steps.index(case["warmup"] + case["window"], begin)
    except ValueError:
        return None
    return stamps[begin], stamps[end]


def window_seconds(node: NodeLog, key: Stamps, case: Case) -> float | None:
    """Return the seconds of the window by the stamps `key` of a node of a record, None without them."""
    ends = window_ends(node, key, case)
    # Stamps have whole microseconds: what a subtraction of floats adds behind them is noise.
    return None if ends is None else round(ends[1] - ends[0], 6)


def printed_rate(node: NodeLog, case: Case, scope: str) -> float | None:
    """Return the mean of the rates printed for the steps of the window, None when there are none.

    Of rates over equal amounts of work the harmonic mean is total work over total time.  A rate of
    scope `rank` is one device's; all devices together do as many times that.
    """
    rates = window_rates(node, case)
    if not rates:
        return None
    mean = len(rates) / math.fsum(1 / rate for rate in rates)
    return mean * case["devices"] if scope == "rank" else mean


def mean_in_window(steps: Sequence[int], means: Sequence[float], after: int, case: Case) -> float | None:
    """Return the rate over the window from mean rates of all steps after `after`, None without its ends.

    n steps at a mean rate r took n / r: the window took what its last step has more of that than its first.
    """
    begin, end = case["warmup"], case["warmup"] + case["window"]
    mean_at = dict(zip(steps, means, strict=False))
    if begin <= after or not all(0 < mean_at.get(step, 0) < math.inf for step in (begin, end)):
        return None
    seconds = (end - after) / mean_at[end] - (begin - after) / mean_at[begin]
    return case["window"] / seconds if seconds > 0 else None


def window_rates(node: NodeLog, case: Case) -> list[float]:
    """Return the rates printed for the steps of the window.

    None unless its last step was logged, and the rates are of steps at equal distances from its begin to its
    end: those of a part of the window say nothing about the rest.
    """
    steps: Sequence[int] = node["steps"]
    rates: Sequence[float | None] | None = node.get("rates")
    end = case["warmup"] + case["window"]
    if not rates or not steps or end not in steps[-1:]:
        return []
    pairs = zip(steps, rates, strict=True)
    rated = [(step, rate) for step, rate in pairs if case["warmup"] < step <= end and rate]
    starts = [case["warmup"], *(step for step, _ in rated)]
    distances = {after - before for before, after in zip(starts[1:], starts[2:], strict=False)}
    even = len(distances) < 2 and all(
        starts[1] - starts[0] <= distance and end - starts[-1] < distance for distance in distances
    )
    return [rate for _, rate in rated] if even else []
