# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What every section of a report is made of, and the columns that many of its tables have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ansible.module_utils.scalebook import hardware
from ansible.module_utils.scalebook.contracts import BASELINE, Flag, Group, Results, Row, message
from ansible.module_utils.scalebook.pages.blocks import Block, Column, Heading, Item, Items, Table, Tag
from ansible.module_utils.scalebook.pages.wording import ENGLISH, Wording
from ansible.module_utils.scalebook.store import links
from ansible.module_utils.scalebook.text import clean


class View(NamedTuple):
    """The results, and how one form of the report says them; `charts` and `timelines` are its drawings."""

    document: Results
    wording: Wording = ENGLISH
    linked: links.Links = links.NONE
    charts: Sequence[Mapping[str, str]] = ()
    timelines: Sequence[Mapping[str, str]] = ()

    def short_names(self) -> dict[str, str]:
        """Return the name of the group of each case, '' where there is one group: the heading has it."""
        several = len(self.document["groups"]) > 1
        return {
            case: clean(group["short"]) if several else ""
            for group in self.document["groups"]
            for case in group["rows"]
        }

    def rows_of(self, group: Group) -> list[Row]:
        """Return the rows of a group in its order."""
        rows = {row["case"]: row for row in self.document["rows"]}
        return [rows[case] for case in group["rows"]]

    def case_columns(self) -> list[Column]:
        """Return the columns of a case and its group, which a page has in one."""
        _ = self.wording
        return [Column("label", soft="group"), Column("group", only="md")]

    def limit_columns(self) -> list[Column]:
        """Return the columns of ranges and, where some row has one, of intervals."""
        _ = self.wording
        both = "md html"
        some = both if any(row["interval"] for row in self.document["rows"]) else "sheet"
        ours, welch = _("head.interval"), _("head.speedup_interval")
        return [
            Column("range", kind="rates", only=both),
            Column("interval", ours, "rates", only=some, sheet="median_interval95"),
            Column("speedup_range", kind="speedups", only=both, sheet="speedup_range"),
            Column("speedup_interval", welch, "speedups", only=some, sheet="speedup_interval95"),
        ]

    def by_group(
        self,
        columns: Callable[[str], Sequence[Column]],
        lines: Mapping[str, Sequence[Mapping[str, Any]]],
        label: str,
    ) -> list[Block]:
        """Return a table for each group of a page, and one of all groups for Markdown.

        `lines` are those of each group by its identifier, `columns` returns those of a table for its unit.
        """
        every = [row for group in self.document["groups"] for row in lines[group["id"]]]
        blocks: list[Block] = [Table("", columns(""), every, only="md")]
        for group in self.document["groups"]:
            title, own = clean(group["title"]), lines[group["id"]]
            if own and len(self.document["groups"]) > 1:
                blocks.append(Heading(3, title, only="html"))
            if own:
                named = self.wording(label, group=title)
                unit = self.wording.name("unit", group["unit"])
                blocks.append(Table("", columns(unit), own, named, only="html"))
        return blocks


def limits(row: Row, wording: Wording) -> dict[str, Any]:
    """Return the ranges and 95 % intervals of a row of weak or of strong scaling."""
    missing = "–" if row["label"] == BASELINE else None
    low, high = row["min"], row["max"]
    return {
        "range": None if low is None or high is None or row["good"] < 2 else [low, high],
        "interval": row["interval"],
        "speedup_range": row["speedup_range"] or missing,
        "speedup_interval": row["speedup_interval"] or missing,
    }


def tags(row: Row, anchor: str, wording: Wording) -> list[Tag]:
    """Return the flags of a row in a few letters each, linked to what explained says of them."""
    return [
        Tag(few_letters(row, flag["code"], wording), flag["code"], f"#{anchor}-{index}")
        for index, flag in enumerate(row["flags"], 1)
    ]


def explained(rows: Sequence[Row], table: str, wording: Wording) -> list[Block]:
    """Return the list of what the flags of a table mean."""
    items = [
        Item(said(flag, wording), clean(row["label"]), id=f"{table}-{number}-{index}")
        for number, row in enumerate(rows, 1)
        for index, flag in enumerate(row["flags"], 1)
    ]
    return [Items(items, "flags")] if items else []


def said(flag: Flag, wording: Wording) -> str:
    """Return the sentence of a flag."""
    return wording.tell(flag["message"])


def few_letters(row: Row, code: str, wording: Wording) -> str:
    """Return the few letters of a flag in a cell: its numbers, or what its code stands for."""
    if code == "runs":
        return f"{row['good']}/{row['planned']}"
    if code == "shared-machine":
        return hardware.shared(row, wording) or wording("report.machines-unknown")
    return kind_of_flag(code, wording)


def kind_of_flag(code: str, wording: Wording) -> str:
    """Return what the code of a flag stands for, in a few letters."""
    return wording.tell(message(f"short.{code}"))
