# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A tree of logs -> a campaign, and what the terminal shows of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.scalebook.contracts import import_fix, message
from ansible.module_utils.scalebook.pages.catalogue import in_words
from ansible.module_utils.scalebook.pages.wording import ENGLISH, Wording
from ansible.module_utils.scalebook.read.import_dlperf import TreeError, import_tree
from ansible.module_utils.scalebook.text import clean
from ansible.module_utils.scalebook.workload import Workload, workloads_of


def summary(result: Mapping[str, Any], logs: str, records_changed: bool, wording: Wording = ENGLISH) -> str:
    """Return what the terminal shows of an import."""
    counts, _ = result["counts"], wording
    head = _("terminal.valid-logs", count=counts.get("ok", 0), of=sum(counts.values()), logs=logs)
    lines = []
    for each in result["refused"]:
        reason = _.tell(each["reason"])
        lines.append(reason if reason.startswith(each["source"]) else _.about(each["source"], reason))
    fix = import_fix([each["reason"] for each in result["refused"]])
    lines += [_.tell(fix)] if fix else []
    heads = [head] if records_changed else [head, _("terminal.unwritten")]
    return "\n".join([_.join(heads, "list"), *map(clean, lines)])


def import_logs(params: Mapping[str, Any], write: bool) -> dict[str, Any]:
    """Write the records of the logs; module log_import describes its options and result."""
    wording = Wording(params["report_language"])
    try:
        result = import_tree(
            params["logs"],
            params["out"],
            params["name"],
            Workload.from_data(params["workload"]),
            params["overrides"],
            params["checksums"],
            write=write,
            others=workloads_of(params["workloads"]),
        )
    except TreeError as error:
        if not error.example:
            raise
        example = wording.tell(
            message("import.unread", path=error.example["path"], why=error.example["reason"])
        )
        raise ValueError(f"{error}; {example}") from None
    display = summary(result, params["logs"], write, wording)
    return {**in_words(result), "display": display, "out": params["out"]}
