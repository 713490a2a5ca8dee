# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Why a part of a cluster is not good, in messages: its causes, and what it was compared with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ansible.module_utils.scalebook import network
from ansible.module_utils.scalebook.accept import triage, verdict, whole
from ansible.module_utils.scalebook.accept.contracts import (
    ALL_NODES,
    CRITERIA,
    EQUALS,
    HALF,
    LAUNCH,
    Acceptance,
    Fault,
    PartFinding,
    Problem,
)
from ansible.module_utils.scalebook.accept.verdict import BAD, GOOD, OPEN
from ansible.module_utils.scalebook.contracts import Message, as_message, message

MOST_NAMES = 4
"""Of more nodes only the first is named, where all are alike."""


def failed_together(problem: Problem) -> bool:
    """Return whether it is a group of nodes, or all of them, that could not be measured."""
    nodes = problem["nodes"]
    return problem["part"] == ALL_NODES or (len(nodes) > 1 and problem["part"] == whole.group_name(nodes))


def connection_lines(acceptance: Acceptance) -> list[Message]:
    """Return what NCCL connected the GPUs by, and what of it is slower than it may be."""
    lines = []
    for each in acceptance.get("connections", ()):
        code = f"acceptance.between-{each['between'].replace(' ', '-')}"
        between = message(code, nodes=_some(each["nodes"]))
        lines.append(message("acceptance.connected", between=between, how=network.described(each["nccl"])))
        lines += network.slower(each["nccl"])
    return lines


def _some(names: Sequence[str]) -> list[str | Message]:
    """Return the names of nodes, of many the first, and how many others there are."""
    if len(names) <= MOST_NAMES:
        return [*names]
    return [names[0], message("acceptance.other-nodes", count=len(names) - 1)]


def reasons(
    rows: Iterable[PartFinding], causes: Iterable[Fault], failed: Iterable[Problem]
) -> dict[str, Message]:
    """Return why each bad node is bad; of a slow link one end, without which the cluster is good."""
    by_node: dict[str, Message] = {}
    for problem in failed:
        if len(problem["nodes"]) == 1:
            what = message("acceptance.problem", part=problem["part"], reason=problem["reason"])
            by_node.setdefault(problem["nodes"][0], what)
    for row in rows:
        if row["verdict"] == BAD and len(row["nodes"]) == 1:
            by_node.setdefault(row["nodes"][0], of_part(row))
    for cause in causes:
        if _is_shared(cause) or by_node.keys() & set(cause["nodes"]):
            continue
        straggles = cause["kind"] == whole.STRAGGLER
        by_node[cause["nodes"][-1]] = (
            message("acceptance.straggles")
            if straggles
            else message("acceptance.slow-network", kind=kind_of(cause), nodes=cause["nodes"])
        )
    return by_node


def kind_of(cause: Fault) -> Message:
    """Return what explains slow links, in words."""
    values = {"rail": cause["rail"]} if "rail" in cause else {}
    return message(f"acceptance.fault-{cause['kind']}", **values)


def _is_shared(cause: Fault) -> bool:
    """Return whether a cause is what several nodes share: none of them is condemned for it."""
    return cause["kind"] in (triage.RAIL_EVERYWHERE, whole.TOGETHER)


def one_end(cause: Fault) -> bool:
    """Return whether it is enough to take out one of its nodes."""
    return len(cause["nodes"]) > 1 and not _is_shared(cause)


def cause_sentence(cause: Fault) -> Message:
    """Return a cause of slow links or groups as a sentence."""
    if cause["kind"] in (whole.STRAGGLER, whole.TOGETHER):
        return message(f"acceptance.cause-{cause['kind']}", nodes=whole.folded(cause["nodes"]))
    if cause["kind"] == triage.RAIL_EVERYWHERE:
        return message("acceptance.rail-everywhere", rail=cause["rail"])
    return message("acceptance.cause", kind=kind_of(cause), nodes=cause["nodes"])


def of_part(row: PartFinding) -> Message:
    """Return a part with its quantity, rate and reference."""
    return message("acceptance.of-part", part=row["part"], what=compared(row))


def compared(row: PartFinding) -> Message:
    """Return a quantity, its rate and the reference, and what was expected unless it is good."""
    if row["rate"] is None:
        trace = message(f"acceptance.{row['verdict'].replace(' ', '-')}")
        return (
            message("acceptance.trace-differs")
            if row["verdict"] == BAD
            else message("acceptance.trace", verdict=trace)
        )
    launch = row["quantity"] == LAUNCH
    figure = "acceptance.three-digits" if launch else "acceptance.four-digits"
    values: dict[str, Any] = {
        "quantity": row["quantity"],
        "rate": message(figure, value=1e6 / row["rate"] if launch else row["rate"]),
        "unit": "µs" if launch else row["unit"],
    }
    if not row["ratio"]:
        return message("acceptance.measured", **values)
    codes = {EQUALS: "acceptance.equals", CRITERIA: "acceptance.asked-for", HALF: "acceptance.half"}
    against = row["against"] or ""
    reference = message(codes[against]) if against in codes else as_message(against)
    values |= {"ratio": row["ratio"], "reference": reference}
    if row["verdict"] == GOOD:
        return message("acceptance.reached", **values)
    expected_rate = row["rate"] / row["ratio"]
    return message("acceptance.missed", **values, expected=1e6 / expected_rate if launch else expected_rate)


def refusals(acceptance: Acceptance) -> list[Message]:
    """Return why a cluster is not accepted, with what to do; nothing for one that is."""
    why = []
    if acceptance["bad"]:
        why.append(message("acceptance.nodes-bad", nodes=acceptance["bad"]))
    if acceptance["unclear"]:
        least = verdict.FEWEST_EQUALS
        why.append(message("acceptance.nodes-unclear", nodes=acceptance["unclear"], equals=least))
    why += [
        message(
            "acceptance.together-failed",
            part=message("acceptance.all-nodes") if each["part"] == ALL_NODES else each["part"],
            reason=each["reason"],
        )
        for each in acceptance["problems"]
        if failed_together(each)
    ]
    why += [cause_sentence(each) for each in acceptance["faults"] if _is_shared(each)]
    of_all = [row for row in acceptance["findings"] if row["part"] == ALL_NODES]
    why += [of_part(row) for row in of_all if row["against"] == CRITERIA and row["verdict"] != GOOD]
    if any((row["against"], row["verdict"]) == (HALF, OPEN) for row in of_all):
        why.append(message("acceptance.groups-open", measurements=acceptance["criteria"]["most"]))
    return why
