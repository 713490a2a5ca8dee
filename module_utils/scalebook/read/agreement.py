# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Whether the speed by a log's steps agrees with the speed that the log itself prints.

What a step counts is an assumption about the program: micro-steps or steps of the optimizer, one device or
all.  A program that prints its own rate says what it assumes, and a whole number between both is that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from ansible.module_utils.scalebook import throughput
from ansible.module_utils.scalebook.contracts import Case, Message, NodeLog, Record, because, message
from ansible.module_utils.scalebook.read.step_log import Log
from ansible.module_utils.scalebook.read.timestamps import SECOND
from ansible.module_utils.scalebook.workload import Workload

FAR = 0.1
"""If both speeds differ by more than this, the report says so, or the run does not count."""

NEAR = 0.05
"""How far a quotient may lie off a whole number that explains it."""


def mean_rate(record: Record, log: Log, workload: Workload) -> float | None:
    """Return the rate over the window by the mean rates that the log prints, None where it prints none."""
    if log.means is None:
        return None
    return throughput.mean_in_window(log.steps, log.means, workload.log.mean_after, record["case"])


def rate_of_parts(record: Record, log: Log, workload: Workload) -> float | None:
    """Return the rate over the window by lines that print one of the steps since such a line, None without.

    Steps that the lines know, and the stamps too, stand for the window: n steps at a rate r took n / r.
    """
    case, stamps, own = record["case"], log.times or log.received, workload.log.own
    if not (own and log.own and stamps):
        return None
    measured = throughput.measure(record)["rate"]
    stamp_of = dict(zip(log.steps, stamps, strict=False))
    first, last = case["warmup"], case["warmup"] + case["window"]
    parts = [(begin, end) for begin, end in pairwise([0, *sorted(log.own)]) if first < end <= last]
    parts_inside = [
        (begin, end) for begin, end in parts if begin >= first and begin in stamp_of and end in stamp_of
    ]
    devices = case["devices"] if own.scope == "rank" else 1
    if (
        not parts_inside
    ):  # what began before the window has slow first steps: it is not faster than the window
        fastest = max((log.own[end] * devices for _, end in parts), default=0.0)
        return fastest if fastest > measured else None
    samples = throughput.window_samples(record) / case["window"]
    own_seconds = sum((end - begin) * samples / (log.own[end] * devices) for begin, end in parts_inside)
    stamped = sum(stamp_of[end] - stamp_of[begin] for begin, end in parts_inside) / SECOND
    return measured * stamped / own_seconds if stamped > 0 else None


def own_rate(record: Record, log: Log, workload: Workload, rate: float) -> float | None:
    """Return what the log itself prints of the window, None where it prints nothing.

    Of mean rates and those of single steps, perhaps of the optimizer alone, the nearer to `rate`.
    """
    node: NodeLog = record["nodes"][0]
    printed = throughput.printed_rate(node, record["case"], workload.log.rate_scope)
    rates = (mean_rate(record, log, workload), rate_of_parts(record, log, workload), printed)
    numbers = [own for own in rates if own is not None]
    return min(numbers, key=lambda own: abs(own - rate), default=None)


def refusal(record: Record, log: Log, workload: Workload) -> Message | None:
    """Return why the speed by the steps cannot be right, None where nothing says so."""
    case, measured = record["case"], throughput.measure(record)
    own = own_rate(record, log, workload, measured["rate"])
    micro = bool(record.get("micro_steps")) and case["accumulation"] > 1
    if measured["time_source"] == "rates":
        return None
    if own is None:
        return message("reason.micro-steps-unproven", count=case["accumulation"]) if micro else None
    if abs(measured["rate"] - own) <= FAR * own:
        return None
    both = message("reason.two-rates", rate=measured["rate"], own=own)
    if micro:
        return because(message("reason.micro-steps-contradicted", count=case["accumulation"]), both)
    reason = _factor(measured["rate"] / own, _fields(case), log.found)
    return because(both, reason) if reason else None


def _fields(case: Case) -> dict[str, int]:
    """Return what a log can count otherwise than its case."""
    return {
        "accumulation": case["accumulation"],
        "devices": case["devices"],
        "nodes": case["nodes"],
        "gpus": case["gpus"],
    }


def _factor(
    quotient: float, fields: Mapping[str, int], values_in_log: Mapping[str, Sequence[str]]
) -> Message | None:
    """Return what a quotient of two rates means if it is a whole number that the log does not account for.

    A step is not faster than its program says, but may be slower: such a factor must be one of the case.
    """
    factor = round(max(quotient, 1 / quotient))
    if factor < 2 or abs(max(quotient, 1 / quotient) / factor - 1) > NEAR:
        return None
    fields_equal = [field for field, value in fields.items() if value == factor]
    if any(str(factor) in values_in_log.get(field, ()) for field in fields_equal):
        return None  # what the log itself says of its run is the case's: its rate has another unit
    if fields_equal:
        return message(
            "reason.times-as-much" if quotient > 1 else "reason.times-less",
            count=factor,
            field=fields_equal[0],
        )
    return message("reason.times-as-much-unknown", count=factor) if quotient > 1 else None
