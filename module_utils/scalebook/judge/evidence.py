# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A record is checked before it counts: its case and machines against the plan, its stamps, and its logs.

What this finds are accidents and careless changes.  Who changes a record, its plan and its checksums alike is
found by the logs (`verify.yml`), and by a signature.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import lt
from typing import Any

from ansible.module_utils.scalebook.contracts import (
    CASE,
    IDENTITY,
    Case,
    FileSum,
    MachineIdentity,
    Message,
    MessageError,
    NodeLog,
    Record,
    case_name,
    message,
    together,
)
from ansible.module_utils.scalebook.machines import difference


class EvidenceError(MessageError):
    """A record that contradicts itself; `message` has the node, the field and the value."""


def differing_case(case: Case, planned: Case | None) -> Message | None:
    """Return how the case of a record differs from that of the plan, None where it does not.

    A case that the plan does not have must be the one that its name stands for.
    """
    ours: Mapping[str, Any] = case
    if planned is None:
        if case_name(ours) == case["name"]:
            return None
        fields = [field for field in IDENTITY if field in ours]
        return message("run.other-name", name=case["name"], fields=fields)
    theirs: Mapping[str, Any] = planned
    names = [field.name for field in CASE if ours.get(field.name) != theirs.get(field.name)]
    differing = [
        message("run.other-value", field=name, value=str(ours.get(name)), planned=str(theirs.get(name)))
        for name in names
    ]
    return together(*differing) if differing else None


def differing_machines(record: Record, machines_known: Mapping[str, MachineIdentity]) -> Message | None:
    """Return which machine of a record is not that of the campaign, None where none is.

    `machines_known` are those of its plan and of the records before.  A node that one of both does not
    describe is not compared: records of earlier versions name no machines.
    """
    for node, identity in (record.get("machines") or {}).items():
        if machines_known.get(node) and (what := difference(machines_known[node], identity)):
            return message("run.other-machine", node=node, why=message(f"machine.{what}"))
    return None


def check_stamps(record: Record) -> None:
    """Raise EvidenceError unless steps and stamps are such as the reader of logs takes from a log.

    There is one stamp for each step, and none is before the one before it.  The last step of a run is the
    last one of its window; a log that was imported may go on.
    """
    case = record["case"]
    last = case["warmup"] + case["window"]
    for node in record.get("nodes") or []:
        lacking = [key for key in ("node", "task_index", "steps") if key not in node]
        if lacking:
            raise EvidenceError("run.no-key", key=lacking[0])
        steps = node["steps"]
        if not all(map(lt, steps, steps[1:])):
            raise EvidenceError("run.steps-back", node=node["node"])
        if steps and "source" not in record and steps[-1] > last:
            raise EvidenceError("run.other-last-step", node=node["node"], step=steps[-1], last=last)
        _check_lists(node, steps)


def _check_lists(node: NodeLog, steps: Sequence[int]) -> None:
    values: Mapping[str, Any] = node
    for key in ("times", "received", "rates"):
        stamps = values.get(key)
        if stamps is None:
            continue
        if len(stamps) != len(steps):
            raise EvidenceError(
                "run.other-count",
                node=node["node"],
                count=len(stamps),
                key=message(f"source.{key}"),
                steps=len(steps),
            )
        if key == "rates":
            if any(rate is not None and rate < 0 for rate in stamps):
                raise EvidenceError("run.negative-rate", node=node["node"])
        elif stamps != sorted(stamps):
            step = next(steps[index] for index in range(1, len(stamps)) if stamps[index] < stamps[index - 1])
            raise EvidenceError("run.stamps-back", node=node["node"], key=message(f"source.{key}"), step=step)


def log_notes(record: Record, folder: str, files: Mapping[str, FileSum]) -> list[Message]:
    """Return what to say where logs of a run, in `folder`, are not those that its record was made from.

    `files` are the checksums of the campaign's files.
    """
    if "source" in record:
        return []  # the logs of an import stay where they are
    missing, changed = [], []
    for node in record.get("nodes") or []:
        name = node.get("log")
        if not name or node.get("bytes") is None:
            continue
        now = files.get(f"{folder}/{name}")
        if now is None:
            missing.append(name)
        elif (node.get("sha256") or now["sha256"], node["bytes"]) != (now["sha256"], now["bytes"]):
            changed.append(name)
    files_of = {"note.log-missing": missing, "note.log-changed": changed}
    return [message(code, files=_names(names)) for code, names in files_of.items() if names]


def _names(names: Sequence[str]) -> str | Message:
    """Return the first of some names and how many others there are."""
    return message("note.files", file=names[0], count=len(names) - 1) if names[1:] else names[0]
