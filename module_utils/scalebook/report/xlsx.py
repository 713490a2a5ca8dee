# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The document -> results.xlsx: sheets `tables`, `runs`, `environment` and `notes`.

The same document always makes the same bytes.  Text stays text: nothing from a log becomes a formula or a
link.  Needs pandas and XlsxWriter.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from ansible.module_utils.scalebook.contracts import Results
from ansible.module_utils.scalebook.report import csv_sheet, environment
from ansible.module_utils.scalebook.text import clean

try:
    import pandas
    import xlsxwriter

    WRITER = f"XlsxWriter {xlsxwriter.__version__}"
    MISSING = ""
except ImportError as exc:
    MISSING = str(exc)

NAME = "results.xlsx"
RUNS = (
    *("case", "label", "repeat", "status", "rate", "unit", "seconds", "time_source"),
    *("second_source", "second_rate", "differs", "drift", "started", "reason", "notes"),
)
LONGEST = 32767
"""Characters that a cell can hold (Excel specifications and limits)."""
DIGITS = 53
"""Bits of the largest whole numbers of which a cell, a double, holds every digit."""
WIDEST = 60
"""Characters of the widest column; longer text is wrapped."""

Rows = Sequence[Mapping[str, Any]]


def workbook(document: Results) -> bytes:
    """Return results.xlsx; what is missing in a table is an empty cell."""
    sheets: dict[str, Rows] = {
        "tables": csv_sheet.sheet(document),
        "runs": _runs(document),
        "environment": environment.table(document),
        "notes": _notes(document),
    }
    content = io.BytesIO()
    options = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    with pandas.ExcelWriter(content, engine="xlsxwriter", engine_kwargs={"options": options}) as writer:
        book = writer.book
        # A fixed time, which is not that of the measurements: those are in the sheets.
        book.set_properties({"title": clean(document["campaign"]), "created": datetime(1980, 1, 1)})  # noqa: DTZ001
        head = book.add_format({"bold": True, "bottom": 1, "text_wrap": True, "valign": "top"})
        for name, rows in sheets.items():
            columns = list(rows[0]) if rows else list(EMPTY[name])
            frame = pandas.DataFrame([[_cell(row[column]) for column in columns] for row in rows])
            frame.to_excel(writer, sheet_name=name, index=False, header=False, startrow=1)
            sheet = writer.sheets[name]
            for index, column in enumerate(columns):
                values = [row[column] for row in rows]
                look: dict[str, Any] = {"valign": "top"}
                if any(isinstance(value, (int, float)) for value in values):
                    look["num_format"] = number_format(column)
                else:
                    look["text_wrap"] = True
                sheet.set_column(index, index, _width(column, values), book.add_format(look))
                sheet.write_string(0, index, column, head)
            sheet.freeze_panes(1, 0)
            sheet.autofilter(0, 0, max(len(rows), 1), len(columns) - 1)
            sheet.set_landscape()
            sheet.fit_to_pages(1, 0)
            sheet.repeat_rows(0)
    return content.getvalue()


EMPTY = {"tables": ("campaign",), "runs": RUNS, "environment": ("what", "where", "value"), "notes": ("note",)}
"""The columns of a sheet without rows."""


def number_format(column: str) -> str:
    """Return how the numbers of a column are shown; the cells have 16 digits."""
    shares = ("spread", "efficiency", "strong_efficiency", "differs", "drift")
    if column in shares:
        return "0.0%"
    if column in ("nodes", "gpus", "devices", "good", "planned", "repeat", "bsz", "accumulation"):
        return "0"
    if column in ("warmup", "window", "epoch_samples", "global_batch"):
        return "#,##0"
    if "seconds" in column or "speedup" in column or "ratio" in column:
        return "0.000"
    return "#,##0.00"


def _runs(document: Results) -> Rows:
    """Return one row for each run of the report; one that does not count has its reason and no rate."""
    found = []
    for row in document["rows"]:
        for run in row["runs"]:
            second = run["second"] or {}
            values: Mapping[str, Any] = {
                **run,
                **{key: row[key] for key in ("case", "label", "unit")},
                "status": "ok",
                "second_source": second.get("time_source"),
                "second_rate": second.get("rate"),
                "notes": "; ".join(run.get("notes") or ()),
            }
            found.append({column: values.get(column) for column in RUNS})
    for lost in document["uncounted"]:
        values = {**lost, "notes": "; ".join(lost.get("notes") or ())}
        found.append({column: values.get(column) for column in RUNS})
    return found


def _notes(document: Results) -> Rows:
    flags = [
        f"{row['case']}: {flag['code']}: {flag['text']}" for row in document["rows"] for flag in row["flags"]
    ]
    skipped = [f"{entry['case']}: skipped: {entry['reason']}" for entry in document["skipped"]]
    found = [f"{entry['case']}: {entry['sentence']}" for entry in document["bottlenecks"]]
    return [{"note": note} for note in [*document["notes"], *flags, *skipped, *found]]


def _cell(value: Any) -> Any:
    """Return what a cell holds: numbers as they are, anything else as text.

    A whole number that a double cannot hold is text: as a number, its last digits would be wrong.
    """
    if value is None or isinstance(value, float):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= DIGITS:
        return value
    # A file name may hold lone surrogates, which are not UTF-8.
    return str(value).encode("utf-8", "replace").decode()[:LONGEST]


def _width(column: str, values: Iterable[Any]) -> int:
    texts = [f"{value:,.2f}" if isinstance(value, float) else str(value) for value in values]
    return min(max(len(column), *map(len, texts), 6) + 2, WIDEST) if texts else len(column) + 2
