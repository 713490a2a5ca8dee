# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The parts of which the evaluation document is made; every form of it is rendered from the same list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Union

from ansible.module_utils.scalebook.text import readable


class Figure(NamedTuple):
    """A number of a table: its value, and the text that people read."""

    value: float
    text: str


Cell = Union[str, Figure]  # noqa: UP007 (evaluated on import)


class Heading(NamedTuple):
    """A heading of `level` 2, 3 or 4, with its number."""

    level: int
    text: str


class Paragraph(NamedTuple):
    """Text on its own, such as a definition."""

    text: str


class Items(NamedTuple):
    """A list of sentences."""

    texts: Sequence[str]


class Code(NamedTuple):
    """Lines that stay as they are, with what they show."""

    title: str
    text: str


class Table(NamedTuple):
    """A table: `caption` has its number; every row has a cell per column of `head`."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def numeric(self, column: int) -> bool:
        """Return whether a column is aligned to the right: it has figures."""
        return any(isinstance(row[column], Figure) for row in self.rows)


class Chart(NamedTuple):
    """A drawing, for the forms that can show it, and its numbered caption; its figures are in a table."""

    caption: str
    svg: str


Block = Union[Heading, Paragraph, Items, Code, Table, Chart]  # noqa: UP007 (evaluated on import)


def shown(cell: Cell) -> str:
    """Return what people read in a cell."""
    return cell.text if isinstance(cell, Figure) else cell


NONE = "–"


def figure(value: float | None) -> Cell:
    """Return a measured or computed number, four digits of it shown; a dash for none."""
    return NONE if value is None else Figure(value, readable(value))


def exact(value: float | None) -> Cell:
    """Return a number as it was given or published, with all its digits: 40, 0.5, 4,899.52."""
    return NONE if value is None else Figure(value, all_digits(value))


def all_digits(value: float) -> str:
    """Return a number with all its digits: 40, 0.5, 1,994,187."""
    return f"{value:,.15g}"


def whole(value: Any) -> Cell:
    """Return a count, or what a record has in its place."""
    return Figure(value, str(value)) if isinstance(value, int) else str(value)


def percent(share: float | None) -> Cell:
    """Return a share in per cent, its value unscaled; a dash for none."""
    return NONE if share is None else Figure(share, f"{100 * share:.1f} %")


def times(value: float | None) -> Cell:
    """Return a speedup or another quotient, two decimals of it shown; a dash for none."""
    return NONE if value is None else Figure(value, f"{value:.2f}")
