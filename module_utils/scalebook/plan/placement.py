# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Chooses the nodes of a run, and the runs to skip, while a campaign goes on.

A case runs on the first nodes of the inventory that are not lost, as many as it needs, in inventory
order: never on fewer.  A record of a run on other nodes than the first says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ansible.module_utils.scalebook.contracts import IDENTITY, Case, Node


def members(case: Case, nodes: Sequence[Node], lost_nodes: Sequence[str] = ()) -> list[Node]:
    """Return the nodes that `case` runs on, in task_index order; too few when the others are lost."""
    return [node for node in nodes if node["name"] not in lost_nodes][: case["nodes"]]


def why_not(case: Case, nodes: Sequence[Node], lost_nodes: Sequence[str], oom: Iterable[Case]) -> str:
    """Return why a run of `case` is skipped, "" when it may start.

    `lost_nodes` are the names of nodes that stopped answering, `oom` the cases that ran out of memory: a
    case that differs from one of these only by a batch that is not smaller would run out of memory too.
    """
    for other in oom:
        if _family(case) == _family(other) and case["bsz"] >= other["bsz"]:
            return f"batch {other['bsz']} ran out of memory"
    available = len(members(case, nodes, lost_nodes))
    if available < case["nodes"]:
        return f"{', '.join(lost_nodes)} lost: {case['nodes']} nodes are needed, {available} are left"
    return ""


def remark(case: Case, nodes: Sequence[Node], lost_nodes: Sequence[str]) -> str:
    """Return a note for the record of a run on other nodes than the inventory's first, else ""."""
    now = [node["name"] for node in members(case, nodes, lost_nodes)]
    if now == [node["name"] for node in members(case, nodes)]:
        return ""
    return f"ran on {', '.join(now)}: {', '.join(lost_nodes)} lost"


def _family(case: Case) -> list[object]:
    return [case.get(key) for key in IDENTITY if key != "bsz"]
