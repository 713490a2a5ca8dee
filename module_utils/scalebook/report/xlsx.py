# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The document -> results.xlsx: sheets `tables`, `runs`, `environment` and `notes`.

Needs what spreadsheet.py needs.
"""

from __future__ import annotations

from ansible.module_utils.scalebook.contracts import Results
from ansible.module_utils.scalebook.pages import spreadsheet
from ansible.module_utils.scalebook.pages.blocks import Table, sheet_only
from ansible.module_utils.scalebook.pages.wording import ENGLISH
from ansible.module_utils.scalebook.report import csv_sheet, environment, runs
from ansible.module_utils.scalebook.report.view import View, flag_sentence

NAME = "results.xlsx"


def workbook(document: Results) -> bytes:
    """Return results.xlsx; what is missing in a table is an empty cell."""
    sheets = {
        "tables": csv_sheet.sheet(document) if document["rows"] else Table("", sheet_only("campaign"), []),
        "runs": csv_sheet.flat(_runs(View(document))),
        "environment": Table("", sheet_only("what where value"), environment.table(document)),
        "notes": Table("", sheet_only("note"), [{"note": note} for note in _notes(document)]),
    }
    return spreadsheet.workbook(document["campaign"], sheets)


def _runs(view: View) -> Table:
    """Return one row for each run of the report; one that does not count has its reason and no rate."""
    rows = [runs.cells(view, run, row) for row in view.document["rows"] for run in row["runs"]]
    for lost in view.document["uncounted"]:
        notes = "; ".join(map(ENGLISH.tell, lost.get("notes") or ()))
        rows.append({**lost, "reason": ENGLISH.tell(lost["reason"] or ""), "notes": notes})
    return Table("", runs.columns(view), rows)


def _notes(document: Results) -> list[str]:
    flags = [
        f"{row['case']}: {flag['code']}: {flag_sentence(flag, ENGLISH)}"
        for row in document["rows"]
        for flag in row["flags"]
    ]
    skipped = [f"{entry['case']}: skipped: {ENGLISH.tell(entry['reason'])}" for entry in document["skipped"]]
    found = [f"{entry['case']}: {ENGLISH.tell(entry['message'])}" for entry in document["bottlenecks"]]
    return [*map(ENGLISH.tell, document["notes"]), *flags, *skipped, *found]
