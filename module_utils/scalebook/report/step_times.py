# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The section of step times."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.scalebook.contracts import BASELINE, Row, StepTimes
from ansible.module_utils.scalebook.judge import weak_scaling
from ansible.module_utils.scalebook.pages.blocks import (
    Block,
    Column,
    Heading,
    Paragraph,
)
from ansible.module_utils.scalebook.report.view import View
from ansible.module_utils.scalebook.text import clean


def section(view: View) -> list[Block]:
    """Return the section of step times; it says so where no log has a line for each step."""
    _ = view.wording
    heading = Heading(2, _("Step times"), "steps")
    found = [row["steps"] for row in view.document["rows"] if row["steps"]]
    if not found:
        return [heading, Paragraph(_("No log has a line for each step of the window."), "soft")]
    waits = any(steps["slowest"] is not None for steps in found)
    about = _("Milliseconds for each step of the window, over all valid runs of a case.")
    columns = _columns(view, waits)
    alone = {row["group"]: row["steps"] for row in view.document["rows"] if row["label"] == BASELINE}
    rows = {
        group["id"]: [
            {"group": clean(group["title"]), **_cells(row, row["steps"], alone.get(row["group"]))}
            for row in view.rows_of(group)
            if row["steps"]
        ]
        for group in view.document["groups"]
    }
    tables = view.by_group(lambda _unit: columns, rows, "Step times of {group}")
    return [heading, Paragraph(f"{about} {_(WAITS)}" if waits else about, "soft"), *tables]


WAITS = (
    "«slowest device» is the mean of the longest of as many steps of 1n1g as the case has devices: what "
    "a step would take if devices did nothing but wait for the slowest of them. «waiting» is the part of "
    "the step by which this is longer than a step of 1n1g, «exchange and rest» the part beyond it: "
    "together they are about the efficiency that is lost."
)
"""What the columns about the slowest device mean."""


def _columns(view: View, waits: bool) -> list[Column]:
    _ = view.wording
    waiting = [
        Column("slowest", _("slowest device"), "seconds", "–"),
        Column("waiting", _("waiting"), "percent", "–"),
        Column("rest", _("exchange and rest"), "percent", "–"),
    ]
    return [
        Column("label", _("case")),
        Column("group", _("group"), only="md"),
        Column("mean", _("mean"), "seconds", "–", look="main"),
        *(waiting if waits else []),
        *(Column(name, name, "seconds", "–") for name in ("p50", "p95", "p99")),
        Column("max", _("max"), "seconds", "–"),
        Column("count", _("steps"), "count"),
    ]


def _cells(row: Row, steps: StepTimes | None, alone: StepTimes | None) -> dict[str, Any]:
    """Return the step times of a row, and where they are longer than those of 1n1g, `alone`."""
    lost = weak_scaling.lost(steps, alone) if steps and alone else None
    waiting, rest = lost or (None, None)
    return {**(steps or {}), "label": clean(row["label"]), "waiting": waiting, "rest": rest}
