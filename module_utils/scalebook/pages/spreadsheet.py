# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Tables -> a workbook. The same tables always make the same bytes.

Text stays text: nothing from a log becomes a formula or a link.  Needs pandas and XlsxWriter, on the control
node; MISSING says which is not installed, and nothing else may be used then.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from ansible.module_utils.scalebook.pages.blocks import Block, Column, Figure, Table
from ansible.module_utils.scalebook.text import clean

try:
    import pandas
    import xlsxwriter

    WRITER = f"XlsxWriter {xlsxwriter.__version__}"
    MISSING = ""
except ImportError as exc:
    MISSING = str(exc)

LONGEST = 32767
"""Characters that a cell can hold (Excel specifications and limits)."""
DIGITS = 53
"""Bits of the largest whole numbers of which a cell, a double, holds every digit."""
WIDEST = 60
"""Characters of the widest column; longer text is wrapped."""
FORMATS = {
    **dict.fromkeys(("percent", "margin"), "0.0%"),
    "count": "#,##0",
    "duration": '#,##0.0 "s"',
    **dict.fromkeys(("rate", "rates", "usage", "milliseconds", "digits", "giga"), "#,##0.00"),
    **dict.fromkeys(("speedup", "speedups", "ratio", "change", "changes", "seconds"), "0.000"),
}
"""How the numbers of a kind are shown; the cells have 16 digits."""


def workbook(title: str, sheets: Mapping[str, Table]) -> bytes:
    """Return the workbook of some tables, each in a sheet of that name; None is an empty cell."""
    content = io.BytesIO()
    options = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    with pandas.ExcelWriter(content, engine="xlsxwriter", engine_kwargs={"options": options}) as writer:
        book = writer.book
        # A fixed time, which is not that of the measurements: those are in the sheets.
        book.set_properties({"title": clean(title), "created": datetime(1980, 1, 1)})  # noqa: DTZ001
        head = book.add_format({"bold": True, "bottom": 1, "text_wrap": True, "valign": "top"})
        for name, table in sheets.items():
            rows = [[_value(row[column.key]) for column in table.columns] for row in table.rows]
            frame = pandas.DataFrame([[_cell(value) for value in row] for row in rows])
            frame.to_excel(writer, sheet_name=name, index=False, header=False, startrow=1)
            sheet = writer.sheets[name]
            for index, column in enumerate(table.columns):
                values = [row[index] for row in rows]
                look: dict[str, Any] = {"valign": "top"}
                if any(isinstance(value, (int, float)) for value in values):
                    look["num_format"] = FORMATS.get(column.kind, "General")
                else:
                    look["text_wrap"] = True
                sheet.set_column(index, index, _width(column.head, values), book.add_format(look))
                sheet.write_string(0, index, column.head, head)
            sheet.freeze_panes(1, 0)
            sheet.autofilter(0, 0, max(len(rows), 1), len(table.columns) - 1)
            sheet.set_landscape()
            sheet.fit_to_pages(1, 0)
            sheet.repeat_rows(0)
    return content.getvalue()


def of_tables(title: str, blocks: Sequence[Block]) -> bytes:
    """Return the tables of a document as a workbook: a sheet each, named by its number, numbers unrounded.

    Tables that are for a workbook alone come first, before the list of the others.
    """
    tables = [block for block in blocks if isinstance(block, Table)]
    first = {table.caption: table for table in tables if table.only}
    numbered = [table for table in tables if not table.only]
    contents = Table("", [Column("caption", title)], [{"caption": table.caption} for table in numbered])
    named = {" ".join(table.caption.split(" ")[:2]): table for table in numbered}
    return workbook(title, {**first, "0": contents, **named})


def _value(cell: Any) -> Any:
    return cell.value if isinstance(cell, Figure) else cell


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
