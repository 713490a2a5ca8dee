# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What every section of a report is made of, and the columns that many of its tables have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ansible.module_utils.scalebook import hardware
from ansible.module_utils.scalebook.contracts import BASELINE, Flag, Group, Results, Row, message
from ansible.module_utils.scalebook.judge import flags
from ansible.module_utils.scalebook.pages.blocks import Column, Tag
from ansible.module_utils.scalebook.pages.wording import ENGLISH, Wording
from ansible.module_utils.scalebook.text import clean

MANY = 6
"""Rows from which their number says more than their names."""


@dataclass(frozen=True)
class View:
    """The results, and how one form of the report says them; `charts` and `timelines` are its drawings."""

    document: Results
    wording: Wording = ENGLISH
    charts: Sequence[Mapping[str, str]] = ()
    timelines: Sequence[Mapping[str, str]] = ()

    @cached_property
    def rows(self) -> dict[str, Row]:
        """The row of each case."""
        return {row["case"]: row for row in self.document["rows"]}

    @cached_property
    def short_names(self) -> dict[str, str]:
        """What tells the group of each case from the others, '' where there is one group."""
        several = len(self.document["groups"]) > 1
        return {
            case: self.wording.tell(group["short"]) if several else ""
            for group in self.document["groups"]
            for case in group["rows"]
        }

    @cached_property
    def anchors(self) -> dict[str, str]:
        """The identifier of each case's row in the table of results."""
        return {row["case"]: f"row-{number}" for number, row in enumerate(self.document["rows"], 1)}

    def named(self, cases: Iterable[str]) -> str:
        """Return cases in words, those of one group together: `b32 1n1g, 1n2g; b64 1n4g`, or `all rows`."""
        short, own = self.short_names, set(cases)
        if own == short.keys() and len(own) > 1:
            return self.wording("report.all-rows")
        if len(own) > MANY:
            return self.wording("report.many-rows", count=len(own), of=len(short))
        groups: dict[str, list[str]] = {}
        for row in self.document["rows"]:
            if row["case"] in own:
                groups.setdefault(short[row["case"]], []).append(clean(row["label"]))
        texts = [f"{group} {self.wording.join(labels)}".strip() for group, labels in groups.items()]
        return self.wording.join(texts, "list")

    def rows_of(self, group: Group) -> list[Row]:
        """Return the rows of a group in its order."""
        return [self.rows[case] for case in group["rows"]]

    def case_columns(self) -> list[Column]:
        """Return the columns of a case: what tells its group from others, and its label."""
        several = len(self.document["groups"]) > 1
        return [*([Column("group", look="wrap")] if several else []), Column("label")]

    def case_cells(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Return the cells of an entry of a case: its name, and those of its columns."""
        label, group = clean(entry["label"]), self.short_names[entry["case"]]
        return {"case": entry["case"], "label": label, "group": group}


def noun_of(measured: Iterable[Mapping[str, Any]]) -> str:
    """Return what the devices of groups are called."""
    return "GPU" if all(group.get("device") == "gpu" for group in measured) else "device"


def limits(row: Row) -> dict[str, Any]:
    """Return the ranges and 95 % intervals of a row of weak or of strong scaling."""
    missing = "–" if row["label"] == BASELINE else None
    return {
        "interval": row["interval"],
        "speedup_range": row["speedup_range"] or missing,
        "speedup_interval": row["speedup_interval"] or missing,
    }


def spans(row: Row, wording: Wording) -> str:
    """Return the range of the rates of a row, and its interval where it has one; '' for a single run."""
    low, high = row["min"], row["max"]
    if low is None or high is None or row["good"] < 2:
        return ""
    text = wording("report.range", range=wording.between([low, high], rates=True))
    if row["interval"]:
        text += wording("join.list") + wording(
            "report.interval", range=wording.between(row["interval"], rates=True)
        )
    return text


def tags(row: Row, wording: Wording) -> list[Tag]:
    """Return the flags of a row in a few letters each, linked to what the report says of their kind."""
    return [
        Tag(few_letters(row, flag["code"], wording), flags.LEVELS[flag["code"]], f"#flag-{flag['code']}")
        for flag in row["flags"]
    ]


def flag_sentence(flag: Flag, wording: Wording) -> str:
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
