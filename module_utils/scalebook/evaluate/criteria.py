# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The criteria of an evaluation: each is met, not met or not measured, with what it was judged by.

The defaults are those of the evaluation plan of Tianshu (Oneflow-Inc/DLPerf, «天枢大规模分布式训练评测报告»):
80 % of linear speedup on 20 or more machines, 80 % mean utilisation, ahead of the other frameworks.
The options of a criterion are all that was planned: a case without a valid run is not measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

from ansible.module_utils.scalebook.contracts import Message, message
from ansible.module_utils.scalebook.evaluate.options import FEWEST_RUNS, Option, setting

MET, NOT_MET, NOT_MEASURED = "met", "not-met", "not-measured"
DEFAULTS: dict[str, Any] = {"efficiency": 80.0, "machines": 20, "utilisation": 80.0, "ahead": ""}


class Evidence(NamedTuple):
    """What was judged, and its value in the unit of the criterion, None where it was not measured."""

    what: str | Message
    value: float | None
    verdict: str


class Verdict(TypedDict):
    """One criterion, and its evidence: everything that it is judged by."""

    criterion: str
    limit: dict[str, Any]
    verdict: str
    unit: str
    evidence: list[Evidence]


def limits_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits of all criteria: those that the user gave, and the defaults."""
    return {**DEFAULTS, **{name: limit for name, limit in settings.items() if limit is not None}}


def judge_all(
    planned: Sequence[Option], published: Sequence[Option], limits: Mapping[str, Any]
) -> list[Verdict]:
    """Judge every criterion. What others published is judged by none; nobody is shown to be ahead of it."""
    return [
        scaling(planned, limits["efficiency"], limits["machines"]),
        utilisation(planned, limits["utilisation"]),
        ahead([*planned, *published], limits["ahead"]),
    ]


def worst(verdicts: Sequence[str]) -> str:
    """Return the verdict of several: NOT_MET if one is, MET if all are, else NOT_MEASURED."""
    if NOT_MET in verdicts:
        return NOT_MET
    return NOT_MEASURED if NOT_MEASURED in verdicts or not verdicts else MET


def _judged(name: str, limit: dict[str, Any], unit: str, evidence: list[Evidence]) -> Verdict:
    verdict = worst([each.verdict for each in evidence])
    return {"criterion": name, "limit": limit, "verdict": verdict, "unit": unit, "evidence": evidence}


def at_least(name: str | Message, value: float | None, limit: float) -> Evidence:
    """Return the evidence of a value that has to reach `limit`."""
    if value is None:
        return Evidence(name, None, NOT_MEASURED)
    return Evidence(name, value, MET if value >= limit else NOT_MET)


def scaling(options: Sequence[Option], percent: float, machines: int) -> Verdict:
    """Judge the parallel efficiency of every option on at least `machines`, which nodes may share."""
    large = [option for option in options if option["machines"] >= machines]
    shares = [None if each["efficiency"] is None else 100 * each["efficiency"] for each in large]
    evidence = [at_least(each["name"], share, percent) for each, share in zip(large, shares, strict=True)]
    return _judged("scaling", {"percent": percent, "machines": machines}, "%", evidence)


def utilisation(options: Sequence[Option], percent: float) -> Verdict:
    """Judge the mean utilisation of the GPUs, of the processors where an option used no GPU.

    Where no record says what it used, only GPUs count.
    """
    evidence = []
    for option in options:
        quantity = "cpu" if option["gpu"] is None else "gpu"
        evidence.append(
            at_least(
                message("evaluation.name-of", name=option["name"], quantity=quantity),
                option["usage"].get(quantity),
                percent,
            )
        )
    return _judged("utilisation", {"percent": percent}, "%", evidence)


def ahead(options: Sequence[Option], workload: str) -> Verdict:
    """Judge whether `workload` is faster than every other one of its family, wherever both have a case.

    Compared are options of the same hardware, topology, batch and precision; overlapping ranges are not
    ahead, and single runs and published figures show nothing.  The value is the rate divided by that of the
    other one that decides, the fastest of them.
    """
    evidence = []
    for option in options:
        others = [other for other in options if _comparable(option, other)]
        if workload and option["workload"] == workload and others:
            evidence.append(_ahead_of(option, others))
    return _judged("ahead", {"workload": workload}, "x", evidence)


def _ahead_of(option: Option, others: Sequence[Option]) -> Evidence:
    """Return the evidence of one option and those beside it."""
    verdicts = [_faster(option, other) for other in others]
    verdict = worst(verdicts)
    deciding = [other for other, each in zip(others, verdicts, strict=True) if each == verdict]
    fastest = max(deciding, key=lambda other: other["rate"])
    times = None if verdict == NOT_MEASURED else option["rate"] / fastest["rate"]
    return Evidence(
        message("evaluation.name-beside", name=option["name"], other=fastest["name"]), times, verdict
    )


def _faster(one: Option, other: Option) -> str:
    if min(one["runs"], other["runs"]) < FEWEST_RUNS:
        return NOT_MEASURED
    return MET if one["slowest"] > other["fastest"] else NOT_MET


def _comparable(one: Option, other: Option) -> bool:
    return (
        one["workload"] != other["workload"]
        and setting(one) == setting(other)
        and all(one.get(name) == other.get(name) for name in ("family", "nodes", "gpus", "link"))
    )
