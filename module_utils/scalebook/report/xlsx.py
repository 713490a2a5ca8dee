# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The document -> results.xlsx: sheets `tables`, `runs`, `environment` and `notes`.

Needs what spreadsheet.py needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import Results, Statement
from ansible.module_utils.scalebook.pages import spreadsheet
from ansible.module_utils.scalebook.pages.wording import ENGLISH
from ansible.module_utils.scalebook.report import csv_sheet, environment

NAME = "results.xlsx"
RUNS = (
    *("case", "label", "repeat", "status", "rate", "unit", "seconds", "time_source"),
    *("second_source", "second_rate", "differs", "drift", "started", "reason", "notes"),
)
Rows = Sequence[Mapping[str, Any]]


def workbook(document: Results) -> bytes:
    """Return results.xlsx; what is missing in a table is an empty cell."""
    sheets: dict[str, Rows] = {
        "tables": csv_sheet.sheet(document),
        "runs": _runs(document),
        "environment": environment.table(document),
        "notes": _notes(document),
    }
    made = []
    for name, rows in sheets.items():
        columns = list(rows[0]) if rows else list(EMPTY[name])
        made.append(spreadsheet.Sheet(name, columns, [[row[column] for column in columns] for row in rows]))
    return spreadsheet.workbook(document["campaign"], made, number_format)


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
                "notes": _said(run.get("notes")),
            }
            found.append({column: values.get(column) for column in RUNS})
    for lost in document["uncounted"]:
        values = {**lost, "reason": ENGLISH.tell(lost["reason"] or ""), "notes": _said(lost.get("notes"))}
        found.append({column: values.get(column) for column in RUNS})
    return found


def _said(notes: Sequence[Statement] | None) -> str:
    return "; ".join(map(ENGLISH.tell, notes or ()))


def _notes(document: Results) -> Rows:
    flags = [
        f"{row['case']}: {flag['code']}: {ENGLISH.tell(flag['message'])}"
        for row in document["rows"]
        for flag in row["flags"]
    ]
    skipped = [f"{entry['case']}: skipped: {ENGLISH.tell(entry['reason'])}" for entry in document["skipped"]]
    found = [f"{entry['case']}: {ENGLISH.tell(entry['message'])}" for entry in document["bottlenecks"]]
    return [{"note": note} for note in [*map(ENGLISH.tell, document["notes"]), *flags, *skipped, *found]]
