# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The section of strong scaling: a table for each global batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.scalebook.pages.blocks import (
    Block,
    Column,
    Heading,
    Paragraph,
    Table,
)
from ansible.module_utils.scalebook.report.scaling import row_cells
from ansible.module_utils.scalebook.report.view import View, explained
from ansible.module_utils.scalebook.text import clean


def section(view: View) -> list[Block]:
    """Return the section of strong scaling."""
    _ = view.wording
    if not view.document["strong"]:
        return []
    about = _(
        "The same global batch on more devices; speedup over 1n1g with that global batch. Do not compare "
        "with the tables above, where each device keeps its batch."
    )
    blocks: list[Block] = [Heading(2, _("Strong scaling"), "strong"), Paragraph(about, "soft")]
    for table in view.document["strong"]:
        title = clean(table["title"])
        label = _("Strong scaling of {group}", group=title)
        blocks += [Heading(3, title, table["id"]), table_of(view, table)._replace(label=label)]
        blocks += explained(table["rows"], table["id"], view.wording)
    return blocks


def table_of(view: View, table: Mapping[str, Any]) -> Table:
    """Return a table of strong scaling."""
    _ = view.wording
    columns = [
        Column("label", _("case"), only="html"),
        Column("nodes", "node_num", "count", only="md txt"),
        Column("nodes", _("nodes"), "count", only="html"),
        Column("devices", "gpu_num", "count", only="md txt"),
        Column("devices", _("devices"), "count", only="html"),
        Column("bsz", "bsz", "count", only="txt"),
        Column("bsz", _("batch per device"), "count", only="md html"),
        Column("median", f"{clean(_(table['unit']))}/s", "rate", look="main"),
        Column("speedup", _("speedup"), "speedup", look="main", sheet="strong_speedup"),
        Column("efficiency", _("efficiency"), "percent", sheet="strong_efficiency"),
        Column("runs", _("runs"), "count"),
        Column("flags", _("flags"), "tags", only="html", look="tags"),
        # The sheet has those of weak scaling.
        *(column._replace(sheet="") for column in view.limit_columns()),
        Column("flags", _("flags"), "tags", only="md"),
    ]
    lines = [
        {
            **row_cells(row, f"{table['id']}-{number}", view.wording),
            "bsz": str(row["bsz"]) + (f" × {row['accumulation']}" if row["accumulation"] != 1 else ""),
        }
        for number, row in enumerate(table["rows"], 1)
    ]
    return Table("", columns, lines)
