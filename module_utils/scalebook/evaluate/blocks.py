# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The parts of which the evaluation document is made; every form of it is rendered from the same list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Union


class Figure(NamedTuple):
    """A number of a table: its value, and the text that people read."""

    value: float
    text: str


Cell = Union[str, Figure]  # noqa: UP007 (evaluated on import)


class Heading(NamedTuple):
    """A heading of `level` 2 or 3, with its number where it has one."""

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
    """A drawing, for the forms that can show it; its figures are in a table."""

    svg: str


Block = Union[Heading, Paragraph, Items, Code, Table, Chart]  # noqa: UP007 (evaluated on import)


def shown(cell: Cell) -> str:
    """Return what people read in a cell."""
    return cell.text if isinstance(cell, Figure) else cell
