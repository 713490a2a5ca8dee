# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The section of a family whose workloads stand side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.scalebook.contracts import Family
from ansible.module_utils.scalebook.pages.blocks import Block, Column, Heading, Table
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.report.view import View
from ansible.module_utils.scalebook.text import clean


def section(view: View, family: Family, anchor: str) -> list[Block]:
    """Return the section of a family, nothing where no case was measured with two of its workloads."""
    if not compared(family):
        return []
    name = view.wording("title.family", family=clean(family["family"]))
    return [Heading(2, name, anchor), table_of(view, family)._replace(label=name)]


def compared(family: Family) -> bool:
    """Return whether some line of a family has the results of two workloads."""
    workloads = [each["workload"] for each in family["columns"]]
    return any(
        len({name for name, cell in zip(workloads, line["cells"], strict=True) if cell}) > 1
        for line in family["lines"]
    )


def table_of(view: View, family: Family) -> Table:
    """Return the workloads of a family side by side."""
    _ = view.wording
    columns = [Column("label"), Column("title", only="md html"), Column("title", " ", only="txt")]
    for index, each in enumerate(family["columns"]):
        name, rate = clean(each["name"]), f"{_.name('unit', each['unit'])}/s"
        key = f"median{index}"
        columns += [
            Column(key, _.join([name, rate]), "rate", "INCOMPLETE", only="md"),
            Column(key, f"{name} {rate}", "rate", "INCOMPLETE", only="txt"),
            Column(key, rate, "rate", "INCOMPLETE", only="html", look="main", over=name),
            Column(f"speedup{index}", _("head.speedup"), "speedup", over=name),
            Column(f"efficiency{index}", _("head.efficiency"), "percent", over=name),
        ]
    return Table("", columns, [_line(line, view.wording) for line in family["lines"]])


def _line(line: Mapping[str, Any], wording: Wording) -> dict[str, Any]:
    """Return a line of a family; precision, batch and numbers of its title stay in every language."""
    row: dict[str, Any] = {"label": clean(line["label"]), "title": wording.tell(line["title"])}
    for index, cell in enumerate(line["cells"]):
        for key in ("median", "speedup", "efficiency"):
            row[f"{key}{index}"] = cell[key] if cell else "–"
    return row
