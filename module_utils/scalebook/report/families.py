# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The workloads of a model family side by side.

Groups of one family differ in workload, model and settings; those are the columns of its table.  A line
is one topology with one precision, compiler setting and batch size per device.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import GROUP_FIELDS, Family, Group, Row
from ansible.module_utils.scalebook.report import weak_scaling

LINE_FIELDS = ("device", "dtype", "xla", "bsz")
COLUMN_FIELDS = tuple(field for field in GROUP_FIELDS if field not in LINE_FIELDS)
CELL = ("case", "median", "speedup", "efficiency", "status")


def tabulate(groups: Sequence[Group], rows: Iterable[Row]) -> list[Family]:
    """Return the families of `groups`, which are sorted by family.

    Only a family of several workloads has `columns` and `lines`: a line has a cell for each column,
    None where that workload has no such case.
    """
    by_case = {row["case"]: row for row in rows}
    members: dict[str, list[Group]] = {}
    for group in groups:
        members.setdefault(group["family"], []).append(group)
    return [_family(name, own, by_case) for name, own in members.items()]


def _family(name: str, groups: Sequence[Group], rows: Mapping[str, Row]) -> Family:
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
    first: dict[str, Group] = {}
    for group in groups:
        first.setdefault(_key(group, COLUMN_FIELDS), group)
    columns = list(first)
    family["columns"] = [
        {
            "name": _column_name(group, list(first.values())),
            "workload": group["workload"],
            "unit": group["unit"],
        }
        for group in first.values()
    ]
    several_compiled = len({group["xla"] for group in groups}) > 1
    lines: dict[tuple[Any, ...], dict[str, Any]] = {}
    for group in groups:
        for case in group["rows"]:
            row = rows[case]
            order = (*_order(group), row["devices"], row["nodes"])
            line = lines.setdefault(
                order,
                {
                    "label": row["label"],
                    "title": _line_title(group, several_compiled),
                    "cells": [None] * len(columns),
                },
            )
            values: Mapping[str, Any] = row
            cell = {field: values[field] for field in CELL}
            line["cells"][columns.index(_key(group, COLUMN_FIELDS))] = cell
    family["lines"] = [lines[order] for order in sorted(lines)]
    return family


def _key(group: Group, fields: Sequence[str]) -> str:
    return json.dumps([group.get(field) for field in fields], sort_keys=True, default=str)


def _order(group: Group) -> tuple[Any, ...]:
    return (
        str(group.get("device")),
        weak_scaling.precision_order(group["dtype"]),
        group["dtype"],
        group["xla"],
        group["bsz"],
    )


def _line_title(group: Group, several_compiled: bool) -> str:
    """Return the precision, compiler setting and batch of a line; compilers differ between its columns."""
    compiled = ("compiled" if group["xla"] else "not compiled") if several_compiled else ""
    device = weak_scaling.word(group, "device")
    return " ".join(filter(None, [device, group["dtype"], compiled, weak_scaling.word(group, "bsz")]))


def _column_name(group: Group, others: Sequence[Group]) -> str:
    """Return the workload, and what else tells the column from the workload's other columns."""
    same = [other for other in others if other["workload"] == group["workload"]]
    varying = [
        field
        for field in COLUMN_FIELDS
        if field != "workload" and len({_key(other, [field]) for other in same}) > 1
    ]
    words = [weak_scaling.word(group, field, plain=False) for field in varying]
    return " ".join(filter(None, [group["workload"], *words]))
