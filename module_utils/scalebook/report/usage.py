# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The section of how busy the nodes were, what holds cases back, and the course of single runs."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.scalebook.contracts import Results, message
from ansible.module_utils.scalebook.judge import utilisation
from ansible.module_utils.scalebook.pages.blocks import (
    Block,
    Charts,
    Column,
    Heading,
    Item,
    Items,
    Paragraph,
    Table,
)
from ansible.module_utils.scalebook.quantities import QUANTITIES, TABLE
from ansible.module_utils.scalebook.report import timeline
from ansible.module_utils.scalebook.report.view import View
from ansible.module_utils.scalebook.text import clean


def section(view: View) -> list[Block]:
    """Return the section; it says so where nothing was recorded."""
    _ = view.wording
    title = _("title.utilisation")
    heading = Heading(2, title, "utilisation")
    if not view.document["utilisation"]:
        return [heading, Paragraph(_("report.no-telemetry"), "soft")]
    about = _("report.utilisation")
    table = _table(view)._replace(label=title)
    return [heading, Paragraph(about, "soft"), table, *_bottlenecks(view), *_courses(view)]


def _table(view: View) -> Table:
    _ = view.wording
    short = view.short_names()
    columns = [
        *view.case_columns(),
        Column("quantity"),
        Column("mean", kind="usage", look="main"),
        Column("min", kind="usage"),
        Column("max", kind="usage"),
        Column("of", kind="count"),
        Column("judgement"),
    ]
    rows = [
        {
            **line,
            "label": clean(line["label"]),
            "group": short[line["case"]],
            "quantity": _.tell(message(QUANTITIES[line["quantity"]].code)) + _("join.parts") + line["unit"],
            "judgement": _.tell(utilisation.judgement(line) or ""),
        }
        for line in view.document["utilisation"]
    ]
    return Table("", columns, rows)


def means(document: Results) -> Table:
    """Return the mean of each quantity, a row per case, for sheets."""
    columns = [Column(each.name, "", "usage", only="sheet", sheet=f"{each.name}_mean") for each in TABLE]
    rows: dict[str, dict[str, Any]] = {}
    for line in document["utilisation"]:
        rows.setdefault(line["case"], {"case": line["case"]})[line["quantity"]] = line["mean"]
    return Table("", columns, list(rows.values()))


def _bottlenecks(view: View) -> list[Block]:
    """Return the sentence on the bottleneck of each case."""
    _ = view.wording
    short = view.short_names()
    items = [
        Item(view.wording.tell(entry["message"]), clean(entry["label"]), short[entry["case"]])
        for entry in view.document["bottlenecks"]
    ]
    about = _("report.bottleneck")
    heading = Heading(3, _("title.bottleneck"), "bottlenecks")
    return [heading, Paragraph(about, "soft"), Items(items, "flags")] if items else []


def _courses(view: View) -> list[Block]:
    """Return the courses of runs: a drawing each, or the names of their files."""
    if not view.timelines:
        return []
    return [
        Heading(3, view.wording("title.timelines"), "timelines"),
        Paragraph(timeline.rule(view.document, view.wording), "soft"),
        Charts(view.timelines, only="html"),
        Items([Item(each["title"], f"{each['name']}.svg") for each in view.timelines], only="md"),
    ]
