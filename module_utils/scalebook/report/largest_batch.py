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
    title, rows = _("title.largest"), searches(view)
    columns = [
        Column("title"),
        Column("points"),
        Column("largest", kind="count", look="main"),
        Column("failed", kind="count"),
        Column("searches", kind="count"),
        Column("note"),
    ]
    about = _("report.largest")
    heading = Heading(2, title, "largest-batch")
    return [heading, Paragraph(about, "soft"), Table("", columns, rows, title)] if rows else []


def searches(view: View) -> list[dict[str, Any]]:
    """Return the cells of each search."""
    return [
        {
            "title": clean(entry["title"]),
            "points": clean(", ".join(entry["points"])),
            "largest": str(entry["largest"] or "–"),
            "failed": f"{entry['failed']} ({clean(entry['failed_at'])})" if entry["failed"] else "–",
            "searches": str(entry["runs"]),
            "note": view.wording.tell(entry["reason"] or ""),
        }
        for entry in view.document["largest_batches"]
    ]
