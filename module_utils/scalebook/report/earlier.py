# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The section that compares a campaign with an earlier one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.scalebook.contracts import GROUP_FIELDS
from ansible.module_utils.scalebook.judge import headings
from ansible.module_utils.scalebook.pages.blocks import Block, Column, Heading, Items, Paragraph, Table, Tag
from ansible.module_utils.scalebook.report import method
from ansible.module_utils.scalebook.report.view import View
from ansible.module_utils.scalebook.text import clean


def section(view: View) -> list[Block]:
    """Return the section, nothing where there is no earlier campaign."""
    _ = view.wording
    compared = view.document["baseline"]
    if not compared:
        return []
    name, limit = clean(compared["name"]), view.wording.percent(compared["limit"])
    title = _("title.baseline", name=name)
    blocks: list[Block] = [Heading(2, title, "baseline")]
    if compared.get("other_hardware"):
        what = view.wording.tell(compared["other_hardware"])
        blocks.append(Paragraph(_("report.other-hardware", what=what), "warning"))
    if compared.get("other_binding"):
        blocks.append(Paragraph(_.tell(compared["other_binding"]), "warning"))
    if compared["regressions"]:
        slower = _("report.regressions", count=compared["regressions"], limit=limit)
        blocks.append(Paragraph(slower, "warning"))
    only = [_("report.only-here", place=place(entry)) for entry in compared["only_here"]]
    only += [_("report.only-there", name=name, place=place(entry)) for entry in compared["only_there"]]
    rule = Paragraph(method.baseline_rule(view.wording), "soft")
    return [*blocks, table(view)._replace(label=title), *([Items(only)] if only else []), rule]


def table(view: View) -> Table:
    """Return the table of the cases that both campaigns have."""
    _ = view.wording
    rows = [_cells(view, entry) for entry in (view.document["baseline"] or {"rows": []})["rows"]]
    some = "md html" if any(row["interval"] for row in rows) else "sheet"
    columns = [
        *view.case_columns(),
        Column("now", kind="rate"),
        Column("before", kind="rate", sheet="baseline_median"),
        Column("ratio", kind="change", look="main", sheet="baseline_ratio"),
        Column("range", kind="changes", sheet="baseline_range"),
        Column("interval", kind="changes", only=some, sheet="baseline_interval95"),
        Column("margin", kind="margin"),
        Column("verdict", kind="tags", only="html txt", soft="why", sheet="baseline_verdict"),
        Column("judged", _("head.verdict"), only="md"),
    ]
    return Table("", columns, rows)


def _cells(view: View, entry: Mapping[str, Any]) -> dict[str, Any]:
    _ = view.wording
    verdict, why = _.name("verdict", entry["verdict"]), view.wording.tell(entry["why"] or "")
    return {
        **entry,
        "label": clean(entry["label"]),
        "group": view.short_names[entry["case"]],
        "verdict": [Tag(verdict, "stop")] if entry["regression"] else verdict,
        "judged": _.about(verdict, why) if why else verdict,
        "why": why,
    }


def place(entry: Mapping[str, Any]) -> str:
    """Return the name of a row that only one of two campaigns has."""
    names = (headings.word(entry, field) for field in GROUP_FIELDS if entry.get(field) is not None)
    return clean(" ".join(filter(None, [entry["label"], *names])))
