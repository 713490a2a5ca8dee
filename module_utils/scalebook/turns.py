# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Whose turn it is: which nodes a run goes on, and which runs are skipped, as a campaign goes along.

A case runs on the first of the inventory's nodes that are not lost, as many as it wants, in
inventory order: never on fewer.  A run that therefore went on others than the first says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.matrix import IDENTITY

Node = Mapping[str, Any]
Case = Mapping[str, Any]


def members(case: Case, nodes: Sequence[Node], lost: Sequence[str] = ()) -> list[Node]:
    """Return the nodes that `case` runs on, in task_index order; too few when the others are lost."""
    return [node for node in nodes if node["name"] not in lost][: case["nodes"]]


def why_not(case: Case, nodes: Sequence[Node], lost: Sequence[str], oom: Iterable[Case]) -> str:
    """Return why a run of `case` is skipped, "" when it may start.

    `lost` are the names of nodes that stopped answering, `oom` the cases that ran out of memory: a
    case that differs from one of these by a batch that is no smaller would too.
    """
    for other in oom:
        if _family(case) == _family(other) and case["bsz"] >= other["bsz"]:
            return f"batch {other['bsz']} ran out of memory"
    there = len(members(case, nodes, lost))
    if there < case["nodes"]:
        return f"{', '.join(lost)} lost: {case['nodes']} nodes are wanted, {there} are left"
    return ""


def remark(case: Case, nodes: Sequence[Node], lost: Sequence[str]) -> str:
    """Return a note for the record of a run that goes on other nodes than the inventory's first, else ""."""
    now = [node["name"] for node in members(case, nodes, lost)]
    if now == [node["name"] for node in members(case, nodes)]:
        return ""
    return f"ran on {', '.join(now)}: {', '.join(lost)} lost"


def _family(case: Case) -> list[Any]:
    return [case.get(key) for key in IDENTITY if key != "bsz"]
