# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The sentences that are made from figures. Every number of them is in a table of the document as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.evaluate import criteria, ranking
from ansible.module_utils.scalebook.evaluate.options import NOT_RECORDED, Option, devices, size_words
from ansible.module_utils.scalebook.evaluate.ranking import Family
from ansible.module_utils.scalebook.pages.blocks import (
    Cell,
    Figure,
    all_digits,
    exact,
    figure,
    percent,
    times,
)
from ansible.module_utils.scalebook.text import readable

Texts = Mapping[str, Any]


def text(cell: Cell) -> str:
    """Return what people read in a cell, without the sign of per cent."""
    return (cell.text if isinstance(cell, Figure) else cell).removesuffix(" %")


def rate(option: Mapping[str, Any]) -> Cell:
    """Return the rate of an option: a published one with all its digits."""
    return figure(option["rate"]) if option["rates"] else exact(option["rate"])


def gain(times: float) -> Figure:
    """Return how much faster a quotient of rates is, in per cent: 1.234 is 23.4."""
    return Figure(times - 1, f"{100 * (times - 1):.1f} %")


def ranked(lead: ranking.Lead, texts: Texts) -> str:
    """Return who is faster by how much, or that no difference is shown, or that it cannot be judged."""
    name = {
        ranking.FASTER: "ranking_interval" if lead["interval"] else "ranking_line",
        ranking.TIE: "ranking_tie",
        ranking.UNKNOWN: "ranking_unknown",
    }[lead["verdict"]]
    shares = {
        "percent": text(gain(lead["times"])),
        "least": text(gain(lead["least"])),
        "most": text(gain(lead["most"])),
    }
    return str(texts[name]).format(first=lead["first"], other=lead["other"], **shares)


def extrapolated(each: Mapping[str, Any], texts: Texts) -> str:
    """Return an extrapolation in words, or why there is none."""
    fit = each["fit"]
    if not fit:
        kind, values = each["refused"]
        why = texts["refusals"][kind].format(*values)
        return str(texts["extrapolation_refused"]).format(name=each["name"], why=why)
    shares = {
        key: text(percent(fit[of]))
        for key, of in (("percent", "efficiency"), ("least", "least"), ("most", "most"))
    }
    ends = {"first": fit["measured"][0][0], "last": fit["measured"][-1][0]}
    return str(texts["extrapolation_line"]).format(
        name=each["name"], machines=fit["machines"], **shares, **ends
    )


def criterion(verdict: Mapping[str, Any], texts: Texts) -> str:
    """Return a criterion in words."""
    name = f"criterion_{verdict['criterion']}"
    if verdict["criterion"] == "ahead" and not verdict["limit"]["workload"]:
        name = "criterion_ahead_of_none"
    limits = {key: f"{each:g}" if isinstance(each, float) else each for key, each in verdict["limit"].items()}
    return str(texts[name]).format(**limits)


def evidence(verdict: Mapping[str, Any], texts: Texts) -> str:
    """Return what a criterion was judged by, up to five of it, what did not meet it first."""
    order = (criteria.NOT_MET, criteria.NOT_MEASURED, criteria.MET)
    ordered = sorted(verdict["evidence"], key=lambda each: order.index(each[2]))

    def shown_of(value: float | None) -> str:
        missing = str(texts["verdicts"][criteria.NOT_MEASURED])
        return missing if value is None else f"{readable(value)} {verdict['unit']}"

    shown = [f"{what}: {shown_of(value)}" for what, value, _ in ordered[:5]]
    more = len(ordered) - len(shown)
    return "; ".join(shown + [f"… (+{more})"] * bool(more)) or "–"


def conclusion(evaluation: Mapping[str, Any], texts: Texts) -> list[str]:
    """Return the sentences of the conclusion, all made from the figures of the document."""
    lines = []
    for family in evaluation["families"]:
        lines += of_family(family, texts)
    for verdict in evaluation["criteria"]:
        lines.append(criterion(verdict, texts) + texts["colon"] + texts["verdicts"][verdict["verdict"]])
    for cost in evaluation["costs"]:
        task = (evaluation["task"]["name"], cost["name"])
        cheapest, fastest = cost["cheapest"], cost["fastest"]
        if cheapest:
            price = f"{readable(cheapest[0]['cost'])} {cost['currency']}"
            lines.append(texts["cheapest_of"].format(*task, price, named(cheapest, texts)))
        if fastest:
            hours = readable(fastest[0]["hours"])
            lines.append(texts["quickest_of"].format(*task, hours, named(fastest, texts)))
    return lines


def of_family(family: Family, texts: Texts) -> list[str]:
    """Return the highest rate of each training of a family, and the best efficiency on the most devices.

    Published rows count only where nothing was measured.
    """
    name = texts["families"].get(family["name"], family["name"])
    options = [option for option in family["options"] if option["rates"]] or family["options"]
    trainings: dict[tuple[str, ...], list[Option]] = {}
    for option in options:
        trainings.setdefault(tuple(option[key] for key in ("model", "task", "size", "unit")), []).append(
            option
        )
    lines = []
    for alike in trainings.values():
        best = max(alike, key=lambda option: float(option["rate"]))
        what = [name, *_training(best, texts)] if len(trainings) > 1 else [name]
        unit = texts["units"].get(best["unit"], best["unit"])
        lines.append(
            texts["fastest_of"].format(texts["comma"].join(what), text(rate(best)), unit, best["name"])
        )
    scaled = [each for each in options if each["efficiency"] is not None and devices(each) > 1]
    if scaled:
        most = max(devices(each) for each in scaled)
        best = max(
            (each for each in scaled if devices(each) == most),
            key=lambda each: float(each["efficiency"] or 0),
        )
        shares = (text(times(best["speedup"])), text(percent(best["efficiency"])))
        lines.append(texts["scaled_of"].format(name, most, *shares, best["name"]))
    return lines


def _training(option: Option, texts: Texts) -> list[str]:
    """Return the words for what an option trains: model, task, and the size of a sample if it is known."""
    task = texts["tasks"].get(option["task"], option["task"])
    known = [word for word in (option["model"], task) if word and word != NOT_RECORDED]
    return [*known, *size_words(option)]


def named(offers: Sequence[Mapping[str, Any]], texts: Texts) -> str:
    """Return the name of the best option, or the names of those that tie."""
    names = list(dict.fromkeys(f"{offer['name']}, {offer['gpu']}" for offer in offers))
    return names[0] if len(names) == 1 else str(texts["tie"]).format("; ".join(names))


def within(evaluation: Mapping[str, Any], cost: Mapping[str, Any], texts: Texts) -> list[list[Cell]]:
    """Return the questions after deadline and budget with the options that answer them."""

    def answer(offers: Sequence[Mapping[str, Any]]) -> str:
        return ", ".join(dict.fromkeys(offer["name"] for offer in offers)) or str(texts["nothing_within"])

    rows: list[list[Cell]] = []
    if evaluation["deadline_hours"]:
        question = texts["within_deadline"].format(all_digits(evaluation["deadline_hours"]))
        rows.append([question, answer(cost["within_deadline"])])
    if evaluation["budget"]:
        question = texts["within_budget"].format(all_digits(evaluation["budget"]), cost["currency"])
        rows.append([question, answer(cost["within_budget"])])
    return rows
