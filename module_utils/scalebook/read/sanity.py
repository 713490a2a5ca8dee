# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What a log must contain for its run to be valid, apart from the steps."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from ansible.module_utils.scalebook import flops
from ansible.module_utils.scalebook.contracts import Case, Message, message
from ansible.module_utils.scalebook.workload import OTHER_NODES, SETTINGS, Sanity, Workload

FEW_LOSSES = 20
"""Fewer losses than these tell nothing: in the first steps the learning rate rises."""
SURE = 3
"""Standard errors by which a loss must miss its fall, so that the noise of small batches condemns no run."""


def rules_for(workload: Workload, case: Case, task_index: int) -> Workload:
    """Return `workload` with only those sanity rules that a node of this case has to meet.

    A case of before a setting existed does not have it, and neither has an import: its log need not show it.
    A setting `auto` leaves the choice to the workload.
    """
    rules = tuple(
        replace(rule, wanted=_value_of(rule, workload, case))
        for rule in workload.sanity
        if case["nodes"] >= rule.min_nodes
        and case.get("devices", 1) >= rule.min_devices
        and rule.device in (None, case.get("device"))
        and not (rule.first_node and task_index)
        and not (str(rule.expect).startswith(SETTINGS) and _expected(rule, case, task_index) is None)
        and not (rule.formula and _value_of(rule, workload, case) is None)
    )
    return replace(workload, sanity=rules)


def contradictions(
    rules: Sequence[Sanity], values_in_log: Mapping[str, Sequence[str]], case: Case, task_index: int
) -> list[Message]:
    """Return a message for every value of `values_in_log` that is not the one the case asks for.

    `values_in_log` holds the values per rule, as text.  A key the case leaves open (null) is not compared.
    """
    wrong = []
    for rule in rules:
        expected = _expected(rule, case, task_index)
        if expected is None:
            continue
        for value in values_in_log.get(rule.name, ()):
            if not _same(dict(rule.means).get(value, value), expected):
                values = {"name": rule.name, "value": value, "field": rule.expect, "wanted": expected}
                wrong.append(message("reason.other-value", **values))
    return wrong


def differences(
    rules: Sequence[Sanity], values_of_nodes: Sequence[tuple[str, Mapping[str, Sequence[str]]]]
) -> list[Message]:
    """Return a message for every value that the nodes must have in common and do not.

    `values_of_nodes` holds the log's name and the values seen per rule, for each node. A sum over all
    workers, such as the loss, is the same text in each log if and only if they trained together.
    """
    wrong = []
    for rule in rules:
        if rule.expect != OTHER_NODES:
            continue
        values_of_rule = [
            (file, value) for file, values in values_of_nodes for value in values.get(rule.name, ())
        ]
        first = dict(zip(("other", "theirs"), values_of_rule[0], strict=True)) if values_of_rule else {}
        wrong += [
            message("reason.nodes-differ", file=file, name=rule.name, value=value, **first)
            for file, value in values_of_rule[1:]
            if value != first["theirs"]
        ]
    return wrong


def flat_loss(losses: Sequence[float] | None, percent: int) -> Message | None:
    """Return a message where the loss does not fall by so many per cent, from the first quarter to the last.

    A batch with few samples has a noisy loss: what the noise can explain counts as fallen.
    """
    if not losses or len(losses) < FEW_LOSSES:
        return None
    quarter = len(losses) // 4
    first, last = losses[:quarter], losses[-quarter:]
    error = math.sqrt(_noise(first) + _noise(last))
    if fmean(first) - fmean(last) + SURE * error >= percent / 100 * abs(fmean(first)):
        return None
    return message("reason.flat-loss", first=fmean(first), last=fmean(last), share=percent / 100)


def _noise(losses: Sequence[float]) -> float:
    """Return the variance of a mean of losses, by the differences of neighbours, which hold no trend."""
    differences = [after - before for before, after in zip(losses, losses[1:], strict=False)]
    return fmean(each * each for each in differences) / 2 / len(losses)


def missing(
    rules: Sequence[Sanity], values_in_log: Mapping[str, Sequence[str]], excused: Container[str] = ()
) -> list[Message]:
    """Return a message for every rule whose line was not seen; the log need not show the `excused`."""
    return [
        message("reason.absent", name=rule.name, line=rule.line.literal.decode(errors="replace"))
        for rule in rules
        if rule.name not in values_in_log and rule.name not in excused
    ]


def _value_of(rule: Sanity, workload: Workload, case: Case) -> int | None:
    """Return the value of the rule's formula; None without one, or where the case leaves a name open."""
    if not rule.formula:
        return None
    try:
        return int(flops.evaluate(rule.expect, workload.names_of(case, simulated=False)))
    except (KeyError, TypeError, flops.FlopsError):
        return None


def _expected(rule: Sanity, case: Case, task_index: int) -> Any:
    if rule.formula:
        return rule.wanted
    if rule.expect is None or rule.expect == OTHER_NODES:
        return None
    if rule.expect == "task_index":
        return task_index
    if rule.expect == "steps":
        return case["warmup"] + case["window"]
    if rule.expect.startswith(SETTINGS):
        value = (case.get("settings") or {}).get(rule.expect.removeprefix(SETTINGS))
        return None if value == "auto" else value
    return case.get(rule.expect)


def _same(value: str, expected: Any) -> bool:
    if isinstance(expected, bool):
        return value.lower() in (("true", "1", "yes", "on") if expected else ("false", "0", "no", "off"))
    if isinstance(expected, int):
        return value.strip().lstrip("0") == str(expected).lstrip("0")
    return value == str(expected)
