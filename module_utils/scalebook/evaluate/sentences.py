# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The messages that are made from figures. Every number of them is in a table of the document as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import Message, message
from ansible.module_utils.scalebook.evaluate import criteria, ranking
from ansible.module_utils.scalebook.evaluate.options import (
    FAMILIES,
    NOT_RECORDED,
    Option,
    devices,
    size_words,
)
from ansible.module_utils.scalebook.evaluate.ranking import ModelFamily
from ansible.module_utils.scalebook.pages.catalogue import CATALOGUES

LEADS = {
    ranking.FASTER: "line",
    ranking.TIE: "tie",
    ranking.UNKNOWN: "unknown",
}
SHOWN = 5
"""Pieces of evidence that a criterion is shown with."""


def term(kind: str, word: str) -> str | Message:
    """Return the message for a word of a kind (`unit`, `task`, `per` …), or the word where it has none."""
    code = f"evaluation.{kind}-{word.replace(' ', '-')}"
    return message(code) if code in CATALOGUES["en"] else word


def ranked(lead: ranking.Lead) -> Message:
    """Return who is faster by how much, or that no difference is shown, or that it cannot be judged."""
    interval = lead["verdict"] == ranking.FASTER and lead["interval"]
    shares = {key: lead[of] - 1 for key, of in (("gain", "times"), ("least", "least"), ("most", "most"))}  # type: ignore[literal-required]
    code = "interval" if interval else LEADS[lead["verdict"]]
    return message(f"evaluation.ranking-{code}", first=lead["first"], other=lead["other"], **shares)


def extrapolated(each: Mapping[str, Any]) -> Message:
    """Return an extrapolation in words, or why there is none."""
    fit = each["fit"]
    if not fit:
        return message("evaluation.extrapolation-refused", name=each["name"], why=each["refused"])
    shares = {key: fit[key] for key in ("machines", "efficiency", "least", "most")}
    ends = {"first": fit["measured"][0][0], "last": fit["measured"][-1][0]}
    return message("evaluation.extrapolation-line", name=each["name"], **shares, **ends)


def criterion(verdict: Mapping[str, Any]) -> Message:
    """Return a criterion in words."""
    unnamed = verdict["criterion"] == "ahead" and not verdict["limit"]["workload"]
    return message(f"evaluation.criterion-{verdict['criterion']}{'-of-none' * unnamed}", **verdict["limit"])


def evidence(verdict: Mapping[str, Any]) -> Message | None:
    """Return what a criterion was judged by, up to five of it, what did not meet it first."""
    order = (criteria.NOT_MET, criteria.NOT_MEASURED, criteria.MET)
    ordered = sorted(verdict["evidence"], key=lambda each: order.index(each[2]))
    parts = [
        message(
            f"evaluation.evidence{'-missing' * (value is None)}", name=name, value=value, unit=verdict["unit"]
        )
        for name, value, _ in ordered[:SHOWN]
    ]
    if len(ordered) > SHOWN:
        parts.append(message("evaluation.evidence-more", count=len(ordered) - SHOWN))
    return message("evaluation.all", parts=parts) if parts else None


def conclusion(evaluation: Mapping[str, Any]) -> list[Message]:
    """Return the messages of the conclusion, all made from the figures of the document."""
    messages = [each for family in evaluation["families"] for each in of_family(family)]
    for verdict in evaluation["criteria"]:
        judged = term("verdict", verdict["verdict"])
        messages.append(message("evaluation.titled", name=criterion(verdict), title=judged))
    for cost in evaluation["costs"]:
        about = {"task": evaluation["task"]["name"], "training": cost["name"], "currency": cost["currency"]}
        for code, offers in (("lowest-cost-of", cost["cheapest"]), ("shortest-time-of", cost["fastest"])):
            if offers:
                figures = {key: offers[0][key] for key in ("cost", "hours")}
                messages.append(message(f"evaluation.{code}", **about, **figures, names=named(offers)))
    return messages


def of_family(family: ModelFamily) -> list[Message]:
    """Return the highest rate of each training of a family, and the best efficiency on the most devices.

    Published rows count only where nothing was measured.
    """
    name = FAMILIES.get(family["name"], family["name"])
    options = [option for option in family["options"] if option["rates"]] or family["options"]
    trainings: dict[tuple[str, ...], list[Option]] = {}
    for option in options:
        alike = (option["model"], option["task"], option["size"], option["unit"])
        trainings.setdefault(alike, []).append(option)
    messages = []
    for each in trainings.values():
        best = max(each, key=lambda option: option["rate"])
        what = [name, *(_training(best) if len(trainings) > 1 else ())]
        code = "evaluation.rate" if best["rates"] else "evaluation.published-rate"
        rate = message(code, rate=best["rate"], unit=term("unit", best["unit"]))
        messages.append(message("evaluation.fastest-of", what=what, rate=rate, name=best["name"]))
    scaled = [each for each in options if each["efficiency"] is not None and devices(each) > 1]
    if scaled:
        most = max(map(devices, scaled))
        best = max(
            (each for each in scaled if devices(each) == most), key=lambda each: each["efficiency"] or 0
        )
        figures = {key: best[key] for key in ("speedup", "efficiency", "name")}
        messages.append(message("evaluation.scaled-of", family=name, devices=most, **figures))
    return messages


def _training(option: Option) -> list[str | Message]:
    """Return the words for what an option trains: model, task, and the size of a sample if it is known."""
    words = [word for word in (option["model"], option["task"]) if word and word != NOT_RECORDED]
    return [*(term("task", word) for word in words), *size_words(option)]


def named(offers: Sequence[Mapping[str, Any]]) -> str | Message:
    """Return the name of the best option, or the names of those that tie."""
    names = list(dict.fromkeys(f"{offer['name']}, {offer['gpu']}" for offer in offers))
    return names[0] if len(names) == 1 else message("evaluation.tie", names=names)
