# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Time and cost of the training that the user asks about, and which options are worth their price.

Options are compared by workload, model and size of a sample: others are not the same training.  Two options
whose ranges overlap are a tie: the difference is within what repeats of a run differ by.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from ansible.module_utils.scalebook.contracts import Message, message
from ansible.module_utils.scalebook.evaluate.options import Option, size_words, values_of
from ansible.module_utils.scalebook.grouping import grouped, unique
from ansible.module_utils.scalebook.judge import prices
from ansible.module_utils.scalebook.judge.prices import Price
from ansible.module_utils.scalebook.pages.numbers import whole

JOULES_PER_KWH = 3.6e6
HOURS, COST = 0, 1
"""The quantities of `least` and `most`."""


class Offer(TypedDict):
    """What a training takes on an option, at a price or without one.

    `hours` and `cost` are of the median rate; `least` and `most` are (hours, cost) of the fastest and of the
    slowest run.  `cost` includes `energy_cost`.  It is None without a price, and where electricity has one
    and the energy was not measured: then nothing is compared by it.
    """

    name: str | Message
    source: str
    gpu: str | None
    per: str | None
    hourly: float | None
    hours: float
    cost: float | None
    kwh: float | None
    energy_cost: float | None
    least: tuple[float | None, float | None]
    most: tuple[float | None, float | None]


class Cost(TypedDict):
    """Time and cost of a training: `rows` are all its offers, `offers` those of a known cost.

    `front` is the Pareto front of these, the others are what ties as the best.
    """

    name: Message
    currency: str | None
    prices: list[Price]
    rows: list[Offer]
    offers: list[Offer]
    energy_unknown: list[str | Message]
    front: list[Offer]
    cheapest: list[Offer]
    fastest: list[Offer]
    within_deadline: list[Offer]
    within_budget: list[Offer]


class ComparisonError(ValueError):
    """Offers that cannot be compared; the text says why."""


def task(task_fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the training whose cost is computed, with its number of samples in `total`."""
    total = float(task_fields["samples"]) * float(task_fields["epochs"])
    return {**task_fields, "name": task_fields["name"] or whole(total), "total": total}


def of_options(
    settings: Mapping[str, Any], options: Sequence[Option], price_list: Sequence[Price]
) -> list[Cost]:
    """Return time and cost of the task for each workload, model and size.

    `settings` are the options of module evaluation.
    """
    trainings = grouped(options, lambda each: (each["workload"], each["model"], each["size"]))
    alike = Counter((workload, model) for workload, model, _ in trainings)
    return [
        _cost(settings, _name(own[0], alike[workload, model] > 1), own, price_list)
        for (workload, model, _), own in trainings.items()
    ]


def _name(option: Option, sized: bool) -> Message:
    """Return what people call a training, with the size of a sample if it is `sized`: there are several."""
    words = [f"{option['workload']} {option['model']}", *(size_words(option) if sized else ())]
    return message("evaluation.names", parts=words)


def _cost(
    settings: Mapping[str, Any], name: Message, options: Sequence[Option], price_list: Sequence[Price]
) -> Cost:
    samples, electricity = task(settings["task"])["total"], float(settings["electricity"] or 0)
    priced = offers(options, price_list, samples, electricity)
    bare = [option for option in options if not _prices(option, price_list)]
    with_cost = [offer for offer in priced if offer["cost"] is not None]
    applying = [
        price for price in price_list if any(price in _prices(option, price_list) for option in options)
    ]
    return {
        "name": name,
        "currency": applying[0]["currency"] if applying else None,
        "prices": applying,
        "rows": [
            *priced,
            *(_offer(each, None, samples, 0) for each in sorted(bare, key=lambda each: -each["rate"])),
        ],
        "offers": with_cost,
        "energy_unknown": unique(offer["name"] for offer in priced if offer["cost"] is None),
        "front": front(with_cost),
        "cheapest": best(with_cost, COST),
        "fastest": best(priced, HOURS),
        "within_deadline": cheapest_within(with_cost, settings["deadline_hours"] or 0),
        "within_budget": fastest_within(with_cost, settings["budget"] or 0),
    }


def _prices(option: Option, price_list: Sequence[Price]) -> list[Price]:
    return prices.of_gpu(price_list, option["gpu"] or "")


def offers(
    options: Sequence[Option], price_list: Sequence[Price], samples: float, electricity: float = 0.0
) -> list[Offer]:
    """Return an offer for each option and each price of its GPU, the cheapest first, unknown costs last.

    `electricity` is the price of a kWh in the currency of the prices.
    """
    priced = [(option, price) for option in options for price in _prices(option, price_list)]
    # The price of electricity has no currency of its own: it is that of the whole list.
    compared = price_list if electricity else [price for _, price in priced]
    currencies = sorted({price["currency"] for price in compared})
    if len(currencies) > 1:
        raise ComparisonError(f"the prices are in {' and '.join(currencies)}; give them in one currency")
    every = [_offer(option, price, samples, electricity) for option, price in priced]

    def place(offer: Offer) -> tuple[bool, float]:
        is_unknown = offer["cost"] is None
        return is_unknown, (offer["hourly"] or 0) * offer["hours"] if is_unknown else offer["cost"] or 0

    return sorted(every, key=place)


def _offer(option: Option, price: Price | None, samples: float, electricity: float) -> Offer:
    joules = option["joules"]
    kwh = None if joules is None else joules * samples / JOULES_PER_KWH
    hourly = prices.hourly(price, option["nodes"], option["gpus"]) if price else None
    is_known = not electricity or kwh is not None

    def needs_at(rate: float) -> tuple[float, float | None]:
        hours = samples / rate / 3600
        is_priced = hourly is not None and is_known
        return hours, hours * (hourly or 0) + (kwh or 0) * electricity if is_priced else None

    hours, cost = needs_at(option["rate"])
    return {
        **{key: option[key] for key in ("name", "source", "gpu")},  # type: ignore[typeddict-item]
        "per": price["per"] if price else None,
        "hourly": hourly,
        "hours": hours,
        "cost": cost,
        "kwh": kwh,
        "energy_cost": None if kwh is None or price is None else kwh * electricity,
        "least": needs_at(option["fastest"]),
        "most": needs_at(option["slowest"]),
    }


def better(one: Offer, other: Offer, quantity: int) -> bool:
    """Return whether `one` needs less than `other` in every run; `quantity` is HOURS or COST."""
    most, least = one["most"][quantity], other["least"][quantity]
    return most is not None and least is not None and most < least


def front(choices: Sequence[Offer]) -> list[Offer]:
    """Return the Pareto front: offers that no other one beats in time or cost without losing in the other."""

    def beaten(offer: Offer) -> bool:
        return any(
            better(other, offer, one) and not better(offer, other, COST - one)
            for other in choices
            for one in (HOURS, COST)
        )

    return sorted((offer for offer in choices if not beaten(offer)), key=lambda offer: offer["hours"])


def best(choices: Sequence[Offer], quantity: int) -> list[Offer]:
    """Return the offer that needs least, and those that tie with it; none where there is no offer."""
    ordered = sorted(choices, key=lambda offer: (offer["hours"], offer["cost"] or 0.0)[quantity])
    return [offer for offer in ordered if not better(ordered[0], offer, quantity)]


def cheapest_within(choices: Sequence[Offer], hours: float) -> list[Offer]:
    """Return the cheapest offers of which every run is done within `hours`, ties included."""
    return best([offer for offer in choices if (offer["most"][HOURS] or 0.0) <= hours], COST)


def fastest_within(choices: Sequence[Offer], cost: float) -> list[Offer]:
    """Return the fastest offers of which no run costs more than `cost`, ties included."""
    return best([offer for offer in choices if (offer["most"][COST] or 0.0) <= cost], HOURS)


def slower_than_one(options: Sequence[Option]) -> list[dict[str, Any]]:
    """Return the options on several devices that were slower than the one on a single device."""

    def kind(option: Mapping[str, Any]) -> tuple[Any, ...]:
        names = ("source", "group", "workload", "model", "variant", "gpu", "bsz", "dtype", "xla")
        return values_of(option, names)

    single = {kind(option): option for option in options if option["nodes"] * option["gpus"] == 1}
    return [
        {
            "option": option["name"],
            "source": option["source"],
            "alone": of_one["name"],
            "times": option["rate"] / of_one["rate"],
        }
        for option in options
        if (of_one := single.get(kind(option))) and option["fastest"] < of_one["slowest"]
    ]
