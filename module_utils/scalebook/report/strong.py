# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The section of strong scaling: a table for each global batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.scalebook.pages.blocks import Block, Column, Heading, Paragraph, Table
from ansible.module_utils.scalebook.report.scaling import row_cells
from ansible.module_utils.scalebook.report.view import View, explained
from ansible.module_utils.scalebook.text import clean


def section(view: View) -> list[Block]:
    """Return the section of strong scaling."""
    _ = view.wording
    if not view.document["strong"]:
        return []
    about = _("report.strong")
    blocks: list[Block] = [Heading(2, _("title.strong"), "strong"), Paragraph(about, "soft")]
    for table in view.document["strong"]:
        title = clean(table["title"])
        label = _("report.strong-of", group=title)
        blocks += [Heading(3, title, table["id"]), table_of(view, table)._replace(label=label)]
        blocks += explained(table["rows"], table["id"], view.wording)
    return blocks


def table_of(view: View, table: Mapping[str, Any]) -> Table:
    """Return a table of strong scaling."""
    _ = view.wording
    columns = [
        Column("label", only="html"),
        Column("nodes", "node_num", "count", only="md txt"),
        Column("nodes", kind="count", only="html"),
        Column("devices", "gpu_num", "count", only="md txt"),
        Column("devices", kind="count", only="html"),
        Column("bsz", "bsz", "count", only="txt"),
        Column("bsz", kind="count", only="md html"),
        Column("median", f"{_.name('unit', table['unit'])}/s", "rate", look="main"),
        Column("speedup", kind="speedup", look="main", sheet="strong_speedup"),
        Column("efficiency", kind="percent", sheet="strong_efficiency"),
        Column("runs", kind="count"),
        Column("flags", kind="tags", only="html", look="tags"),
        # The sheet has those of weak scaling.
        *(column._replace(sheet="") for column in view.limit_columns()),
        Column("flags", kind="tags", only="md"),
    ]
    lines = [
        {
            **row_cells(row, f"{table['id']}-{number}", view.wording),
            "bsz": str(row["bsz"]) + (f" × {row['accumulation']}" if row["accumulation"] != 1 else ""),
        }
        for number, row in enumerate(table["rows"], 1)
    ]
    return Table("", columns, lines)
