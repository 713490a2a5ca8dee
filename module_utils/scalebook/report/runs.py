# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The section of the runs that count."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.scalebook.contracts import Row, Run
from ansible.module_utils.scalebook.pages.blocks import (
    Block,
    Column,
    Fold,
    Heading,
    Tag,
)
from ansible.module_utils.scalebook.report.view import View, kind_of_flag
from ansible.module_utils.scalebook.text import clean


def section(view: View) -> list[Block]:
    """Return the section of the runs that count."""
    _ = view.wording
    rows = {
        group["id"]: [
            {"group": clean(group["title"]), **_cells(view, run, row)}
            for row in view.rows_of(group)
            for run in row["runs"]
        ]
        for group in view.document["groups"]
    }

    def columns(unit: str) -> list[Column]:
        return [
            Column("label", _("case")),
            Column("group", _("group"), only="md"),
            Column("repeat", _("repeat"), "count"),
            Column("rate", _("rate"), "rate", only="md"),
            Column("rate", f"{unit}/s", "rate", only="html", look="main"),
            Column("time_source", _("time source")),
            Column("second", _("second time source"), "rate"),
            Column("differs", _("difference"), "percent"),
            Column("drift", _("drift"), "percent"),
            Column("flags", _("flags"), "tags"),
            Column("links", _("files"), "links", only="html"),
        ]

    tables = view.by_group(columns, rows, "Runs of {group}")
    summary = _("{count} valid runs", count=view.document["counts"]["good"])
    return [Heading(2, _("All valid runs"), "runs"), Fold(summary, tables)]


def _cells(view: View, run: Run, row: Row) -> dict[str, Any]:
    _ = view.wording
    codes = [run["steady"], "outlier" if run["repeat"] in row["outliers"] else ""]
    return {
        **run,
        "label": clean(row["label"]),
        "time_source": _(clean(run["time_source"])),
        "second": (run["second"] or {}).get("rate"),
        "flags": [Tag(kind_of_flag(code, _)) for code in codes if code],
        "links": view.linked.runs.get((row["case"], str(run["repeat"])), []),
    }
