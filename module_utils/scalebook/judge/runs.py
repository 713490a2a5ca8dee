# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""One result record -> one short run, what the report needs of it.

A record has every step of every node; a report of thousands of records cannot keep them all.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, cast

from ansible.module_utils.scalebook import shapes, stats
from ansible.module_utils.scalebook.contracts import (
    RECORD_SCHEMA,
    REQUIRED_FIELDS,
    SCHEMAS_READ,
    STATUSES,
    Case,
    Record,
    Row,
    Run,
    Statement,
    as_message,
    message,
    why_of,
)
from ansible.module_utils.scalebook.judge import evidence, gpu_states, timelines, utilisation
from ansible.module_utils.scalebook.throughput import first_node, measure

UNMEASURED: Run = {
    "rate": None,
    "seconds": None,
    "time_source": None,
    "second": None,
    "differs": None,
    "drift": None,
    "steady": None,
    "steps": [],
}
"""What a run that does not count has measured."""


class RecordError(ValueError):
    """A record that lacks what the report needs."""


def check_case(case: Any) -> dict[str, Any]:
    """Return `case` if it has every field that the report needs, else raise RecordError."""
    if not isinstance(case, Mapping):
        raise RecordError("has no case")
    shapes.check(Case, {**case}, "case", RecordError)
    lacking = [field for field in REQUIRED_FIELDS if field not in case]
    if lacking:
        raise RecordError(f"its case has no {lacking[0]}")
    if case["devices"] < 1 or case["devices"] != case["nodes"] * case["gpus"]:
        raise RecordError(f"case.devices is {case['devices']} for {case['label']}")
    if case["label"] != f"{case['nodes']}n{case['gpus']}g":
        raise RecordError(
            f"case.label is {case['label']} for {case['nodes']} nodes and {case['gpus']} devices each"
        )
    wrong = [field for field in ("bsz", "accumulation", "window") if case[field] < 1]
    if wrong or case["warmup"] < 0:
        field = [*wrong, "warmup"][0]
        raise RecordError(f"case.{field} is {case[field]}")
    return dict(case)


def check_record(record: Any) -> Record:
    """Return `record` if it is a result record of today's schema, else raise RecordError."""
    if not isinstance(record, Mapping):
        raise RecordError("is not a record")
    if record.get("schema") != RECORD_SCHEMA:
        raise RecordError(f"has schema {record.get('schema')!r}, {SCHEMAS_READ}")
    if record.get("status") not in STATUSES:
        raise RecordError(f"has status {record.get('status')!r}")
    repeat = record.get("repeat")
    if not isinstance(repeat, int) or isinstance(repeat, bool):
        raise RecordError(f"has repeat {repeat!r}")
    check_case(record.get("case"))
    # The readings of telemetry are checked where they are used: without them a rate stands as it is.
    judged = {key: value for key, value in record.items() if key != "telemetry"}
    shapes.check(Record, judged, error=RecordError)
    return cast(Record, record)


def digest(record: Record, reading: str = "stamps") -> Run:
    """Return the run of a checked `record`.

    `reading` is one of throughput.READINGS.
    Only a run of status ok has a `rate` (samples/s, all devices).  One of status ok that cannot be
    measured becomes `refused`: it must neither count nor disappear.  `steps` are its step times in the
    window, in seconds.
    """
    run = _unmeasured(record)
    if run["status"] != "ok":
        run["reason"] = run["reason"] or message("run.not-recorded")
        return run
    try:
        run = cast(Run, {**run, **_measured(record, reading)})
    except (ValueError, KeyError, TypeError) as exc:
        why = message("run.unmeasured", why=why_of(exc))
        return cast(Run, {**run, "status": "refused", "reason": why})
    try:
        usable, notes = utilisation.usable(record)
        run["notes"] += notes
        run["utilisation"] = utilisation.of_record(usable)
        run["gpus"] = gpu_states.of_record(usable)
        run["timeline"] = timelines.of_record(record)
    except utilisation.TelemetryError as exc:  # its rate stands without
        run["notes"].append(exc.message)
    return run


def _log(record: Record) -> str:
    """Return the path of the log of a run's first node, below its campaign or the logs that were imported."""
    folder, nodes = f"runs/{record['case']['name']}/{record['repeat']}", record.get("nodes")
    return record.get("source") or (f"{folder}/{nodes[0]['log']}" if nodes else folder)


def _unmeasured(record: Record) -> Run:
    """Return what a record says of its run besides what was measured."""
    return {
        "case": record["case"]["name"],
        "label": record["case"]["label"],
        "repeat": record["repeat"],
        "unit": str(record.get("unit") or "samples"),
        "status": record["status"],
        "reason": record.get("reason"),
        "notes": list(record.get("notes") or []),
        **UNMEASURED,
        "source": record.get("source"),
        "log": _log(record),
        "last_lines": [str(line) for line in record.get("last_lines") or []],
        "started": (record.get("job") or {}).get("started"),
        "self_reported": {
            str(name): str(value) for name, value in dict(record.get("self_reported") or {}).items()
        },
        "hosts": {node: host for node, host in _reported(record, "host").items() if host != "localhost"},
        "boots": _reported(record, "boot"),
        "hardware": list(record.get("hardware") or []),
        "command": str(record.get("command") or ""),
        "utilisation": {},
        "gpus": [],
        "timeline": None,
        **({"nccl": record["nccl"]} if "nccl" in record else {}),
        **({"binding": "numa"} if _bound(record) else {}),
    }


def _bound(record: Record) -> bool:
    """Return whether ranks were bound on a node."""
    bindings = (end.get("binding") for _, end in _ends(record))
    return any(isinstance(each, Mapping) and each.get("mode") == "numa" for each in bindings)


def binding_of(row: Row) -> str:
    """Return how the runs of a row that count were bound; earlier campaigns bound none."""
    measured = [run.get("binding") or "none" for run in row["runs"] if run.get("rate") is not None]
    return ", ".join(dict.fromkeys(measured)) or "none"


def _measured(record: Record, reading: str) -> dict[str, Any]:
    """Return the rate of a record and what goes with it; raise ValueError, KeyError or TypeError."""
    evidence.check_stamps(record)
    measured = measure(record, reading)
    rate = measured["rate"]
    if not isinstance(rate, (int, float)) or not math.isfinite(rate) or rate <= 0:
        raise evidence.EvidenceError("run.odd-rate", rate=str(rate))
    numbers = {key: measured.get(key) for key in ("seconds", "time_source", "second", "differs")}
    steps = step_seconds(record, measured.get("time_source"))
    if steps:
        numbers["drift"], numbers["steady"] = stats.drift(steps), stats.steadiness(steps)
    # What overflows on the way would not be JSON any more.
    json.dumps(numbers, allow_nan=False)
    return {**numbers, "rate": float(rate), "steps": steps}


def log_of(record: Record) -> str | None:
    """Return the sha256 of the log of the first node of a checked `record`, None if it is not known."""
    first = first_node(record)
    return first.get("sha256") if first else None


def refused(run: Run, reason: Statement) -> Run:
    """Return a run that counts as one that does not, for `reason`."""
    return {**run, **UNMEASURED, "status": "refused", "reason": as_message(reason)}


def _reported(record: Record, key: str) -> dict[str, str]:
    """Return node -> what its node script reported as `key`, for nodes whose log has it."""
    values = [(node, end.get(key)) for node, end in _ends(record)]
    return {node: value for node, value in values if isinstance(value, str) and value}


def _ends(record: Record) -> list[tuple[str, Mapping[str, Any]]]:
    """Return (node, what its node script reported at the end) of each node."""
    return [(str(node.get("node")), node.get("exit") or {}) for node in record.get("nodes") or []]


def step_seconds(record: Record, time_source: Any) -> list[float]:
    """Return the seconds of each step of the window on the first node.

    They come from the time source of the rate (`times`, `received`); where that is the printed rates,
    from any stamps there are.  Empty when there are none, or when a step of the window has no stamp.
    """
    node = first_node(record)
    if node is None:
        return []
    stamps = node.get("received") if time_source == "received" else None
    stamps = stamps or node.get("times") or node.get("received")
    if not stamps or len(stamps) != len(node["steps"]):
        return []
    stamp_of = dict(zip(node["steps"], stamps, strict=True))
    case = record["case"]
    window = range(case["warmup"], case["warmup"] + case["window"] + 1)
    if any(stamp_of.get(step) is None for step in window):
        return []
    return [stamp_of[step] - stamp_of[step - 1] for step in window[1:]]
