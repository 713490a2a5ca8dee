# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Blocks -> text for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import east_asian_width

from ansible.module_utils.scalebook.pages import cells
from ansible.module_utils.scalebook.pages.blocks import Table
from ansible.module_utils.scalebook.pages.wording import ENGLISH, Wording
from ansible.module_utils.scalebook.text import clean

SHOWN = 10  # lines of one section; the page has them all
WIDEST = 300  # characters of one of them


def table(title: str, block: Table, below: Sequence[str] = (), wording: Wording = ENGLISH) -> str:
    """Return a table as aligned text below its title, with the lines below it."""
    lines = aligned(texts(block, wording), separator=" | ", rule="-|-")
    return "\n".join([title, *lines, *(f"  {line}" for line in below)])


def texts(block: Table, wording: Wording = ENGLISH) -> list[list[str]]:
    """Return the cells of a table, its head first."""
    columns = cells.columns_of(block, "txt", wording)
    rows = [[cells.text_of(row, column, wording) for column in columns] for row in block.rows]
    return [[column.head for column in columns], *rows]


def aligned(
    rows: Sequence[Sequence[str]], separator: str = "  ", rule: str = "", left_columns: int = 0
) -> list[str]:
    """Return the lines of a table whose first row is its head.

    A cell is one line, whatever a node or a log said.  The first `left_columns` are aligned to the left,
    the others to the right.  `rule` separates the columns of the line below the head; without it there is no
    such line.
    """
    rows = [[" ".join(cell.splitlines()) for cell in row] for row in rows]
    widths = [max(_width(row[index]) for row in rows) for index in range(len(rows[0]))]
    lines = [
        separator.join(
            cell + room if index < left_columns else room + cell
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
            for room in [" " * (width - _width(cell))]
        )
        for row in rows
    ]
    if rule:
        lines.insert(1, rule.join("-" * width for width in widths))
    return lines


def padded(text: str, width: int) -> str:
    """Return a text with blanks behind it, as many columns of a terminal wide."""
    return text + " " * (width - _width(text))


def _width(text: str) -> int:
    """Return the columns that a terminal needs for a text: a Chinese character takes two."""
    return len(text) + sum(east_asian_width(each) in "WF" for each in text if not each.isascii())


def some(title: str, lines: Sequence[str], last: str = "", wording: Wording = ENGLISH) -> list[str]:
    """Return the first of some lines below a title, nothing without a line."""
    if not lines:
        return []
    # Names and reasons come from records and logs of other machines: one line each, whatever they hold.
    cut_lines = [
        line if len(line) <= WIDEST else line[: WIDEST - 1] + "…" for line in map(clean, lines[:SHOWN])
    ]
    more = [wording("terminal.more", count=len(lines) - SHOWN)] if len(lines) > SHOWN else []
    head = wording("terminal.head", title=title)
    return ["\n  ".join([head, *cut_lines, *more, *([last] if last else [])])]
