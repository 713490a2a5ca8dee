# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The sections of weak scaling: a table for each group, after the workloads of its family side by side."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.scalebook.contracts import GROUP_FIELDS, Group, Row
from ansible.module_utils.scalebook.pages.blocks import (
    Block,
    Charts,
    Column,
    Heading,
    Paragraph,
    Settings,
    Table,
    sheet_only,
)
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.report import first_screen, side_by_side
from ansible.module_utils.scalebook.report.view import View, explained, limits, tags
from ansible.module_utils.scalebook.text import clean


def weak(view: View) -> list[Block]:
    """Return the groups of each family, before them its workloads side by side where it has several."""
    groups = {group["id"]: group for group in view.document["groups"]}
    blocks: list[Block] = []
    for index, family in enumerate(view.document["families"], 1):
        blocks += side_by_side.section(view, family, f"family{index}") if family["columns"] else []
        for name in family["groups"]:
            blocks += _group(view, groups[name])
    return [*blocks, Charts(view.charts, only="md")]


def _group(view: View, group: Group) -> list[Block]:
    _ = view.wording
    title, workload = clean(group["title"]), _.tell(group["workload_title"])
    settings = first_screen.settings(group, view.wording)
    heading = first_screen.heading(group, view.document["groups"], view.wording)
    blocks: list[Block] = [Heading(2, title, only="md"), Heading(2, heading, group["id"], only="html")]
    if workload or settings:
        blocks.append(Settings([*([("", workload)] if workload else []), *settings], only="md"))
    blocks += [Paragraph(workload, "soft", only="html")] if workload else []
    blocks += [Settings(settings, only="html")] if settings else []
    table = group_table(view, group)._replace(label=_("report.results-of", group=title))
    return [*blocks, table, *explained(view.rows_of(group), group["id"], view.wording)]


def group_table(view: View, group: Group) -> Table:
    """Return the table of a group: DLPerf's columns and names of columns in Markdown and on the terminal."""
    lines = [
        _cells(view, row, f"{group['id']}-{number}") for number, row in enumerate(view.rows_of(group), 1)
    ]
    return Table("", _columns(view, group), lines, quiet="incomplete")


def _columns(view: View, group: Group) -> list[Column]:
    _ = view.wording
    noun = first_screen.noun_of(group)
    late = "" if any(row["latency_ms"] for row in view.rows_of(group)) else "sheet"
    return [
        *sheet_only("campaign unit case"),
        Column("label", only="html", sheet="label"),
        *sheet_only(" ".join(field for field in GROUP_FIELDS if field != "settings"), "count"),
        Column("nodes", "node_num", "count", only="md txt", sheet="nodes"),
        Column("nodes", kind="count", only="html"),
        *sheet_only("gpus", "count"),
        Column("devices", "gpu_num", "count", only="md txt", sheet="devices"),
        Column("devices", _(f"head.{noun}s"), "count", only="html"),
        *sheet_only("status good planned", "count"),
        Column(
            "median", f"{_.name('unit', group['unit'])}/s", "rate", "INCOMPLETE", look="main", sheet="median"
        ),
        *sheet_only("mean min max", "rate"),
        *sheet_only("spread", "percent"),
        Column("cv", "", "rate", only="sheet", sheet="cv_percent"),
        Column("latency_ms", kind="milliseconds", missing="–", only=late, look="main", sheet="latency_ms"),
        Column("each", _("report.per-device", device=_.name("noun", noun)), "rate", "–", only="html"),
        Column("speedup", kind="speedup", look="main", sheet="speedup"),
        Column("efficiency", kind="percent", sheet="efficiency"),
        Column("runs", kind="count"),
        Column("spread", kind="percent"),
        Column("flags", kind="tags", only="html", look="tags"),
        *sheet_only("settings"),
        *view.limit_columns(),
        *sheet_only("average_speed median_speed", "rate"),
        Column("flags", kind="tags", only="md"),
    ]


def _cells(view: View, row: Row, anchor: str) -> dict[str, Any]:
    settings = row["settings"] or {}
    return {
        **row,
        **(row["dlperf"] or {}),
        **row_cells(row, anchor, view.wording),
        "campaign": view.document["campaign"],
        "settings": " ".join(f"{name}={value}" for name, value in sorted(settings.items())),
        "each": None if row["median"] is None else row["median"] / row["devices"],
        "incomplete": row["status"] == "incomplete",
    }


def row_cells(row: Row, anchor: str, wording: Wording) -> dict[str, Any]:
    """Return the cells that rows of weak and of strong scaling have."""
    return {
        **{key: row[key] for key in ("case", "nodes", "devices", "median", "speedup", "efficiency")},
        "label": clean(row["label"]),
        "runs": f"{row['good']}/{row['planned']}",
        "flags": tags(row, anchor, wording),
        **limits(row, wording),
    }
