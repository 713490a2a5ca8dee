# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Time and cost of a training for each option, and which options are worth their price.

Two options whose ranges overlap are a tie: the difference is within what repeats of a run differ by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from ansible.module_utils.scalebook.evaluate.options import Option
from ansible.module_utils.scalebook.judge import prices
from ansible.module_utils.scalebook.judge.prices import Price

JOULES_PER_KWH = 3.6e6


class Offer(TypedDict):
    """An option at a price: what `samples` cost on it.

    `hours` and `cost` are of the median rate; `least` and `most` are (hours, cost) of the fastest and of the
    slowest run.  `cost` includes `energy_cost`, which is 0 where electricity has no price.  Where it has one
    and the energy was not measured, the costs lack it: they are not `known`, and nothing is compared by them.
    """

    option: Option
    price: Price
    hourly: float
    hours: float
    cost: float
    energy_cost: float
    known: bool
    least: tuple[float, float]
    most: tuple[float, float]


class ComparisonError(ValueError):
    """Offers that cannot be compared; the text says why."""


def offers(
    options: Sequence[Option],
    price_list: Sequence[Price],
    samples: float,
    electricity: float = 0.0,
) -> list[Offer]:
    """Return an offer for each option and each price of its GPU.

    `electricity` is the price of a kWh in the currency of the prices.  An option without a price has no
    offer.
    """
    currencies = sorted({price["currency"] for price in price_list})
    if len(currencies) > 1:
        raise ComparisonError(f"the prices are in {' and '.join(currencies)}; give them in one currency")
    return [
        _offer(option, price, samples, electricity)
        for option in options
        for price in prices.of_gpu(price_list, option["gpu"] or "")
    ]


def _offer(option: Option, price: Price, samples: float, electricity: float) -> Offer:
    per_hour = prices.hourly(price, option["nodes"], option["gpus"])
    energy = (option["joules"] or 0.0) * samples / JOULES_PER_KWH * electricity

    def at(rate: float) -> tuple[float, float]:
        hours = samples / rate / 3600
        return hours, hours * per_hour + energy

    hours, cost = at(option["rate"])
    return {
        "option": option,
        "price": price,
        "hourly": per_hour,
        "hours": hours,
        "cost": cost,
        "energy_cost": energy,
        "known": not electricity or option["joules"] is not None,
        "least": at(option["fastest"]),
        "most": at(option["slowest"]),
    }


HOURS, COST = 0, 1


def better(one: Offer, other: Offer, quantity: int) -> bool:
    """Return whether `one` needs less than `other` in every run; `quantity` is HOURS or COST."""
    return one["most"][quantity] < other["least"][quantity]


def front(found: Sequence[Offer]) -> list[Offer]:
    """Return the Pareto front: offers that no other one beats in time or cost without losing in the other."""

    def beaten(offer: Offer) -> bool:
        return any(
            (better(other, offer, HOURS) and not better(offer, other, COST))
            or (better(other, offer, COST) and not better(offer, other, HOURS))
            for other in found
        )

    return sorted((offer for offer in found if not beaten(offer)), key=lambda offer: offer["hours"])


def best(found: Sequence[Offer], quantity: int) -> list[Offer]:
    """Return the offer that needs least, and those that tie with it; none where there is no offer."""
    if not found:
        return []
    names = ("hours", "cost")
    ordered = sorted(found, key=lambda offer: float(offer[names[quantity]]))  # type: ignore[literal-required]
    return [offer for offer in ordered if not better(ordered[0], offer, quantity)]


def cheapest_within(found: Sequence[Offer], hours: float) -> list[Offer]:
    """Return the cheapest offers of which every run is done within `hours`, ties included."""
    return best([offer for offer in found if offer["most"][HOURS] <= hours], COST)


def fastest_within(found: Sequence[Offer], cost: float) -> list[Offer]:
    """Return the fastest offers of which no run costs more than `cost`, ties included."""
    return best([offer for offer in found if offer["most"][COST] <= cost], HOURS)


def slower_than_one(options: Sequence[Option]) -> list[tuple[Option, Option]]:
    """Return (option, the one on a single device) where several devices were slower than one."""

    def kind(option: Mapping[str, Any]) -> tuple[Any, ...]:
        names = ("source", "group", "workload", "model", "variant", "gpu", "bsz", "dtype", "xla")
        return tuple(option[name] for name in names)

    alone = {kind(option): option for option in options if option["nodes"] * option["gpus"] == 1}
    return [
        (option, alone[kind(option)])
        for option in options
        if kind(option) in alone and option["fastest"] < alone[kind(option)]["slowest"]
    ]
