# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The section of the runs that count."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.scalebook.contracts import Row, Run
from ansible.module_utils.scalebook.pages.blocks import Block, Column, Fold, Heading, Tag, sheet_only
from ansible.module_utils.scalebook.report.view import View, kind_of_flag
from ansible.module_utils.scalebook.text import clean


def section(view: View) -> list[Block]:
    """Return the section of the runs that count."""
    _ = view.wording
    rows = {
        group["id"]: [
            {"group": clean(group["title"]), **cells(view, run, row)}
            for row in view.rows_of(group)
            for run in row["runs"]
        ]
        for group in view.document["groups"]
    }
    tables = view.by_group(lambda unit: columns(view, unit), rows, "report.runs-of")
    summary = _("report.valid-runs", count=view.document["counts"]["good"])
    return [Heading(2, _("title.runs"), "runs"), Fold(summary, tables)]


def columns(view: View, unit: str = "") -> list[Column]:
    """Return the columns of runs; the sheet has those that do not count too."""
    _ = view.wording
    return [
        *sheet_only("case"),
        Column("label", sheet="label"),
        Column("group", only="md"),
        Column("repeat", kind="count", sheet="repeat"),
        *sheet_only("status"),
        Column("rate", kind="rate", only="md", sheet="rate"),
        Column("rate", f"{unit}/s", "rate", only="html", look="main"),
        *sheet_only("unit"),
        *sheet_only("seconds", "seconds"),
        Column("time_source", sheet="time_source"),
        *sheet_only("second_source"),
        Column("second", kind="rate", sheet="second_rate"),
        Column("differs", kind="percent", sheet="differs"),
        Column("drift", kind="percent", sheet="drift"),
        *sheet_only("started reason notes"),
        Column("flags", kind="tags"),
        Column("links", kind="links", only="html"),
    ]


def cells(view: View, run: Run, row: Row) -> dict[str, Any]:
    """Return the cells of a run that counts."""
    _ = view.wording
    codes = [run["steady"], "outlier" if run["repeat"] in row["outliers"] else ""]
    second = run["second"] or {}
    return {
        **run,
        **{key: row[key] for key in ("case", "unit")},
        "status": "ok",
        "label": clean(row["label"]),
        "time_source": _.name("source", run["time_source"]),
        "second": second.get("rate"),
        "second_source": second.get("time_source"),
        "notes": "; ".join(map(_.tell, run.get("notes") or ())),
        "flags": [Tag(kind_of_flag(code, _)) for code in codes if code],
        "links": view.linked.runs.get((row["case"], str(run["repeat"])), []),
    }
