# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The workloads of a model family side by side.

Groups of one family differ in workload, model and settings; those are the columns of its table.  A line
is one topology with one precision, compiler setting, size of a sample and batch size per device.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import GROUP_FIELDS, Family, Group, Message, Row, message
from ansible.module_utils.scalebook.grouping import grouped
from ansible.module_utils.scalebook.judge import headings, weak_scaling
from ansible.module_utils.scalebook.workload import UNKNOWN, Workload, Workloads

LINE_FIELDS = ("device", "dtype", "xla", "bsz")
COLUMN_FIELDS = tuple(field for field in GROUP_FIELDS if field not in LINE_FIELDS)
SIZE = "size"
CELL = ("case", "median", "speedup", "efficiency", "status")

Member = Mapping[str, Any]
"""A group with the size of its samples as a field, not as a setting: it tells lines apart, not columns."""


def tabulate(groups: Sequence[Group], rows: Iterable[Row], workloads: Workloads) -> list[Family]:
    """Return the families of `groups`, which are sorted by family; `workloads` are the declarations.

    Only a family of several workloads has `columns` and `lines`: a line has a cell for each column,
    None where that workload has no such case.
    """
    by_case = {row["case"]: row for row in rows}
    members = [_member(group, workloads.get(group["workload"], UNKNOWN)) for group in groups]
    families = grouped(members, lambda member: member["family"])
    return [_family(name, own, by_case) for name, own in families.items()]


def _member(group: Group, declaration: Workload) -> Member:
    """Return a group with the size of its samples as a field instead of as a setting."""
    settings = group.get("settings") or {}
    size = declaration.sample_size(settings)
    others = {name: value for name, value in settings.items() if name != declaration.size}
    return {**group, "settings": others, SIZE: size}


def _family(name: str, groups: Sequence[Member], rows: Mapping[str, Row]) -> Family:
    workloads = list(dict.fromkeys(group["workload"] for group in groups))
    family: Family = {
        "family": name,
        "groups": [group["id"] for group in groups],
        "workloads": workloads,
        "columns": [],
        "lines": [],
    }
    if len(workloads) < 2:
        return family
    first: dict[str, Member] = {}
    for group in groups:
        first.setdefault(_key(group, COLUMN_FIELDS), group)
    family["lines"] = _lines(groups, rows, list(first))
    family["columns"] = [
        {
            "name": _column_name(group, list(first.values())),
            "workload": group["workload"],
            "unit": group["unit"],
        }
        for group in first.values()
    ]
    return family


def _lines(groups: Sequence[Member], rows: Mapping[str, Row], columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return a line for each topology, precision, size and batch, with a cell for each of the columns."""
    varying = {field for field in ("xla", SIZE) if len({group[field] for group in groups}) > 1}
    lines: dict[tuple[Any, ...], dict[str, Any]] = {}
    for group in groups:
        for case in group["rows"]:
            row = rows[case]
            order = (*_order(group), row["devices"], row["nodes"])
            line = lines.setdefault(
                order,
                {
                    "label": row["label"],
                    "title": _line_title(group, varying),
                    "cells": [None] * len(columns),
                },
            )
            values: Mapping[str, Any] = row
            cell = {field: values[field] for field in CELL}
            line["cells"][columns.index(_key(group, COLUMN_FIELDS))] = cell
    return [lines[order] for order in sorted(lines)]


def _key(group: Member, fields: Sequence[str]) -> str:
    return json.dumps([group.get(field) for field in fields], sort_keys=True, default=str)


def _order(group: Member) -> tuple[Any, ...]:
    return (
        str(group.get("device")),
        weak_scaling.precision_order(group["dtype"]),
        group["dtype"],
        group["xla"],
        group[SIZE] or 0,
        group["bsz"],
    )


def _line_title(group: Member, varying: Container[str]) -> Message:
    """Return the precision and batch of a line, and of compiler setting and size what is `varying`.

    Compilers differ between its columns, so they have no names here.
    """
    words: list[str | Message] = [message("family.on-cpu")] if group.get("device") == "cpu" else []
    words.append(group["dtype"])
    if "xla" in varying:
        words.append(message("family.compiled" if group["xla"] else "family.not-compiled"))
    if SIZE in varying:
        code = "family.image-size" if group["unit"] == "images" else "family.sequence-length"
        words.append(message(code, size=str(group[SIZE]) if group[SIZE] else message("family.unknown")))
    return message("family.line", words=[*words, *headings.words_of(group, ["bsz"])])


def _column_name(group: Member, others: Sequence[Member]) -> Message:
    """Return the workload, and what else tells the column from the workload's other columns."""
    same = [other for other in others if other["workload"] == group["workload"]]
    varying = [
        field
        for field in COLUMN_FIELDS
        if field != "workload" and len({_key(other, [field]) for other in same}) > 1
    ]
    return headings.named([group["workload"], *headings.words_of(group, varying, plain=False)])
