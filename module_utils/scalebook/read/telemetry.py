# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A node's readings of telemetry -> what they say of exactly the window.

Of a counter the difference between the readings at the two ends of the window counts, so nothing between
them is lost. A gauge is averaged over time. A sample, which is the interval between two readings, belongs to
the window only if all of it does. What is not there has a reason and no number.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ansible.module_utils.scalebook.contracts import (
    Message,
    MessageError,
    NodeTelemetry,
    Quantity,
    Timeline,
    as_message,
    message,
    why_of,
)
from ansible.module_utils.scalebook.files import NotRegularError, open_regular, sha256_of
from ansible.module_utils.scalebook.read import timeline
from ansible.module_utils.scalebook.unpack import TooLargeError, UnpackError, unpacked

SCHEMA = 1
PUT_OFF = "-"
"""The cell of what the sampler did not read in this reading because that takes long."""

OWN_STEPS, FIRST_NODE = "own-steps", "first-node"
"""What places the window of a node: the steps in its log, or those of the first node by the time of day."""

LATE, LATE_SHARE = 0.01, 0.01
"""Seconds, or part of the window, by which a reading may follow the step that asked for it."""

DIGITS = 6
"""Decimals of what is recorded: readings have whole microseconds, and floats add noise behind them."""

IDLE = 10.0
"""GPU utilisation, in per cent, below which a GPU is idle: NVML averages it over up to a second, so that some
kernel of the driver or of another program may lie in it."""

MOST = 1 << 28
"""Bytes of a file, unpacked, that are read at most: far beyond a day of readings."""
MOST_CELLS = 1_500_000
"""Cells of a file that may be there whatever its size, of which each takes 40 bytes of memory; real ones have
less than one for each byte that they are packed to."""


Window = tuple[float, float]
"""When the first and the last step of the window were logged, in seconds of some clock."""


class TelemetryError(MessageError):
    """A file of readings that cannot be used; `message` says why."""


@dataclass
class Readings:
    """The content of a file: when each reading was taken, its mark, and its values by column."""

    interval: float
    offset: float
    kinds: dict[str, tuple[str, str]]
    about: dict[str, Any]
    absent: dict[str, Message]
    at: list[float] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)
    values: dict[str, list[float | None]] = field(default_factory=dict)
    put_off: dict[str, set[int]] = field(default_factory=dict)
    """By column, the readings in which the sampler did not read it because that takes long."""


def parse(text: str) -> Readings:
    """Return the readings in the text of a file; an unfinished last line is dropped.

    Raises TelemetryError for what a sampler has not written.
    """
    lines = text.split("\n")[:-1]
    try:
        head = json.loads(lines[0].removeprefix("# "))
        if head["schema"] != SCHEMA:
            raise TelemetryError("readings.schema", schema=str(head["schema"]), ours=SCHEMA)
        readings = Readings(
            interval=float(head["interval"]),
            offset=float(head["wall"]) - float(head["monotonic"]),
            kinds={name: (kind, unit) for name, kind, unit in head["columns"]},
            about=dict(head["about"]),
            absent={},
        )
        names = lines[1].split(",")
    except (LookupError, TypeError, ValueError, RecursionError) as exc:
        raise exc if isinstance(exc, TelemetryError) else TelemetryError("readings.no-head") from None
    if names != ["at", "mark", *readings.kinds]:
        raise TelemetryError("readings.other-columns")
    readings.values = {name: [] for name in readings.kinds}
    for line in lines[2:]:
        if line.startswith("# "):
            _take_tail(readings, line)
        else:
            _take_line(readings, line.split(","))
    return readings


def _take_tail(readings: Readings, line: str) -> None:
    try:
        tail = json.loads(line.removeprefix("# "))
        readings.absent.update({name: as_message(why) for name, why in tail["absent"].items()})
        readings.about.update(tail["about"])
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
        raise TelemetryError("readings.odd-end") from None


def _take_line(readings: Readings, cells: Sequence[str]) -> None:
    if len(cells) != len(readings.kinds) + 2:
        raise TelemetryError("readings.other-count", count=len(cells), expected=len(readings.kinds) + 2)
    try:
        moment = float(cells[0])
        values = [float(cell) if cell not in ("", PUT_OFF) else None for cell in cells[2:]]
    except ValueError:
        raise TelemetryError("readings.no-number") from None
    if not all(value is None or math.isfinite(value) for value in (moment, *values)):
        raise TelemetryError("readings.not-finite")
    if readings.at and moment < readings.at[-1]:
        raise TelemetryError("readings.back")
    for name, cell in zip(readings.kinds, cells[2:], strict=True):
        if cell == PUT_OFF:
            readings.put_off.setdefault(name, set()).add(len(readings.at))
    readings.at.append(moment)
    readings.marks.append(cells[1])
    for column, value in zip(readings.values.values(), values, strict=True):
        column.append(value)


def ends(readings: Readings, begin: float, end: float) -> tuple[int, int] | None:
    """Return the first and last reading of the window from `begin` to `end`, None with fewer than two.

    The readings that the window's steps asked for are its ends if they came in time, else the first and the
    last that lie in it.
    """
    late = max(LATE, LATE_SHARE * (end - begin))
    inside = [index for index, moment in enumerate(readings.at) if begin <= moment <= end]
    columns = [
        index
        for index, (moment, mark) in enumerate(zip(readings.at, readings.marks, strict=True))
        if mark == "last" and 0 <= moment - end <= late
    ]
    chosen = [*inside, *columns[:1]]
    return (chosen[0], max(chosen)) if len(chosen) > 1 else None


def quantity(readings: Readings, name: str, first: int, last: int) -> Quantity:
    """Return what a column says between two readings, or raise TelemetryError where it says nothing."""
    kind, unit = readings.kinds[name]
    column = readings.values[name]
    there, samples = _samples(readings, name, first, last)
    if not samples:
        raise TelemetryError("absent.no-sample")
    spans = [readings.at[after] - readings.at[before] for before, after in samples]
    if min(spans) <= 0:
        raise TelemetryError("absent.same-time")
    seconds = math.fsum(spans)
    summed: Quantity
    if kind == "counter":
        steps = [_value(column, after) - _value(column, before) for before, after in samples]
        if min(steps) < 0:
            raise TelemetryError("absent.backwards")
        values = [step / span for step, span in zip(steps, spans, strict=True)]
        total = _value(column, there[-1]) - _value(column, there[0])
        summed = {"unit": f"{unit}/s", "total": round(total, DIGITS), "mean": round(total / seconds, DIGITS)}
    else:
        values = [_value(column, after) for _, after in samples]
        weighed = math.fsum(value * span for value, span in zip(values, spans, strict=True))
        summed = {"unit": unit, "mean": round(weighed / seconds, DIGITS)}
    return {
        **summed,
        "min": round(min(values), DIGITS),
        "max": round(max(values), DIGITS),
        "p50": round(weighted_quantile(values, spans, 0.50), DIGITS),
        "p95": round(weighted_quantile(values, spans, 0.95), DIGITS),
        "seconds": round(seconds, DIGITS),
        "samples": len(values),
    }


def _samples(readings: Readings, name: str, first: int, last: int) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the readings from `first` to `last` that have a value, and the two ends of each sample."""
    kind, _ = readings.kinds[name]
    column = readings.values[name]
    there = [index for index in range(first, last + 1) if column[index] is not None]
    if kind == "counter":
        return there, list(zip(there, there[1:], strict=False))
    # A sample begins with the reading before it, whether that has a value or not, unless it was put off.
    put_off = readings.put_off.get(name, set())
    samples = []
    for index in there:
        before = index - 1
        while before in put_off:
            before -= 1
        if before >= first:
            samples.append((before, index))
    return there, samples


def _value(column: Sequence[float | None], index: int) -> float:
    value = column[index]
    assert value is not None  # only readings with a value are asked for
    return value


def weighted_quantile(values: Sequence[float], weights: Sequence[float], share: float) -> float:
    """Return the smallest value that, with those below it, has at least `share` of the weight."""
    ordered = sorted(zip(values, weights, strict=True))
    weight_below = share * math.fsum(weights)
    reached = 0.0
    for value, weight in ordered:
        reached += weight
        # The sum of floats may fall short of the whole by its last digit.
        if reached >= weight_below * (1 - 1e-12):
            return value
    return ordered[-1][0]


def summary(readings: Readings, begin: float, end: float) -> NodeTelemetry:
    """Return what the readings say of the window from `begin` to `end`, on the node's monotonic clock."""
    part: NodeTelemetry = {
        "interval": readings.interval,
        "about": readings.about,
        "quantities": {},
        "cores": [],
        "absent": dict(readings.absent),
    }
    bounds = ends(readings, begin, end) if begin < end else None
    if bounds is None:
        return {**part, "reason": message("run.no-readings", seconds=end - begin)}
    first, last = bounds
    part["seconds"] = round(readings.at[last] - readings.at[first], DIGITS)
    part["covered"] = round(min(1.0, part["seconds"] / (end - begin)), DIGITS)
    for name in readings.kinds:
        is_core = name.startswith("core:")
        try:
            value = quantity(readings, name, first, last)
        except TelemetryError as error:
            if is_core:
                part["cores"].append(None)
                continue
            # Some column of a source without an answer, or all of them: the sampler knows why.
            group, _, rest = name.partition(":")
            groups_absent = {group, f"{group}:{rest.partition(':')[0]}"} & part["absent"].keys()
            if not groups_absent:
                part["absent"][name] = error.message
        else:
            if is_core:
                part["cores"].append(value["mean"])
            else:
                part["quantities"][name] = value
    idle = {
        name.split(":")[1]: share
        for name in readings.kinds
        if name.startswith("gpu:") and name.endswith(":utilization")
        for share in [idle_share(readings, name, first, last)]
        if share is not None
    }
    if idle:
        part["gpu_idle"] = idle
    return part


def idle_share(readings: Readings, name: str, first: int, last: int) -> float | None:
    """Return the part of the time between two readings in which a column is below IDLE, None if unknown."""
    _, samples = _samples(readings, name, first, last)
    spans = [(readings.at[after] - readings.at[before], after) for before, after in samples]
    whole = math.fsum(span for span, _ in spans)
    if whole <= 0:
        return None
    column = readings.values[name]
    return round(math.fsum(span for span, index in spans if _value(column, index) < IDLE) / whole, DIGITS)


def course(readings: Readings, begin: float, end: float) -> Timeline | None:
    """Return the course of a node around its window from `begin` to `end`."""
    samples: dict[str, list[timeline.Sample]] = {}
    for name, (kind, _) in readings.kinds.items():
        column = readings.values[name]
        for before, after in _samples(readings, name, 0, len(readings.at) - 1)[1]:
            span = readings.at[after] - readings.at[before]
            value = _value(column, after)
            if kind == "counter":
                value -= _value(column, before)
            # A counter that went backwards, or two readings at once, say nothing of this moment.
            if span > 0 and not (kind == "counter" and value < 0):
                sample = value / span if kind == "counter" else value
                samples.setdefault(name, []).append((readings.at[before], readings.at[after], sample))
    return timeline.decimate(samples, begin, end, readings.interval)


# The file of a node


def read_file(path: str | os.PathLike[str]) -> Readings:
    """Return the readings in a file, compressed or not.

    Raises OSError when it cannot be read and TelemetryError when it is not a file of readings.
    """
    try:
        with open_regular(path) as file:
            data = file.read(MOST)
        if Path(path).suffix == ".xz":
            packed, data = len(data), unpacked(data, MOST)
            if data.count(b",") + data.count(b"\n") > MOST_CELLS + packed:
                raise TelemetryError("readings.too-many", most=MOST_CELLS + packed)
        return parse(data.decode("ascii"))
    except TooLargeError as exc:
        raise TelemetryError("readings.unreadable", why=str(exc)) from None
    except (UnpackError, UnicodeDecodeError):
        raise TelemetryError("readings.other-file") from None
    except NotRegularError as exc:
        raise TelemetryError("text", text=str(exc)) from None


def of_run(
    run_dir: str | os.PathLike[str],
    parts: Sequence[tuple[str, Mapping[str, Any] | None, Window | None]],
) -> list[NodeTelemetry]:
    """Return the telemetry of each node of a run; [] where nothing was to be measured.

    `parts` are (name of the node, closing record, window) in task_index order; the window is by the
    node's monotonic clock, None for a node whose log has no steps. Such a node takes the window of the
    first node, placed by the time of day.
    """
    if not any((closing or {}).get("telemetry") for _, closing, _ in parts):
        return []
    nodes = []
    for name, closing, window in parts:
        sampler = (closing or {}).get("telemetry")
        paths = (Path(run_dir) / file for file in names_of(name))
        path = next((path for path in paths if path.exists()), None)
        nodes.append(_Node(name, sampler if isinstance(sampler, Mapping) else {}, path, window))
    return _of_nodes(nodes, None)


def of_log(
    files: Mapping[str, str],
    closing: Mapping[str, Any] | None,
    window: Window | None,
    moment: Window | None,
) -> list[NodeTelemetry]:
    """Return the telemetry of the nodes in `files`, {node: path}, that lie beside an imported log.

    `closing` is the log's closing record, which names its node; `window` is by the monotonic clock of that
    node, `moment` by the time of day. Each is None where the log does not tell it.
    """
    own = (closing or {}).get("node")
    nodes = []
    for name in sorted(files, key=lambda name: (name != own, name)):
        sampler = (closing or {}).get("telemetry") if name == own else None
        sampler = sampler if isinstance(sampler, Mapping) else {}
        nodes.append(_Node(name, sampler, Path(files[name]), window if name == own else None))
    return _of_nodes(nodes, moment)


class _Node(NamedTuple):
    """A node, what its closing record says of the sampler, the file of its readings, and its window."""

    name: str
    said: Mapping[str, Any]
    path: Path | None
    window: Window | None


def _of_nodes(nodes: Sequence[_Node], moment: Window | None) -> list[NodeTelemetry]:
    """Return the telemetry of each node; `moment` is the window by the time of day, if known before."""
    parts: list[NodeTelemetry] = []
    for name, sampler, path, window in nodes:
        why = sampler.get("reason")
        part: NodeTelemetry = {"node": name, "file": None, "sha256": None, "reason": why and as_message(why)}
        part["sampler"] = {
            key: sampler[key] for key in ("cpu_seconds", "memory_bytes", "readings") if key in sampler
        }
        parts.append(part)
        if path is None:
            part["reason"] = part["reason"] or message("reason.missing", file=names_of(name)[0])
            continue
        part["file"] = path.name
        try:
            part["sha256"] = sha256_of(path)
            readings = read_file(path)
        except (OSError, ValueError) as exc:
            why = exc.strerror if isinstance(exc, OSError) else why_of(exc)
            part["reason"] = message("run.unread-readings", file=path.name, why=why)
            continue
        if window is not None:
            part["placed_by"] = OWN_STEPS
            moment = moment or (window[0] + readings.offset, window[1] + readings.offset)
        elif moment is not None:
            part["placed_by"] = FIRST_NODE
            window = (moment[0] - readings.offset, moment[1] - readings.offset)
        else:
            part["reason"] = part["reason"] or message("run.no-moment")
            continue
        summarised = summary(readings, *window)
        reason = part["reason"] or summarised.get("reason")
        part.update(summarised)
        part["reason"] = reason
        # One node's is enough for a chart, and 125 of them would double the record.
        if summarised.get("quantities") and not any("timeline" in other for other in parts):
            line = course(readings, *window)
            part.update({"timeline": line} if line else {})
    return parts


def names_of(node: str) -> list[str]:
    """Return the names that the file of a node's readings may have: compressed, or not."""
    return [f"{node}.telemetry.csv.xz", f"{node}.telemetry.csv"]
