# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Time and cost of the training that the user asks about, for each workload, model and size of a sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import Message, message
from ansible.module_utils.scalebook.evaluate import value
from ansible.module_utils.scalebook.evaluate.options import Option, size_words
from ansible.module_utils.scalebook.judge.prices import Price

MILLION = 1e6


def task(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the training whose cost is computed, with its number of samples in `total`."""
    total = float(given["samples"]) * float(given["epochs"])
    return {**given, "name": given["name"] or f"{total:,.0f}", "total": total}


def of_options(
    given: Mapping[str, Any], options: Sequence[Option], price_list: Sequence[Price]
) -> list[dict[str, Any]]:
    """Return time and cost of the task for each workload, model and size: others are not the same training.

    `given` are the options of module evaluation.
    """
    trainings: dict[tuple[str, str, str], list[Option]] = {}
    for option in options:
        trainings.setdefault((option["workload"], option["model"], option["size"]), []).append(option)
    alike = Counter((workload, model) for workload, model, _ in trainings)
    return [
        _cost(given, _name(found[0], alike[workload, model] > 1), found, price_list)
        for (workload, model, _), found in trainings.items()
    ]


def _name(option: Option, sized: bool) -> Message:
    """Return what people call a training, with the size of a sample if it is `sized`: there are several."""
    words = [f"{option['workload']} {option['model']}", *(size_words(option) if sized else ())]
    return message("evaluation.names", parts=words)


def _cost(
    given: Mapping[str, Any], name: Message, options: Sequence[Option], price_list: Sequence[Price]
) -> dict[str, Any]:
    wanted = task(given["task"])
    found = value.offers(options, price_list, wanted["total"], float(given["electricity"] or 0))
    found.sort(key=lambda offer: (not offer["known"], offer["cost"]))
    rows = [_row(offer["option"], wanted, offer) for offer in found]
    known = [offer for offer in found if offer["known"]]
    # Two options may have one name.
    bare = [option for option in options if not any(offer["option"] is option for offer in found)]
    bare.sort(key=lambda option: -option["rate"])
    return {
        "name": name,
        "currency": found[0]["price"]["currency"] if found else None,
        "prices": [price for price in price_list if any(offer["price"] == price for offer in found)],
        "rows": rows + [_row(option, wanted, None) for option in bare],
        "offers": [_offer(offer) for offer in known],
        "energy_unknown": list(dict.fromkeys(each["option"]["name"] for each in found if not each["known"])),
        "front": [_offer(offer) for offer in value.front(known)],
        "cheapest": [_offer(offer) for offer in value.best(known, value.COST)],
        "fastest": [_offer(offer) for offer in value.best(found, value.HOURS)],
        "within_deadline": [
            _offer(each) for each in value.cheapest_within(known, given["deadline_hours"] or 0)
        ],
        "within_budget": [_offer(each) for each in value.fastest_within(known, given["budget"] or 0)],
    }


def _row(option: Option, wanted: Mapping[str, Any], offer: value.Offer | None) -> dict[str, Any]:
    """Return time, cost and energy of an option; cost is None where not known, energy where not measured."""
    hours = wanted["total"] / option["rate"] / 3600
    cost = offer["cost"] if offer and offer["known"] else None
    joules = option["joules"]

    def share(samples: float) -> dict[str, float | None]:
        part = samples / wanted["total"]
        return {"hours": hours * part, "cost": None if cost is None else cost * part}

    return {
        "name": option["name"],
        "source": option["source"],
        "gpu": option["gpu"],
        "per": offer["price"]["per"] if offer else None,
        "hourly": offer["hourly"] if offer else None,
        "million": share(MILLION),
        "epoch": share(float(wanted["samples"])),
        "total": share(wanted["total"]),
        "kwh": None if joules is None else joules * wanted["total"] / value.JOULES_PER_KWH,
        "energy_cost": offer["energy_cost"] if offer and joules is not None else None,
    }


def _offer(offer: value.Offer) -> dict[str, Any]:
    """Return an offer as evaluation.json has it: its costs are None where they are not known."""

    def cost(amount: float) -> float | None:
        return amount if offer["known"] else None

    return {
        "name": offer["option"]["name"],
        "source": offer["option"]["source"],
        "gpu": offer["option"]["gpu"],
        "per": offer["price"]["per"],
        "hourly": offer["hourly"],
        "hours": offer["hours"],
        "cost": cost(offer["cost"]),
        "energy_cost": cost(offer["energy_cost"]),
        "least": (offer["least"][value.HOURS], cost(offer["least"][value.COST])),
        "most": (offer["most"][value.HOURS], cost(offer["most"][value.COST])),
    }
