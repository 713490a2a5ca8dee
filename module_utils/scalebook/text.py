# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Text for terminals and Markdown: one-line cells and aligned tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_MARKDOWN = str.maketrans(
    {
        **{char: "\\" + char for char in "\\`*[]|"},
        "<": "&lt;",
        ">": "&gt;",
        "&": "&amp;",
        "\n": " ",
        "\r": " ",
    }
)


def clean(text: Any) -> str:
    """Return `text` on one line without control characters: log lines reach terminals and tables."""
    line = str(text)
    # Most text is printable as a whole, which is asked faster than of each character.
    if not line.isprintable():
        line = "".join(c if c.isprintable() else " " for c in line)
    return " ".join(line.split())


def count_of(number: int, noun: str) -> str:
    """Return `1 node`, `2 nodes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def readable(value: float) -> str:
    """Return a number for people: four digits below 10,000, from 1,000 on whole with separators."""
    size = abs(value)
    if size >= 999.95:
        return f"{value:,.0f}"
    for limit, digits in ((99.995, 1), (9.9995, 2), (0.99995, 3)):
        if size >= limit:
            return f"{value:.{digits}f}"
    return f"{value:.4f}".rstrip("0").rstrip(".") if size >= 0.0001 or not value else f"{value:.2e}"


def aligned(
    rows: Sequence[Sequence[str]], separator: str = "  ", rule: str = "", left_columns: int = 0
) -> list[str]:
    """Return the lines of a table whose first row is its head.

    A cell is one line, whatever a node or a log said.  The first `left_columns` are aligned to the left,
    the others to the right.  `rule` separates the columns of the line below the head; without it there is no
    such line.
    """
    rows = [[" ".join(cell.splitlines()) for cell in row] for row in rows]
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    lines = [
        separator.join(
            cell.ljust(width) if index < left_columns else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    if rule:
        lines.insert(1, rule.join("-" * width for width in widths))
    return lines


def markdown_cell(text: Any) -> str:
    """Return `text` as a cell of a Markdown table that contains no markup."""
    return str(text).translate(_MARKDOWN)


def as_published(value: float | None) -> str:
    """Return a figure as tables of micro-benchmarks have it, 116 or 0.202; a dash for none."""
    if value is None:
        return "–"
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.3f}"


def two_decimals(value: float) -> str:
    """Return a figure as DLPerf's tables print it: 1239.3, never 1239.30."""
    return repr(round(float(value), 2))
