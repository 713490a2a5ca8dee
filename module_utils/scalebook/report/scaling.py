# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The sections of weak and of strong scaling: a table for each group, and workloads side by side."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.scalebook.contracts import Family, Group, Row
from ansible.module_utils.scalebook.judge import families
from ansible.module_utils.scalebook.pages.blocks import (
    Block,
    Charts,
    Column,
    Heading,
    Paragraph,
    Settings,
    Table,
)
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.report import first_screen
from ansible.module_utils.scalebook.report.view import View, explained, limits, tags
from ansible.module_utils.scalebook.text import clean


def weak(view: View) -> list[Block]:
    """Return the groups of each family, before them its workloads side by side where it has several."""
    groups = {group["id"]: group for group in view.document["groups"]}
    blocks: list[Block] = []
    for index, family in enumerate(view.document["families"], 1):
        blocks += _side_by_side(view, family, f"family{index}") if family["columns"] else []
        for name in family["groups"]:
            blocks += _group(view, groups[name])
    return [*blocks, Charts(view.charts, only="md")]


def _side_by_side(view: View, family: Family, anchor: str) -> list[Block]:
    name = view.wording("{family}: workloads side by side", family=clean(family["family"]))
    return [Heading(2, name, anchor), family_table(view, family)._replace(label=name)]


def family_table(view: View, family: Family) -> Table:
    """Return the workloads of a family side by side."""
    _ = view.wording
    columns = [
        Column("label", _("case")),
        Column("title", _("setting"), only="md html"),
        Column("title", "", only="txt"),
    ]
    for index, each in enumerate(family["columns"]):
        name, rate = clean(each["name"]), f"{clean(_(each['unit']))}/s"
        key = f"median{index}"
        columns += [
            Column(key, f"{name}, {rate}", "rate", "INCOMPLETE", only="md"),
            Column(key, f"{name} {rate}", "rate", "INCOMPLETE", only="txt"),
            Column(key, rate, "rate", "INCOMPLETE", only="html", look="main", over=name),
            Column(f"speedup{index}", _("speedup"), "speedup", over=name),
            Column(f"efficiency{index}", _("efficiency"), "percent", over=name),
        ]
    return Table("", columns, [_line(line, view.wording) for line in family["lines"]])


def _line(line: Mapping[str, Any], wording: Wording) -> dict[str, Any]:
    """Return a line of a family; precision, batch and numbers of its title stay in every language."""
    title = re.sub("|".join(families.TITLE_WORDS), lambda found: wording(found[0]), line["title"])
    row: dict[str, Any] = {"label": clean(line["label"]), "title": clean(title)}
    for index, cell in enumerate(line["cells"]):
        for key in ("median", "speedup", "efficiency"):
            row[f"{key}{index}"] = cell[key] if cell else "–"
    return row


def _group(view: View, group: Group) -> list[Block]:
    _ = view.wording
    title, workload = clean(group["title"]), _(clean(group["workload_title"]))
    settings = first_screen.settings(group, view.wording)
    heading = first_screen.heading(group, view.document["groups"], view.wording)
    blocks: list[Block] = [Heading(2, title, only="md"), Heading(2, heading, group["id"], only="html")]
    if workload or settings:
        blocks.append(Settings([*([("", workload)] if workload else []), *settings], only="md"))
    blocks += [Paragraph(workload, "soft", only="html")] if workload else []
    blocks += [Settings(settings, only="html")] if settings else []
    table = group_table(view, group)._replace(label=_("Results of {group}", group=title))
    return [*blocks, table, *explained(view.rows_of(group), group["id"], view.wording)]


def group_table(view: View, group: Group) -> Table:
    """Return the table of a group: DLPerf's columns and names of columns in Markdown and on the terminal."""
    _ = view.wording
    noun, rows = first_screen.noun_of(group), view.rows_of(group)
    columns = [
        Column("label", _("case"), only="html"),
        Column("nodes", "node_num", "count", only="md txt"),
        Column("nodes", _("nodes"), "count", only="html"),
        Column("devices", "gpu_num", "count", only="md txt"),
        Column("devices", _(f"{noun}s"), "count", only="html"),
        Column("median", f"{clean(_(group['unit']))}/s", "rate", "INCOMPLETE", look="main"),
        Column("latency", _("latency, ms"), "seconds", "–", look="main"),
        Column("each", _("per {device}", device=_(noun)), "rate", "–", only="html"),
        Column("speedup", _("speedup"), "speedup", look="main"),
        Column("efficiency", _("efficiency"), "percent"),
        Column("runs", _("runs"), "count"),
        Column("spread", _("spread"), "percent"),
        Column("flags", _("flags"), "tags", only="html", look="tags"),
        *view.limit_columns(),
        Column("flags", _("flags"), "tags", only="md"),
    ]
    if not any(row["latency_ms"] for row in rows):
        columns = [column for column in columns if column.key != "latency"]
    lines = [
        {
            **_cells(row, f"{group['id']}-{number}", view.wording),
            "latency": None if row["latency_ms"] is None else row["latency_ms"] / 1000,
            "each": None if row["median"] is None else row["median"] / row["devices"],
            "spread": row["spread"],
            "incomplete": row["status"] == "incomplete",
        }
        for number, row in enumerate(rows, 1)
    ]
    return Table("", columns, lines, quiet="incomplete")


def _cells(row: Row, anchor: str, wording: Wording) -> dict[str, Any]:
    """Return the cells that rows of weak and of strong scaling have."""
    return {
        **{key: row[key] for key in ("nodes", "devices", "median", "speedup", "efficiency")},
        "label": clean(row["label"]),
        "runs": f"{row['good']}/{row['planned']}",
        "flags": tags(row, anchor, wording),
        **limits(row, wording),
    }


def strong(view: View) -> list[Block]:
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
        blocks += [Heading(3, title, table["id"]), strong_table(view, table)._replace(label=label)]
        blocks += explained(table["rows"], table["id"], view.wording)
    return blocks


def strong_table(view: View, table: Mapping[str, Any]) -> Table:
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
        Column("speedup", _("speedup"), "speedup", look="main"),
        Column("efficiency", _("efficiency"), "percent"),
        Column("runs", _("runs"), "count"),
        Column("flags", _("flags"), "tags", only="html", look="tags"),
        *view.limit_columns(),
        Column("flags", _("flags"), "tags", only="md"),
    ]
    lines = [
        {
            **_cells(row, f"{table['id']}-{number}", view.wording),
            "bsz": str(row["bsz"]) + (f" × {row['accumulation']}" if row["accumulation"] != 1 else ""),
        }
        for number, row in enumerate(table["rows"], 1)
    ]
    return Table("", columns, lines)
