# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A value of a table and the kind of its column -> the text that people read in the cell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible.module_utils.scalebook.pages.blocks import Column, Figure, Row, Table, meant_for
from ansible.module_utils.scalebook.pages.numbers import (
    all_digits,
    as_published,
    four_digits,
    quotient,
    readable,
)
from ansible.module_utils.scalebook.pages.wording import Wording, duration

GIGA = 1e9
EVEN = {"usage": 1.0, "digits": 1.0, "giga": GIGA}
"""Kinds whose numbers all have as many decimals as four digits of the largest one take, with their unit."""
LEFT = ("text", "tags")
"""Kinds that are read as text and aligned to the left."""

KINDS: Mapping[str, Callable[[Any, Wording], str]] = {
    "text": lambda value, _: str(value),
    "tags": lambda value, wording: wording.join((tag.text for tag in value), "comma"),
    "figure": lambda value, _: str(value),
    "count": lambda value, _: str(value),
    "rate": lambda value, wording: wording.number(value),
    "rates": lambda value, wording: wording.between(value, rates=True),
    "speedup": lambda value, wording: wording.speedup(value),
    "speedups": lambda value, wording: wording.between(value),
    "ratio": lambda value, _: quotient(value),
    "change": lambda value, _: f"{value:.3f}",
    "changes": lambda value, _: f"{value[0]:.3f} – {value[1]:.3f}",
    "percent": lambda value, wording: wording.percent(value),
    "margin": lambda value, wording: f"± {wording.percent(value)}",
    "seconds": lambda value, wording: wording.milliseconds(value),
    "milliseconds": lambda value, wording: wording.milliseconds(value / 1000),
    "duration": lambda value, wording: wording.tell(duration(value)),
    "digits": lambda value, _: four_digits(value),
    "giga": lambda value, _: four_digits(value / GIGA),
    "exact": lambda value, _: f"{value:g}",
    "all-digits": lambda value, _: all_digits(value),
    "readable": lambda value, _: readable(value),
    "microseconds": lambda value, _: f"{1e6 * value:.1f}",
    "published": lambda value, _: " / ".join(map(as_published, value)),
    "gain": lambda value, _: f"{100 * (value - 1):+.1f} %",
    "usage": lambda value, _: _usage(value),
}
"""How a kind of value is said; `rates`, `speedups` and `changes` are pairs, `seconds` are said as ms, and
`published` are the figures of a row of several operations."""


def text_of(row: Row, column: Column, wording: Wording) -> str:
    """Return the text of a cell; what is text already stays as it is."""
    value = row[column.key]
    if value is None:
        return wording.name("report", column.missing)
    if isinstance(value, Figure):
        return value.text
    if isinstance(value, str):
        return value
    kind, _dot, decimals = column.kind.partition(".")
    return f"{value / EVEN[kind]:,.{decimals}f}" if decimals else KINDS[kind](value, wording)


def columns_of(table: Table, form: str, wording: Wording) -> list[Column]:
    """Return the columns of a form of a table, each with its heading, and its kind with its decimals."""
    return [
        column._replace(head=column.head or wording.name("head", column.key), kind=_even(column, table.rows))
        for column in meant_for(form, table.columns)
    ]


def _even(column: Column, rows: Iterable[Row]) -> str:
    """Return the kind of a column with the decimals that all of its numbers have: 0.0, 1.0 and 21.3."""
    values = [row[column.key] for row in rows] if column.kind in EVEN else []
    numbers = [abs(value) / EVEN[column.kind] for value in values if isinstance(value, (int, float))]
    if not numbers:
        return column.kind
    whole = all(number == int(number) for number in numbers)
    return f"{column.kind}.{0 if whole else max(0, min(3, 4 - len(str(int(max(numbers))))))}"


def _usage(value: float) -> str:
    """Return two decimals, of a value below 1 three significant digits."""
    return repr(round(value, 2)) if value == 0 or abs(value) >= 1 else f"{value:.3g}"
