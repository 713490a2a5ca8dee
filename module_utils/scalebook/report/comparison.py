# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Two campaigns side by side: what differs between them, and a table of the cases that both measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ansible.module_utils.scalebook.contracts import GROUP_FIELDS, Row, Statement
from ansible.module_utils.scalebook.judge import baseline, headings, weak_scaling
from ansible.module_utils.scalebook.judge.comparison import STEPS, Comparison, Difference
from ansible.module_utils.scalebook.pages.blocks import Block, Column, Heading, Paragraph, Table
from ansible.module_utils.scalebook.pages.cells import KINDS
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.text import clean
from ansible.module_utils.scalebook.workload import Workloads


def section(compared: Comparison, declared: Workloads, wording: Wording, anchor: str) -> list[Block]:
    """Return the section of two campaigns; `anchor` is its identifier."""
    name, rows = title(compared, wording), [table(compared, declared, wording)] if compared["rows"] else []
    return [Heading(2, name, anchor), Paragraph(differing(compared, wording)), *rows]


def title(compared: Comparison, wording: Wording) -> str:
    """Return the names of the two campaigns."""
    return wording("compare.title", now=clean(compared["now"]), before=clean(compared["before"]))


def table(compared: Comparison, declared: Workloads, wording: Wording) -> Table:
    """Return the table of the cases that both measured."""
    columns = columns_of(clean(compared["before"]), clean(compared["now"]), wording)
    return Table(columns, cells(compared, declared, wording), title(compared, wording))


def columns_of(before: str, now: str, wording: Wording) -> list[Column]:
    """Return the columns of the table; the fifth and the sixth have the names of the campaigns."""
    return [
        Column("case", look="tags wraps"),
        Column("ratio", kind="change", look="main"),
        Column("range"),
        Column("verdict"),
        Column("before", before, "rate", look="tags wraps"),
        Column("now", now, "rate", look="tags wraps"),
        Column("differs", wording("compare.differs"), look="tags wraps"),
    ]


def cells(compared: Comparison, declared: Workloads, wording: Wording) -> list[dict[str, Any]]:
    """Return the rows of the table."""
    _ = wording
    groups = [_group(entry["row"], declared) for entry in compared["rows"]]
    headings.name_groups(groups)  # type: ignore[arg-type]
    return [
        {
            **entry,
            "case": clean(f"{_.tell(group['title'])} {entry['label']}"),
            "range": _range(entry, _),
            "verdict": _.tell(entry["why"]) if entry["why"] else verdict(entry, _),
            "differs": _listed(entry["differs"], _) or "–",
        }
        for entry, group in zip(compared["rows"], groups, strict=True)
    ]


def differing(compared: Comparison, wording: Wording) -> str:
    """Return what differs in all cases, and how many only one of the campaigns measured."""
    _ = wording
    same = (
        _("compare.alike")
        if not compared["differs"]
        else _("compare.common", what=_listed(compared["differs"], _))
    )
    counts = ((compared["before"], compared["only_before"]), (compared["now"], compared["only_now"]))
    only = [
        _("compare.only", name=clean(name), cases=_.count(count, "case")) for name, count in counts if count
    ]
    return _.join([same, *only], "sentences")


def verdict(entry: Mapping[str, Any], wording: Wording) -> str:
    """Return the word of a verdict; a large difference that the runs do not prove is not `same`."""
    unclear = entry["verdict"] == "same" and abs(entry["ratio"] - 1) > baseline.EFFECT
    return wording("compare.unclear") if unclear else wording.name("verdict", entry["verdict"])


def _group(row: Row, declared: Workloads) -> dict[str, Any]:
    compiler = weak_scaling.compiler_of(row["workload"], declared)
    return {**{field: row.get(field) for field in GROUP_FIELDS}, "compiler": compiler}


def _range(entry: Mapping[str, Any], wording: Wording) -> str:
    """Return the range of the ratio, with its interval where there are enough runs for one."""
    both = [KINDS["changes"](pair, wording) for pair in (entry["range"], entry["interval"]) if pair]
    parts = [*both[:1], *(wording("compare.interval", interval=each) for each in both[1:])]
    return wording.join(parts) or "–"


def _value(value: Statement, wording: Wording) -> str:
    text = wording.fact(value) if isinstance(value, str) else wording.tell(value)
    return text or wording("report.not-recorded")


def _listed(differs: Iterable[Difference], wording: Wording) -> str:
    return wording.join(
        (
            wording(
                "compare.changed",
                what=_name(each["what"], wording),
                before=_value(each["before"], wording),
                now=_value(each["now"], wording),
            )
            for each in differs
        ),
        "list",
    )


def _name(what: str, wording: Wording) -> str:
    """Return what a field of the hardware, the versions or the settings is called."""
    if what in ("hardware", "link", "machines"):
        return wording(f"head.{what}")
    return wording.name("setting", what) if what in STEPS else wording.name("fact", what)
