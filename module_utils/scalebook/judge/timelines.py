# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The course of one run of each case around its window.

The run is the one whose rate is nearest to the median of its case, the node is its first.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from ansible.module_utils.scalebook.contracts import CaseTimeline, NodeTelemetry, Record, Row, Run
from ansible.module_utils.scalebook.judge import utilisation
from ansible.module_utils.scalebook.quantities import TABLE

SHOWN = {quantity.name for quantity in TABLE}
"""Quantities that have a course."""


def of_record(record: Record) -> CaseTimeline | None:
    """Return the course of the first node that has one, None without one.

    Raises utilisation.TelemetryError for telemetry that no reader of logs wrote.
    """
    for node in record.get("telemetry") or []:
        if node.get("timeline"):
            try:
                return _of_node(record, node)
            except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as exc:
                raise utilisation.TelemetryError("run.odd-timeline", why=str(exc)) from exc
    return None


def _of_node(record: Record, node: NodeTelemetry) -> CaseTimeline:
    line = node["timeline"]
    columns: Mapping[str, Sequence[float | None]] = line["columns"]
    count = max(map(len, columns.values()))
    lines: dict[str, list[float | None]] = {}
    gpus, read = 0, utilisation.reader(node.get("about") or {})
    for index in range(count):
        there = ((name, values[index]) for name, values in columns.items())
        means = {name: float(value) for name, value in there if value is not None}
        readings: dict[str, list[float]] = {}
        for name, value in read(means):
            if name in SHOWN:
                readings.setdefault(name, []).append(value)
        gpus = max(gpus, len(readings.get("gpu_memory", ())), len(readings.get("gpu", ())))
        for name, values in readings.items():
            mean = values[0] if len(values) == 1 else statistics.fmean(values)
            if not math.isfinite(mean):
                raise ValueError(f"{name} is {mean}")
            lines.setdefault(name, [None] * count)[index] = float(f"{mean:.4g}")
    begin, step, window = (float(line[key]) for key in ("begin", "step", "window"))
    if not (step > 0 and window > 0 and math.isfinite(begin) and math.isfinite(step * count)):
        raise ValueError("it has no length")
    return {
        "case": record["case"]["name"],
        "label": record["case"]["label"],
        "repeat": record["repeat"],
        "node": str(node.get("node")),
        "gpus": gpus,
        "begin": begin,
        "step": step,
        "window": window,
        "lines": lines,
    }


def choose(rows: Iterable[Row], runs: Sequence[Run]) -> list[CaseTimeline]:
    """Return the course of one run of each case that has one."""
    chosen = []
    by_case = utilisation.valid_by_case(runs)
    for row in rows:
        candidates = [
            (abs((run["rate"] or 0.0) - (row["median"] or 0.0)), run["repeat"], timeline)
            for run in by_case.get(row["case"], [])
            for timeline in [run.get("timeline")]
            if timeline
        ]
        if candidates:
            chosen.append(min(candidates, key=lambda each: each[:2])[2])
    return chosen
