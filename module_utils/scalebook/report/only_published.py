# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The section of published tables that nothing of ours stands beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.pages.blocks import Block, Column, Fold, Heading, Paragraph, Table
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.published import PublishedRow
from ansible.module_utils.scalebook.report.published_tables import name_of, sources, warning
from ansible.module_utils.scalebook.report.view import View
from ansible.module_utils.scalebook.text import clean


def section(view: View) -> list[Block]:
    """Return the section of published tables that nothing of ours stands beside, by family."""
    _ = view.wording
    tables = view.document.get("only_published") or []
    if not tables:
        return []
    about = _("report.only-published")
    title = _("title.only-published")
    blocks: list[Block] = [Heading(2, title, "only-published"), Paragraph(about, "soft")]
    for family, count in counts(tables, view.wording).items():
        mine = [table for table in tables if table["family"] == family]
        name = clean(family)
        warnings = dict.fromkeys(view.wording.tell(table["warning"]) for table in mine if table["warning"])
        warnings_told = [part for each in warnings for part in warning(each, view.wording)]
        source = sources([row for table in mine for row in table["rows"]], view.wording)
        table = _table(mine, view.wording)._replace(label=title + _("join.about") + name)
        summary = name + _("join.about") + count
        blocks += [Heading(3, summary, only="md"), Fold(summary, [*warnings_told, table, source])]
    return blocks


def counts(tables: Sequence[Mapping[str, Any]], wording: Wording) -> dict[str, str]:
    """Return how many results of each family are published only."""
    rows: dict[str, int] = {}
    for table in tables:
        rows[table["family"]] = rows.get(table["family"], 0) + len(table["rows"])
    return {family: wording.count(number, "published result") for family, number in rows.items()}


def _table(tables: Sequence[Mapping[str, Any]], wording: Wording) -> Table:
    """Return a line for each table and a column for each case; a cell is the rate, and the speedup."""
    order = {row["label"]: row["devices"] for table in tables for row in table["rows"]}
    labels = sorted(order, key=lambda label: (order[label], label))
    columns = [Column(f"at {label}", label, "count", "–") for label in labels]
    empty = dict.fromkeys(column.key for column in columns)
    lines = [
        {
            **empty,
            **{f"at {row['label']}": _cell(row, wording) for row in table["rows"]},
            "name": clean(name_of(table)),
        }
        for table in tables
    ]
    return Table("", [Column("name"), *columns], lines)


def _cell(row: PublishedRow, wording: Wording) -> str:
    rate = wording.number(row["rate"])
    return rate if row["devices"] == 1 else f"{rate} ({wording.speedup(row['speedup'])})"
