# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The messages that are made from figures. Every number of them is in a table of the document as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import Message, message
from ansible.module_utils.scalebook.evaluate import comparisons, criteria
from ansible.module_utils.scalebook.evaluate.options import (
    FAMILIES,
    NOT_RECORDED,
    Option,
    devices,
    size_words,
)
from ansible.module_utils.scalebook.evaluate.published import SOURCES
from ansible.module_utils.scalebook.evaluate.ranking import ModelFamily
from ansible.module_utils.scalebook.grouping import grouped, unique
from ansible.module_utils.scalebook.pages.catalogue import CATALOGUES
from ansible.module_utils.scalebook.pages.wording import duration

SHOWN = 3
"""Pieces of evidence that a criterion is shown with."""
MOST_COSTS = 3
"""Trainings whose cost has words; a table has those of more."""


def term(kind: str, word: str) -> str | Message:
    """Return the message for a word of a kind (`unit`, `task`, `per` …), or the word where it has none."""
    code = f"evaluation.{kind}-{word.replace(' ', '-')}"
    return message(code) if code in CATALOGUES["en"] else word


def heading(key: str) -> str:
    """Return the code of the heading of a key: one of evaluations, of reports, or what a fact is called."""
    key = key.replace("_", "-")
    codes = [f"evaluation.head-{key}", f"head.{key}", f"fact.{key}"]
    return next((code for code in codes if code in CATALOGUES["en"]), codes[0])


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
    """Return what a criterion was judged by, the first of it, what did not meet it first."""
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
    return message("reason.together", parts=parts) if parts else None


def conclusion(evaluation: Mapping[str, Any]) -> list[Message]:
    """Return the messages of the conclusion, all made from the figures of the document."""
    messages = [each for family in evaluation["families"] for each in of_family(family)]
    for verdict in evaluation["criteria"]:
        judged = term("verdict", verdict["verdict"])
        messages.append(message("evaluation.titled", name=criterion(verdict), title=judged))
    costs = [
        cost for cost in evaluation["costs"] if cost["fastest"] and is_conclusive(evaluation, cost["fastest"])
    ]
    for cost in costs if len(costs) <= MOST_COSTS else ():
        about = {"task": evaluation["task"]["name"], "training": cost["name"]}
        for code, offers in (("lowest-cost-of", cost["cheapest"]), ("shortest-time-of", cost["fastest"])):
            if offers:
                figures = {"cost": offers[0]["cost"], "time": duration(3600 * offers[0]["hours"])}
                figures["currency"] = term("currency", cost["currency"])
                messages.append(message(f"evaluation.{code}", **about, **figures, names=named(offers)))
    return messages


def is_conclusive(evaluation: Mapping[str, Any], offers: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the first of these offers was measured, or nothing in the document was."""
    was_measured = any(option["rates"] for family in evaluation["families"] for option in family["options"])
    return not (was_measured and offers[0]["source"] in SOURCES.values())


def conclusive(family: ModelFamily) -> list[Option]:
    """Return the measured options of a family, the published ones where none was measured."""
    return [option for option in family["options"] if option["rates"]] or family["options"]


def of_family(family: ModelFamily) -> list[Message]:
    """Return the fastest of each training on one device and on the most, and what switches gain."""
    options = conclusive(family)
    best = comparisons.best_of_each(options)
    trainings = grouped([each.option for each in best], comparisons.training)
    messages = []
    for kind, own in trainings.items():
        what: list[str | Message] = [FAMILIES.get(family["name"], family["name"])]
        what += training_words(own[0]) if len(trainings) > 1 else []
        what += [] if own[0]["rates"] else [message("evaluation.published")]
        rows = [each for each in best if comparisons.training(each.option) == kind]
        parts = [
            *_fastest([each for each in rows if each.on_one]),
            *_scaled([each for each in rows if not each.on_one]),
        ]
        messages.append(message("evaluation.of-training", what=what, parts=parts))
    gains = grouped(comparisons.gains(options), lambda gain: gain.what)
    return messages + [_gained(pairs) for pairs in gains.values()]


def _fastest(rows: Sequence[comparisons.Best]) -> list[Message]:
    """Return who is the fastest on one device, and who is next."""
    code = "fastest-of" if len(rows) > 1 else "rate-of"
    messages = [message(f"evaluation.{code}", **_figures(each)) for each in rows[:1]]
    for each in rows[1:2]:
        values = {"name": each.option["workload"], "share": each.share, "differs": differs(each)}
        messages.append(message("evaluation.next-of", **values))
    return messages


def _scaled(rows: Sequence[comparisons.Best]) -> list[Message]:
    """Return how well the fastest on the most devices scales, and on how many machines if it had nodes."""
    option = rows[0].option if rows else None
    if option is None or option["efficiency"] is None:
        return []
    code = "scaled-on" if option["nodes"] > 1 else "scaled-of"
    places = {"devices": devices(option), "machines": option["machines"]}
    return [message(f"evaluation.{code}", **places, **_figures(rows[0]))]


def _figures(best: comparisons.Best) -> dict[str, Any]:
    option = best.option
    rate, unit = comparisons.per_device(option), term("unit", option["unit"])
    return {"name": option["name"], "efficiency": option["efficiency"], "rate": rate, "unit": unit}


def differs(best: comparisons.Best) -> Message | None:
    """Return what an option differs in from the best one, or what else it trains; None for that one."""
    values = {key: words for key, words in _trained(best.option).items() if key in best.differs}
    if values:
        return message("evaluation.other-training", training=list(values.values()))
    codes = list(map(heading, best.differs)) or ["evaluation.nothing"] * (best.share < 1)
    words = list(map(message, codes))
    return message("evaluation.names", parts=words) if words else None


def _gained(pairs: Sequence[comparisons.Gain]) -> Message:
    """Return how much faster each workload is with a compiler or with 16 bits."""
    parts = []
    for workload, own in grouped(pairs, lambda pair: pair.off["workload"]).items():
        least, most = min(pair.times for pair in own), max(pair.times for pair in own)
        code = "gain-part" if least < most else "gain-part-one"
        parts.append(message(f"evaluation.{code}", workload=workload, least=least, most=most))
    off = "fp32" if pairs[0].off["dtype"] != pairs[0].on["dtype"] else message("evaluation.no-compiler")
    return message("evaluation.gain-of", what=pairs[0].what, off=off, parts=parts)


def training_words(option: Option) -> list[str | Message]:
    """Return the words for what an option trains: model, task, and the size of a sample if it is known."""
    return list(_trained(option).values())


def _trained(option: Option) -> dict[str, str | Message]:
    """Return the words of each of these by its key."""
    texts = {key: str(option[key]) for key in ("model", "task")}
    words: dict[str, str | Message] = {
        key: term("task", word) for key, word in texts.items() if word not in ("", NOT_RECORDED)
    }
    size = size_words(option)
    return {**words, "size": size[0]} if size else words


def named(offers: Sequence[Mapping[str, Any]]) -> str | Message:
    """Return the name of the best option, or the names of those that tie."""
    names = unique(message("evaluation.name-on", name=offer["name"], gpu=offer["gpu"]) for offer in offers)
    return names[0] if len(names) == 1 else message("evaluation.tie", names=names)
