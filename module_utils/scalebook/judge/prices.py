# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What hardware costs: a list of prices, and the price of an hour of a set-up."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, cast

from ansible.module_utils.scalebook.yaml_file import read_yaml

HOURS_PER_YEAR = 8766.0
"""365.25 days."""

FORMS: dict[str, set[str]] = {
    "gpu hour": set(),
    "node hour": set(),
    "node month": set(),
    "gpu": {"years", "use"},
    "node": {"years", "use"},
}
"""What an amount is paid for, and the fields that a purchase needs: `years` of use, and `use`, the share of
their hours in which the hardware works."""

_COMMON = {"gpu", "per", "amount", "currency", "source", "date"}
_NUMBERS = ("amount", "years", "use")
_TEXTS = {"source", "date"}
"""Fields that `translations` may have in another language."""


class Price(TypedDict):
    """One price of a list. `per` is one of FORMS; `years` and `use` are None where nothing is bought.

    `translations` are source and date by language, such as `zh`, as far as the list has them.
    """

    gpu: str
    per: str
    amount: float
    currency: str
    source: str
    date: str
    years: float | None
    use: float | None
    translations: dict[str, dict[str, str]]


class PriceError(ValueError):
    """A list of prices that cannot be read; the text names every mistake."""


def read_file(path: Path) -> list[Price]:
    """Return the prices of a file such as data/prices.yml; raises PriceError that names it."""
    try:
        content = read_yaml(path)
        if not isinstance(content, Mapping) or not isinstance(content.get("prices"), list):
            raise PriceError("it must have a list `prices`, as data/prices.yml has")
        return read(content["prices"])
    except PriceError as error:
        raise PriceError(f"{path}: {error}") from error
    except ValueError as error:  # of read_yaml, which names the file
        raise PriceError(" ".join(str(error).split())) from error


def read(entries: Iterable[Any]) -> list[Price]:
    """Return the prices of a list such as that of data/prices.yml.

    Raises PriceError for a missing or unknown field, an unknown `per` and an amount that is not a positive
    number. A price without source and date is refused: nobody could judge what follows from it.
    """
    prices: list[Price] = []
    problems: list[str] = []
    for number, entry in enumerate(entries, 1):
        wrong = _wrong(entry)
        if wrong:
            problems.append(f"price {number}: {wrong}")
            continue
        fields = {
            key: (float if key in _NUMBERS else str)(entry[key]) if key in entry else None
            for key in ("gpu", "per", "amount", "currency", "source", "date", "years", "use")
        }
        prices.append(cast(Price, {**fields, "translations": entry.get("translations") or {}}))
    if problems:
        raise PriceError("; ".join(problems))
    return prices


def _wrong(entry: Any) -> str:
    """Return what is wrong with an entry, or ''."""
    if not isinstance(entry, Mapping):
        return "it must have the fields " + ", ".join(sorted(_COMMON))
    if str(entry.get("per")) not in FORMS:
        return f"per={entry.get('per')}: allowed are {', '.join(FORMS)}"
    needed = _COMMON | FORMS[entry["per"]]
    missing, unknown = needed - set(entry), set(entry) - needed - {"translations"}
    if missing or unknown:
        what = [("lacks", missing), ("has unknown", unknown)]
        return " and ".join(f"{verb} {', '.join(sorted(names))}" for verb, names in what if names)
    if not _are_translations(entry.get("translations") or {}):
        return "translations: allowed are source and date by language, such as zh"
    for name in _NUMBERS:
        if name in entry and (isinstance(entry[name], bool) or not _positive(entry[name])):
            return f"{name}={entry[name]}: allowed are numbers above 0"
    if float(entry.get("use", 1)) > 1:
        return f"use={entry['use']}: allowed are numbers up to 1, the share of the hours"
    return ""


def _are_translations(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(texts, Mapping)
        and set(texts) <= _TEXTS
        and all(isinstance(text, str) for text in texts.values())
        for texts in value.values()
    )


def _positive(value: Any) -> bool:
    try:
        return float(value) > 0
    except (TypeError, ValueError):
        return False


def of_gpu(prices: Sequence[Price], name: str) -> list[Price]:
    """Return the prices of the GPU that the driver calls `name`.

    A price belongs to it if all words of its `gpu` are words of the name: `A100 PCIe` belongs to
    `NVIDIA A100-PCIE-40GB`, but `V100` not to `Tesla V100S-PCIE-32GB`.  The ones with most words count.
    """
    matching = [(len(words(price["gpu"])), price) for price in prices if words(price["gpu"]) <= words(name)]
    most = max((count for count, _ in matching), default=0)
    return [price for count, price in matching if count == most]


def words(name: str) -> set[str]:
    """Return the words of the name of a GPU, in lower case."""
    return set(re.findall(r"[a-z0-9]+", name.lower()))


def hourly(price: Price, nodes: int, gpus: int) -> float:
    """Return what an hour of `nodes` nodes with `gpus` GPUs each costs, in the currency of the price.

    A node that is paid as a whole costs the same however many of its GPUs work.
    """
    per, amount = price["per"], price["amount"]
    if per == "gpu hour":
        return amount * nodes * gpus
    if per == "node hour":
        return amount * nodes
    if per == "node month":
        return amount * nodes / (HOURS_PER_YEAR / 12)
    hours = HOURS_PER_YEAR * float(price["years"] or 0) * float(price["use"] or 0)
    return amount * nodes * (gpus if per == "gpu" else 1) / hours
