# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The criteria of an evaluation: each is met, not met or not measured, with what it was judged by.

The defaults are those of the evaluation plan of Tianshu (Oneflow-Inc/DLPerf, «天枢大规模分布式训练评测报告»):
80 % of linear speedup on 20 or more machines, 80 % mean utilisation, ahead of the other frameworks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from ansible.module_utils.scalebook.evaluate.options import Option, setting

MET, NOT_MET, NOT_MEASURED = "met", "not met", "not measured"
DEFAULTS: dict[str, Any] = {"efficiency": 80.0, "machines": 20, "utilisation": 80.0, "ahead": ""}


class Verdict(TypedDict):
    """One criterion, and its evidence: (what, value in `unit`, met or not met) of everything judged."""

    criterion: str
    limit: dict[str, Any]
    verdict: str
    unit: str
    evidence: list[tuple[str, float, str]]


def judged(evidence: Sequence[tuple[str, float, str]]) -> str:
    """Return the verdict that follows from its evidence: met where all of it is, not measured without any."""
    if not evidence:
        return NOT_MEASURED
    return MET if all(verdict == MET for _, _, verdict in evidence) else NOT_MET


def scaling(options: Sequence[Option], percent: float, machines: int) -> Verdict:
    """Judge the parallel efficiency of every option on at least `machines` nodes."""
    evidence = [
        (
            option["name"],
            100 * option["efficiency"],
            MET if 100 * option["efficiency"] >= percent else NOT_MET,
        )
        for option in options
        if option["nodes"] >= machines and option["efficiency"] is not None
    ]
    limit = {"percent": percent, "machines": machines}
    return {
        "criterion": "scaling",
        "limit": limit,
        "verdict": judged(evidence),
        "unit": "%",
        "evidence": evidence,
    }


def utilisation(options: Sequence[Option], percent: float) -> Verdict:
    """Judge the mean utilisation of the GPUs, of the processors where an option used no GPU."""
    evidence = []
    for option in options:
        quantity = "cpu" if option["gpu"] is None else "gpu"
        if quantity in option["usage"]:
            mean = option["usage"][quantity]
            evidence.append((f"{option['name']}, {quantity}", mean, MET if mean >= percent else NOT_MET))
    return {
        "criterion": "utilisation",
        "limit": {"percent": percent},
        "verdict": judged(evidence),
        "unit": "%",
        "evidence": evidence,
    }


def ahead(options: Sequence[Option], workload: str) -> Verdict:
    """Judge whether `workload` is faster than every other one of its family, wherever both were measured.

    Compared are options of the same hardware, topology, batch and precision; overlapping ranges are not
    ahead.  The value is the rate divided by that of the fastest other one.
    """
    evidence = []
    for option in options:
        others = [other for other in options if _comparable(option, other)]
        if option["workload"] != workload or not others:
            continue
        fastest = max(others, key=lambda other: other["rate"])
        met = MET if option["slowest"] > max(other["fastest"] for other in others) else NOT_MET
        evidence.append((f"{option['name']} / {fastest['name']}", option["rate"] / fastest["rate"], met))
    return {
        "criterion": "ahead",
        "limit": {"workload": workload},
        "verdict": judged(evidence) if workload else NOT_MEASURED,
        "unit": "x",
        "evidence": evidence,
    }


def _comparable(one: Option, other: Option) -> bool:
    return (
        one["workload"] != other["workload"]
        and setting(one) == setting(other)
        and (one["family"], one["nodes"], one["gpus"]) == (other["family"], other["nodes"], other["gpus"])
    )
