# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The section of the largest batch that each search found."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.scalebook.pages.blocks import Block, Column, Heading, Paragraph, Table
from ansible.module_utils.scalebook.report.view import View
from ansible.module_utils.scalebook.text import clean


def section(view: View) -> list[Block]:
    """Return the section, nothing without a search."""
    _ = view.wording
    title, rows = _("Largest batch"), searches(view)
    columns = [
        Column("title", _("setting")),
        Column("points", _("topologies")),
        Column("largest", _("largest batch"), "count", look="main"),
        Column("failed", _("out of memory with"), "count"),
        Column("runs", _("search runs"), "count"),
        Column("reason", _("note")),
    ]
    about = _(
        "The largest batch per device that short runs did not run out of memory with, at all of the "
        "topologies, in steps of 8."
    )
    heading = Heading(2, title, "largest-batch")
    return [heading, Paragraph(about, "soft"), Table("", columns, rows, title)] if rows else []


def searches(view: View) -> list[dict[str, Any]]:
    """Return the cells of each search."""
    dash = view.wording("–")
    return [
        {
            "title": clean(entry["title"]),
            "points": clean(", ".join(entry["points"])),
            "largest": str(entry["largest"] or dash),
            "failed": f"{entry['failed']} ({clean(entry['failed_at'])})" if entry["failed"] else dash,
            "runs": str(entry["runs"]),
            "reason": view.wording.tell(entry["reason"] or ""),
        }
        for entry in view.document["largest_batches"]
    ]
