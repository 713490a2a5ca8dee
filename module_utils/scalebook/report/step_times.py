# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The section of step times."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.scalebook.contracts import BASELINE, Row, StepTimes
from ansible.module_utils.scalebook.judge import weak_scaling
from ansible.module_utils.scalebook.pages.blocks import Block, Column, Heading, Paragraph, Table
from ansible.module_utils.scalebook.report.view import View
from ansible.module_utils.scalebook.text import clean


def section(view: View) -> list[Block]:
    """Return the section of step times; it says so where no log has a line for each step."""
    _ = view.wording
    title = _("title.steps")
    heading = Heading(2, title, "steps")
    if not any(row["steps"] for row in view.document["rows"]):
        return [heading, Paragraph(_("report.no-steps"), "soft")]
    about = [_("report.steps"), *([_("report.waits")] if _waits(view) else [])]
    text = _.join(about, "sentences")
    return [heading, Paragraph(text, "soft"), table(view)._replace(label=title)]


def table(view: View) -> Table:
    """Return the step times of all rows that have some."""
    rows, short = view.document["rows"], view.short_names
    steps_of_one = {row["group"]: row["steps"] for row in rows if row["label"] == BASELINE}
    lines = [
        {"group": short[row["case"]], **_cells(row, row["steps"], steps_of_one.get(row["group"]))}
        for row in rows
        if row["steps"]
    ]
    return Table("", _columns(view), lines)


def _waits(view: View) -> bool:
    """Return whether what a step would take without communication is known of some case."""
    return any(row["steps"] and row["steps"]["slowest"] is not None for row in view.document["rows"])


def _columns(view: View) -> list[Column]:
    _ = view.wording
    waits = "" if _waits(view) else "sheet"
    return [
        *view.case_columns(),
        Column("mean", kind="seconds", missing="–", look="main", sheet="step_mean_seconds"),
        Column("slowest", kind="seconds", missing="–", only=waits, sheet="step_slowest_seconds"),
        Column("waiting", kind="percent", missing="–", only=waits),
        Column("rest", kind="percent", missing="–", only=waits),
        Column("p50", kind="seconds", missing="–", sheet="step_p50_seconds"),
        Column("p95", kind="seconds", missing="–", sheet="step_p95_seconds"),
        Column("p99", kind="seconds", missing="–", sheet="step_p99_seconds"),
        Column("max", kind="seconds", missing="–"),
        Column("count", kind="count"),
    ]


def _cells(row: Row, steps: StepTimes | None, of_one: StepTimes | None) -> dict[str, Any]:
    """Return the step times of a row, and where they are longer than those of 1n1g, `of_one`."""
    lost_parts = weak_scaling.longer_parts(steps, of_one) if steps and of_one else None
    waiting, rest = lost_parts or (None, None)
    return {
        **(steps or {}),
        "case": row["case"],
        "label": clean(row["label"]),
        "waiting": waiting,
        "rest": rest,
    }
