# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The tables of a report side by side, a line for each case: results.csv and a sheet of results.xlsx.

A column of a table of cases is a column here too once it has a name for sheets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ansible.module_utils.scalebook.contracts import Results, global_batch
from ansible.module_utils.scalebook.pages.blocks import Column, Table, sheet_only
from ansible.module_utils.scalebook.pages.sheets import flat
from ansible.module_utils.scalebook.pages.wording import ENGLISH
from ansible.module_utils.scalebook.report import (
    environment,
    scaling,
    usage,
)
from ansible.module_utils.scalebook.report.view import View, flag_sentence


def sheet(document: Results) -> Table:
    """Return the table with a row per case; numbers stay numbers, what is missing is None."""
    columns: dict[str, Column] = {}
    lines: dict[str, dict[str, Any]] = {row["case"]: {} for row in document["rows"]}
    for table in _tables(View(document)) if lines else ():
        flat_table = flat(table)
        columns |= {column.key: column for column in flat_table.columns}
        for row, line in zip(table.rows, flat_table.rows, strict=True):
            lines[row["case"]].update(line)
    missing: dict[str, Any] = dict.fromkeys(columns)
    if document["baseline"]:
        missing["baseline_verdict"] = "only here"
    return Table(list(columns.values()), [{**missing, **line} for line in lines.values()])


def _tables(view: View) -> Iterator[Table]:
    """Yield the tables of cases in the order of their columns."""
    document = view.document
    yield from (scaling.group_table(view, group) for group in document["groups"])
    yield usage.step_table(view)
    yield usage.means(document)
    yield usage.arithmetic(view)
    batches = [{"case": row["case"], "global_batch": global_batch(row)} for row in document["rows"]]
    yield Table(sheet_only("global_batch", "count"), batches)
    fixed = [row for table in document["strong"] for row in table["rows"]]
    yield scaling.strong_table(view, {"id": "", "unit": "", "rows": fixed})
    yield scaling.earlier_table(view)
    about = [
        {
            "case": row["case"],
            "flags": "; ".join(flag_sentence(flag, ENGLISH) for flag in row["flags"]),
            **environment.system(document, row),
        }
        for row in document["rows"]
    ]
    yield Table(sheet_only("flags machines hardware software"), about)
