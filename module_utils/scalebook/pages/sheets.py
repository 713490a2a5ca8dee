# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Tables -> what programs read: CSV, and JSON as pandas' orient="split" has it; numbers are not rounded.

Needs pandas, on the control node; MISSING says that it is not installed, and `csv` may not be used then.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.pages.blocks import Column, Table

try:
    import pandas

    WRITER = f"pandas {pandas.__version__}"
    MISSING = ""
except ImportError as exc:
    MISSING = str(exc)

PAIRS = ("rates", "speedups", "changes")
"""Kinds of ranges and intervals, whose limits have a column each."""


def flat(table: Table) -> Table:
    """Return what a table has for programs: its columns with a name for sheets, two of a range."""
    columns: list[Column] = []
    lines: list[dict[str, Any]] = [{} for _ in table.rows]
    for column in table.columns:
        if not column.sheet:
            continue
        pair = column.kind in PAIRS
        names = [f"{column.sheet}_low", f"{column.sheet}_high"] if pair else [column.sheet]
        columns += [Column(name, name, column.kind) for name in names]
        for line, row in zip(lines, table.rows, strict=True):
            value = row.get(column.key)
            if column.kind == "tags" and isinstance(value, list):
                value = ", ".join(tag.text for tag in value)
            limits = value if isinstance(value, (list, tuple)) else (None, None)
            line.update(zip(names, limits if pair else [value], strict=True))
    return Table(columns, lines)


def csv(lines: Sequence[Mapping[str, Any]]) -> str:
    """Return lines as CSV; text cells are made harmless, numeric columns stay numeric."""
    frame = pandas.DataFrame(lines)
    for column in frame.columns:
        if not pandas.api.types.is_numeric_dtype(frame[column]):
            frame[column] = frame[column].map(lambda cell: harmless(cell) if isinstance(cell, str) else cell)
    text = io.StringIO()
    frame.to_csv(text, index=False, lineterminator="\n")
    return text.getvalue()


def harmless(text: str) -> str:
    """Return a CSV cell that no spreadsheet takes for a formula (OWASP, CSV injection)."""
    return "'" + text if text[:1] in ("=", "+", "-", "@", "\t", "\r", "\n") and text else text


def split(table: Table) -> str:
    """Return a sheet as JSON: its columns and the cells of each row."""
    names = [column.key for column in table.columns]
    data = [[row[name] for name in names] for row in table.rows]
    return json.dumps({"columns": names, "data": data}, separators=(",", ":"))
