# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Tables -> a workbook. The same tables always make the same bytes.

Text stays text: nothing from a log becomes a formula or a link.  Needs XlsxWriter, on the control node;
MISSING says that it is not installed, and nothing else may be used then.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from ansible.module_utils.scalebook.pages.blocks import Block, Column, Figure, Table
from ansible.module_utils.scalebook.pages.cells import LEFT
from ansible.module_utils.scalebook.text import clean

try:
    import xlsxwriter

    WRITER = f"XlsxWriter {xlsxwriter.__version__}"
    MISSING = ""
except ImportError as exc:
    MISSING = str(exc)

LONGEST = 32767
"""Characters that a cell can hold (Excel specifications and limits)."""
DIGITS = 53
"""Bits of the largest whole numbers of which a cell, a double, holds every digit."""
WIDEST = 80
"""Characters of the widest column; longer text is wrapped."""
PAGE = 260
"""Characters that are readable side by side on a page; wider sheets take several pages."""
A4 = 9
PLOT_WIDTH, ROW = 720, 20
"""Pixels."""
LINE = 15
"""Points of a line of text."""
NO_PLOTS: Mapping[str, Sequence[Any]] = MappingProxyType({})
FORMATS = {
    **dict.fromkeys(("percent", "margin"), "0.0%"),
    "count": "#,##0",
    "duration": '#,##0.0 "s"',
    "readable": "[>=1000]#,##0;[>=100]#,##0.0;#,##0.00",
    **dict.fromkeys(("rate", "rates", "usage", "milliseconds", "digits", "giga"), "#,##0.00"),
    **dict.fromkeys(("speedup", "speedups", "ratio", "change", "changes", "seconds"), "0.000"),
}
"""How the numbers of a kind are shown; the cells have 16 digits."""


class Plot(NamedTuple):
    """A chart that spreadsheets draw of cells, beside the table of a sheet, as `bars` or as lines.

    `x` and `y` are keys of columns, `series` are the name, the first and the last row of each series.
    """

    title: str
    x: str
    y: str
    series: Sequence[tuple[str, int, int]]
    bars: bool


def workbook(
    title: str, sheets: Mapping[str, Table], plots: Mapping[str, Sequence[Plot]] = NO_PLOTS
) -> bytes:
    """Return the workbook of tables, each with its plots in a sheet of that name; None is an empty cell."""
    content = io.BytesIO()
    options = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    with xlsxwriter.Workbook(content, options) as book:
        # A fixed time, which is not that of the measurements: those are in the sheets.
        book.set_properties({"title": clean(title), "created": datetime(1980, 1, 1)})  # noqa: DTZ001
        for name, table in sheets.items():
            rows = [[_value(row[column.key]) for column in table.columns] for row in table.rows]
            sheet = book.add_worksheet(name)
            for index, _column in enumerate(table.columns):
                for number, values in enumerate(rows, 1):
                    sheet.write(number, index, _cell(values[index]))
            _set_up(book, sheet, table.columns, rows)
            row = 1
            for chart, height in (_chart(book, name, table, plot) for plot in plots.get(name, ())):
                sheet.insert_chart(row, len(table.columns) + 1, chart)
                row += height // ROW + 2
    return content.getvalue()


def _set_up(book: Any, sheet: Any, columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> None:
    """Give a sheet its head, its formats and widths, a filter, and what it needs on paper."""
    widths = []
    for index, column in enumerate(columns):
        values = [row[index] for row in rows]
        side = {"align": "left", "indent": 1 if index else 0} if column.kind in LEFT else {"align": "right"}
        look: dict[str, Any] = {"valign": "top", **side}
        head = book.add_format({**look, "bold": True, "bottom": 1, "text_wrap": True})
        if any(isinstance(value, (int, float)) for value in values):
            look["num_format"] = FORMATS.get(column.kind, "General")
        else:
            look["text_wrap"] = True
        widths.append(_width(column.head, values))
        sheet.set_column(index, index, widths[-1], book.add_format(look))
        sheet.write_string(0, index, column.head, head)
    sheet.freeze_panes(1, 0)
    sheet.autofilter(0, 0, max(len(rows), 1), len(columns) - 1)
    sheet.set_landscape()
    sheet.set_paper(A4)
    sheet.repeat_rows(0)
    sheet.set_footer("&L&A&R&P / &N")
    if sum(widths) > PAGE:
        return
    sheet.fit_to_pages(1, 0)
    for number, row in enumerate(rows, 1):
        lines = max((math.ceil(len(text) / WIDEST) for text in row if isinstance(text, str)), default=1)
        if lines > 1:
            sheet.set_row(number, LINE * min(lines, 20))


def _chart(book: Any, sheet: str, table: Table, plot: Plot) -> tuple[Any, int]:
    """Return a native chart of two columns of a sheet, and its height in pixels."""
    keys = [column.key for column in table.columns]
    x, y = keys.index(plot.x), keys.index(plot.y)
    count = sum(last - first + 1 for _name, first, last in plot.series) if plot.bars else len(plot.series)
    height = 120 + (22 * count if plot.bars else 240 + 20 * count)
    kind = {"type": "bar"} if plot.bars else {"type": "scatter", "subtype": "straight_with_markers"}
    chart = book.add_chart(kind)
    for name, first, last in plot.series:
        chart.add_series(
            {
                "name": name,
                "categories": [sheet, first + 1, x, last + 1, x],
                "values": [sheet, first + 1, y, last + 1, y],
                "gap": 40,
            }
        )
    lines = {"visible": True, "line": {"color": "#D9DDE2"}}
    values = {"num_format": "0%" if table.columns[y].kind == "percent" else "#,##0", "major_gridlines": lines}
    if plot.bars:
        # Bars lie on their side: their names stand in the order of the rows, the first on top.
        chart.set_y_axis({"reverse": True, "major_gridlines": {"visible": False}})
        chart.set_x_axis({**values, "min": 0})
    else:
        chart.set_x_axis({"name": table.columns[x].head, "min": 0})
        chart.set_y_axis(values)
    chart.set_title({"name": plot.title, "name_font": {"size": 11}})
    chart.set_legend({"none": True} if plot.bars else {"position": "bottom"})
    chart.set_size({"width": PLOT_WIDTH, "height": height})
    return chart, height


def of_tables(title: str, blocks: Sequence[Block]) -> bytes:
    """Return the tables of a document as a workbook: a sheet each, named by its number, numbers unrounded.

    Tables that are for a workbook alone come first, before the list of the others.
    """
    tables = [block for block in blocks if isinstance(block, Table)]
    first = {table.caption: table for table in tables if table.only}
    numbered = [table for table in tables if not table.only]
    contents = Table([Column("caption", title)], [{"caption": table.caption} for table in numbered])
    named = {" ".join(table.caption.split(" ")[:2]): table for table in numbered}
    return workbook(title, {**first, "0": contents, **named})


def _value(cell: Any) -> Any:
    return cell.value if isinstance(cell, Figure) else cell


def _cell(value: Any) -> Any:
    """Return what a cell holds: numbers as they are, anything else as text.

    A whole number that a double cannot hold is text: as a number, its last digits would be wrong.
    """
    if value is None or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= DIGITS:
        return value
    # A file name may hold lone surrogates, which are not UTF-8.
    return str(value).encode("utf-8", "replace").decode()[:LONGEST]


def _width(column: str, values: Iterable[Any]) -> int:
    texts = [f"{value:,.2f}" if isinstance(value, float) else str(value) for value in values]
    return min(max(len(column), *map(len, texts), 6) + 2, WIDEST) if texts else len(column) + 2
