# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The section of strong scaling: the same global batch on more devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.scalebook.pages.blocks import Block, Column, Heading, Paragraph, Table
from ansible.module_utils.scalebook.report.scaling import explained, row_cells
from ansible.module_utils.scalebook.report.view import View
from ansible.module_utils.scalebook.text import clean


def section(view: View) -> list[Block]:
    """Return the section of strong scaling: all its tables in one."""
    _ = view.wording
    # Where no 1n1g has the global batch there is nothing to divide by.
    tables = [table for table in view.document["strong"] if any(row["speedup"] for row in table["rows"])]
    if not tables:
        return []
    title = _("title.strong")
    columns = [
        Column("title", look="wrap"),
        Column("label"),
        Column("devices", kind="count"),
        Column("bsz", kind="count"),
        Column("unit"),
        Column("median", _("head.rate"), "rate", look="main", hint="spans"),
        Column("speedup", kind="speedup"),
        Column("efficiency", kind="percent"),
        Column("runs", kind="count"),
        Column("flags", kind="tags", look="tags"),
    ]
    lines = [
        {**line, "title": clean(table["title"]), "unit": f"{_.name('unit', table['unit'])}/s"}
        for table in tables
        for line in _lines(view, table)
    ]
    codes = {flag["code"] for row in view.document["rows"] for flag in row["flags"]}
    rows = [row for table in tables for row in table["rows"]]
    return [
        Heading(2, title, "strong"),
        Paragraph(_("report.strong"), "soft"),
        Table("", columns, lines, title),
        *explained(view, rows, codes),
    ]


def table_of(view: View, table: Mapping[str, Any]) -> Table:
    """Return a table of strong scaling for the terminal and for sheets."""
    _ = view.wording
    columns = [
        Column("nodes", "node_num", "count"),
        Column("devices", "gpu_num", "count"),
        Column("bsz", "bsz", "count"),
        Column("median", f"{_.name('unit', table['unit'])}/s", "rate"),
        Column("speedup", kind="speedup", sheet="strong_speedup"),
        Column("efficiency", kind="percent", sheet="strong_efficiency"),
        Column("runs", kind="count"),
    ]
    return Table("", columns, _lines(view, table))


def _lines(view: View, table: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            **row_cells(row, view.wording),
            "bsz": str(row["bsz"]) + (f" × {row['accumulation']}" if row["accumulation"] != 1 else ""),
        }
        for row in table["rows"]
    ]
