# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""One result record -> what the report needs of it.

A record carries every step of every node; a report of thousands of records keeps one short run each.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from ansible.module_utils.scalebook import stats

STATUSES = ("ok", "incomplete", "failed", "hung", "oom", "refused", "skipped")

CASE_FIELDS: dict[str, type | tuple[type, ...]] = {
    "name": str,
    "label": str,
    "framework": str,
    "model": str,
    "dtype": str,
    "xla": bool,
    "bsz": int,
    "nodes": int,
    "gpus": int,
    "devices": int,
    "accumulation": int,
    "warmup": int,
    "window": int,
}

Measure = Callable[[Any], Mapping[str, Any]]


class RecordError(ValueError):
    """A result record that is not one."""


def check_case(case: Any) -> dict[str, Any]:
    """Return `case` if it has every field the report rests on, else raise RecordError."""
    if not isinstance(case, Mapping):
        raise RecordError("has no case")
    for field, kind in CASE_FIELDS.items():
        value = case.get(field)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise RecordError(f"case.{field} is {value!r}")
    if case["devices"] < 1 or case["devices"] != case["nodes"] * case["gpus"]:
        raise RecordError(f"case.devices is {case['devices']} for {case['label']}")
    return dict(case)


def check_record(record: Any) -> None:
    """Raise RecordError unless `record` is a schema 1 result record."""
    if not isinstance(record, Mapping):
        raise RecordError("is not a record")
    if record.get("schema") != 1:
        raise RecordError(f"has schema {record.get('schema')!r}, this report reads 1")
    if record.get("status") not in STATUSES:
        raise RecordError(f"has status {record.get('status')!r}")
    repeat = record.get("repeat")
    if not isinstance(repeat, int) or isinstance(repeat, bool):
        raise RecordError(f"has repeat {repeat!r}")
    check_case(record.get("case"))


def digest(record: Mapping[str, Any], measure: Measure) -> dict[str, Any]:
    """Return the run of a checked `record`.

    `measure` is throughput.measure.  Only a run of status ok has a `rate` (samples/s, all devices).
    One that says ok but cannot be measured becomes `refused`: it must neither count nor vanish.
    `steps` are its step times in the window, in seconds, for the caller to pool and drop.
    """
    run: dict[str, Any] = {
        "case": record["case"]["name"],
        "label": record["case"]["label"],
        "repeat": record["repeat"],
        "unit": str(record.get("unit") or "samples"),
        "status": record["status"],
        "reason": record.get("reason"),
        "notes": [str(note) for note in record.get("notes") or []],
        "rate": None,
        "seconds": None,
        "reading": None,
        "second": None,
        "differs": None,
        "drift": None,
        "steady": None,
        "source": record.get("source"),
        "last_lines": [str(line) for line in record.get("last_lines") or []],
        "started": (record.get("gang") or {}).get("started"),
        "figures": {str(name): str(value) for name, value in dict(record.get("figures") or {}).items()},
        "steps": [],
    }
    if run["status"] != "ok":
        run["reason"] = run["reason"] or "no reason recorded"
        return run
    try:
        measured = measure(record)
        rate = measured["rate"]
        if not isinstance(rate, (int, float)) or not math.isfinite(rate) or rate <= 0:
            raise RecordError(f"its throughput comes out as {rate}")
        figures = {key: measured.get(key) for key in ("seconds", "reading", "second", "differs")}
        steps = step_seconds(record, measured.get("reading"))
        if steps:
            figures["drift"], figures["steady"] = stats.drift(steps), stats.steadiness(steps)
        # What overflows on the way would not be JSON any more.
        json.dumps(figures, allow_nan=False)
    except (ValueError, KeyError, TypeError) as exc:
        return {**run, "status": "refused", "reason": f"cannot be measured: {exc}"}
    return {**run, **figures, "rate": float(rate), "steps": steps}


def step_seconds(record: Mapping[str, Any], reading: Any) -> list[float]:
    """Return the seconds of each step of the window on the first node.

    From the stamps the headline came from (`times`, `received`); where it came from printed rates,
    from any stamps there are.  Empty when there are none, or a step of the window has no stamp.
    """
    node = next((node for node in record["nodes"] if node.get("task_index") == 0), None)
    if node is None:
        return []
    stamps = node.get(reading) if reading in ("times", "received") else None
    stamps = stamps or node.get("times") or node.get("received")
    if not stamps or len(stamps) != len(node["steps"]):
        return []
    at = dict(zip(node["steps"], stamps, strict=True))
    case = record["case"]
    wanted = range(case["warmup"], case["warmup"] + case["window"] + 1)
    if any(at.get(step) is None for step in wanted):
        return []
    return [at[step] - at[step - 1] for step in wanted[1:]]
