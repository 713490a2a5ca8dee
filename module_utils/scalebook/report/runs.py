# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The section of the runs that count."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.scalebook.contracts import Row, Run
from ansible.module_utils.scalebook.network import described
from ansible.module_utils.scalebook.pages.blocks import Block, Column, Heading, Table, Tag, sheet_only
from ansible.module_utils.scalebook.report.view import View, kind_of_flag
from ansible.module_utils.scalebook.text import clean


def section(view: View) -> list[Block]:
    """Return the section of the runs that count."""
    _ = view.wording
    short, title = view.short_names, _("title.runs")
    rows = [
        {"group": short[row["case"]], **cells(view, run, row)}
        for row in view.document["rows"]
        for run in row["runs"]
    ]
    return [Heading(2, title, "runs"), Table("", columns(view), rows, title)] if rows else []


def columns(view: View) -> list[Column]:
    """Return the columns of runs; the sheet has those that do not count too."""
    _ = view.wording
    return [
        *sheet_only("case label"),
        *(column._replace(only="md html") for column in view.case_columns()),
        Column("repeat", kind="count", sheet="repeat"),
        *sheet_only("status"),
        Column("rate", kind="rate", look="main", sheet="rate"),
        Column("per_second", _("head.unit"), only="md html"),
        *sheet_only("unit"),
        *sheet_only("seconds", "seconds"),
        Column("time_source", sheet="time_source"),
        *sheet_only("second_source"),
        Column("second", kind="rate", sheet="second_rate"),
        Column("differs", kind="percent", sheet="differs"),
        Column("drift", kind="percent", sheet="drift"),
        *([Column("network", look="wraps", sheet="network")] if _networks(view) else []),
        *sheet_only("started reason notes"),
        Column("flags", kind="tags"),
    ]


def _networks(view: View) -> bool:
    """Return whether a run says what connected its GPUs."""
    return any("nccl" in run for row in view.document["rows"] for run in row["runs"])


def cells(view: View, run: Run, row: Row) -> dict[str, Any]:
    """Return the cells of a run that counts."""
    _ = view.wording
    codes = [run["steady"], "outlier" if run["repeat"] in row["outliers"] else ""]
    second = run["second"] or {}
    return {
        **run,
        **{key: row[key] for key in ("case", "unit")},
        "status": "ok",
        "per_second": f"{_.name('unit', row['unit'])}/s",
        "label": clean(row["label"]),
        "time_source": _.name("source", run["time_source"]),
        "second": second.get("rate"),
        "second_source": second.get("time_source"),
        "network": clean(_.tell(described(run["nccl"]))) if "nccl" in run else "",
        "notes": "; ".join(map(_.tell, run.get("notes") or ())),
        "flags": [Tag(kind_of_flag(code, _)) for code in codes if code],
    }
