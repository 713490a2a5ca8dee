# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The searches for the largest batch (`bsz=max`): a row for each, and the runs that ended one."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.scalebook.contracts import (
    GROUP_FIELDS,
    BatchSearch,
    LargestBatch,
    Message,
    Plan,
    as_message,
    message,
)
from ansible.module_utils.scalebook.judge import headings, weak_scaling
from ansible.module_utils.scalebook.workload import Workloads

TITLE = tuple(field for field in GROUP_FIELDS if field in BatchSearch.__annotations__ and field != "settings")


def tabulate(plan: Plan, workloads: Workloads) -> list[LargestBatch]:
    """Return a row for each search of the plan."""
    return [
        {
            "title": _title(search, workloads),
            "points": search["points"],
            "largest": search["largest"],
            "failed": search["failed"],
            "failed_at": search["failed_at"],
            "runs": len(search["trials"]),
            "reason": _why(search),
        }
        for search in plan.get("searches") or ()
    ]


def uncounted(plan: Plan) -> list[dict[str, Any]]:
    """Return the runs that ended a search without an answer; being out of memory is one."""
    return [
        {
            "case": trial["case"],
            "label": trial["label"],
            "repeat": 1,
            "status": trial["status"],
            "reason": message("skipped.search", why=as_message(trial["reason"] or "")),
            "source": None,
            "last_lines": [],
        }
        for search in plan.get("searches") or ()
        for trial in search["trials"]
        if trial["status"] not in ("ok", "oom")
    ]


def _why(search: BatchSearch) -> Message | None:
    """Return why a search has no answer, or may have a larger one."""
    if search["reason"]:
        return as_message(search["reason"])
    return message("skipped.search-goes-on") if search["next"] else None


def _title(search: BatchSearch, workloads: Workloads) -> Message:
    group = {**search, "compiler": weak_scaling.compiler_of(search["workload"], workloads)}
    return headings.named(headings.words_of(group, TITLE))
