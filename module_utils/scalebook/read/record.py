# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Logs of one run -> its result record, with a status and the reason for it.

The record is what is kept: steps and times as seen.  Statistics are derived when reporting.
"""

from __future__ import annotations

import math
import os
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook import throughput
from ansible.module_utils.scalebook.contracts import (
    RECORD_SCHEMA,
    Case,
    JobReport,
    Message,
    NodeLog,
    Record,
    as_message,
    because,
    message,
)
from ansible.module_utils.scalebook.files import NotRegularError, sha256_of
from ansible.module_utils.scalebook.read import agreement, nccl, sanity, self_reported, telemetry
from ansible.module_utils.scalebook.read.ranks import read_any_log
from ansible.module_utils.scalebook.read.step_log import Log
from ansible.module_utils.scalebook.read.straggler import straggler
from ansible.module_utils.scalebook.read.timestamps import SECOND
from ansible.module_utils.scalebook.read.verdict import Node, Verdict, judge_ending, last_lines
from ansible.module_utils.scalebook.workload import Workload

LONG_STEP, FEW_STEPS = 0.1, 20
"""A step that takes a tenth of a window of twenty steps or more, e.g. a checkpoint or a bad time stamp."""

UNITS = ("samples", "images", "sequences", "tokens")
"""What steps count where the catalogues have a word for it."""


def run_record(
    run_dir: str | os.PathLike[str],
    case: Case,
    repeat: int,
    workload: Workload,
    nodes: Sequence[str],
    job: JobReport | None = None,
    notes: Sequence[str | Message] = (),
) -> Record:
    """Return the record of a run whose node logs lie in `run_dir` as `<node>.log`.

    `nodes` are the node names in task_index order, `job` what became of the launcher: `{"rc", "seconds",
    "started", "ended", "stderr"}` and what ending.py reads besides, `notes` further warnings.  A log that is
    not valid makes a record that says so.
    """
    workload = workload.of_case(case)
    read = [
        _read(Path(run_dir) / f"{name}.log", name, index, f"{name}.log", case, workload)
        for index, name in enumerate(nodes)
    ]
    report: JobReport = job or {}
    verdict = judge_ending(read, report) or _content(read, case, imported=False)
    record = _record(read, case, repeat, workload, checksums=True)
    if report:
        rc = report.get("rc")
        record["job"] = {
            "rc": None if rc is None else int(rc),
            "seconds": report.get("seconds"),
            "started": report.get("started"),
            "ended": report.get("ended"),
            **({"launcher": report["launcher"]} if "launcher" in report else {}),
        }
    record = _judged(record, verdict, read)
    record["notes"] += map(as_message, notes)
    if record["status"] == "ok":
        parts = zip(read, record["nodes"], strict=True)
        windows = [(node.name, part["exit"], _window(node, part, case)) for node, part in parts]
        measured = telemetry.of_run(run_dir, windows)
        if measured:
            record["telemetry"] = measured
    connected = nccl.of_run(run_dir, nodes) if case["devices"] > 1 and case.get("device") == "gpu" else None
    if connected:
        record["nccl"] = connected
    if workload.self_reported and read[0].log:
        record["self_reported"] = self_reported.read(read[0].path, workload.self_reported.literal)
    return record


def _window(
    node: Node, part: NodeLog, case: Case, key: throughput.Stamps = "received"
) -> telemetry.Window | None:
    """Return the window by the stamps `key`; `received` are of the node's own monotonic clock."""
    ends = throughput.window_ends(part, key, case)
    stamps = getattr(node.log, key, None)
    if ends is None or not stamps:
        return None
    first = stamps[0] / SECOND
    return first + ends[0], first + ends[1]


def _moment(node: Node, part: NodeLog, case: Case) -> telemetry.Window | None:
    """Return the window by the time of day; None where a log has only times without their zone."""
    window = _window(node, part, case)
    if window is not None and node.log is not None and node.log.offset is not None:
        return window[0] + node.log.offset, window[1] + node.log.offset
    return _window(node, part, case, "times") if node.workload.log.time == "unix" else None


def skip_record(case: Case, repeat: int, workload: Workload, reason: str | Message) -> Record:
    """Return the record of a run that was planned and not made, for `reason`."""
    record = _record([], case, repeat, workload, checksums=False)
    return {**record, "status": "skipped", "reason": as_message(reason), "last_lines": []}


def log_record(
    path: str | os.PathLike[str],
    case: Case,
    repeat: int,
    workload: Workload,
    source: str,
    checksum: bool = False,
    readings: Mapping[str, str] | None = None,
) -> Record:
    """Return the record of an imported log: one log of the run's first node, nothing known but its text.

    `readings` are the files of telemetry that lie beside it, {node: path}.
    """
    workload = workload.of_case(case)
    read = [_read(Path(path), "NODE1", 0, source, case, workload)]
    if read[0].problem:
        verdict: Verdict | None = Verdict("refused", read[0].problem, [])
    else:
        verdict = _content(read, case, imported=True)
    record = _record(read, case, repeat, workload, checksums=checksum)
    record["source"] = source
    record = _judged(record, verdict, read)
    if record["status"] == "ok" and readings:
        node, part = read[0], record["nodes"][0]
        times = _window(node, part, case), _moment(node, part, case)
        record["telemetry"] = telemetry.of_log(readings, part["exit"], *times)
    return record


def _read(path: Path, name: str, task_index: int, file: str, case: Case, workload: Workload) -> Node:
    workload = sanity.rules_for(workload, case, task_index)
    log, problem = None, None
    try:
        log, workload = _read_in_forms(path, workload)
    except FileNotFoundError:
        problem = message("reason.missing", file=file)
    except NotRegularError:
        problem = message("reason.directory" if path.is_dir() else "reason.irregular", file=file)
    except OSError as exc:
        problem = message("reason.unreadable", file=file, why=exc.strerror)
    return Node(name, task_index, file, path, log, problem, workload)


def _read_in_forms(path: Path, workload: Workload) -> tuple[Log, Workload]:
    """Return what a log shows, and the workload as it reads this form of logs."""
    first = None
    for form in workload.in_forms():
        log = read_any_log(path, form)
        if log.last_step is not None:
            return log, form
        first = first or log
    return first or Log(), workload


# What the logs show


def _content(nodes: Sequence[Node], case: Case, imported: bool) -> Verdict | None:
    """Return why the logs are not valid, None when they are.

    What contradicts the case comes before what is missing: a log of another run explains itself so.
    """
    read = [(node, node.log) for node in nodes if node.log]
    for node, log in read:
        rules = node.workload.sanity
        wrong = sanity.contradictions(rules, log.found, case, node.task_index)
        if log.refusal:
            wrong.append(message("reason.implausible", why=log.refusal))
        steps = case["warmup"] + case["window"]
        if log.declared - {str(steps)} and not imported:
            wrong.append(message("reason.other-length", shown=sorted(log.declared), steps=steps))
        if wrong:
            return Verdict("refused", _of_file(node, wrong[0]), last_lines(node))
    for node, log in read:
        if node.workload.log.first_node and node.task_index:
            continue
        lacking = _lacking(log, case)
        if lacking:
            return Verdict("incomplete", _of_file(node, lacking), last_lines(node))
    for node, log in read:
        required = [rule for rule in node.workload.sanity if rule.program or not imported]
        absent = sanity.missing(required, log.found, log.excused)
        if absent:
            foreign = message("reason.another-program") if imported else None
            return Verdict("refused", because(_of_file(node, absent[0]), foreign), last_lines(node))
        flat = sanity.flat_loss(log.losses, node.workload.log.falling_loss)
        if flat:
            return Verdict("refused", _of_file(node, flat), last_lines(node))
    if read:
        differing = sanity.differences(
            read[0][0].workload.sanity, [(node.file, log.found) for node, log in read]
        )
        if differing:
            return Verdict("refused", differing[0], last_lines(read[0][0]))
    return None


def _of_file(node: Node, problem: Message) -> Message:
    """Return a message about the log of a node, with its name."""
    return message(problem["code"], file=node.file, **problem["values"])


def _lacking(log: Log, case: Case) -> Message | None:
    begin, end = case["warmup"], case["warmup"] + case["window"]
    if log.last_step is None:
        return message("reason.no-step" if log.size else "reason.empty", step=end)
    if log.last_step < end:
        return message("reason.stops", last=log.last_step, step=end)
    needed = [end] if log.times is None and log.received is None else [begin, end]
    for step in needed:
        if step not in log.steps:
            return message("reason.no-begin" if step == begin else "reason.no-end", step=step)
    return None


# The record


def _record(nodes: Sequence[Node], case: Case, repeat: int, workload: Workload, checksums: bool) -> Record:
    record: Record = {
        "schema": RECORD_SCHEMA,
        "case": {**case},
        "repeat": repeat,
        "status": "ok",
        "reason": None,
        "notes": [],
        "unit": workload.unit,
        "nodes": [_part(node, checksums) for node in nodes],
        "job": None,
    }
    if any(part["rates"] for part in record["nodes"]):
        record["rate_scope"] = nodes[0].workload.log.rate_scope
    if any(node.log.micro_steps for node in nodes if node.log):
        record["micro_steps"] = True
    first = nodes[0] if nodes else None
    if first and first.log and not record["nodes"][0]["rates"]:
        mean = agreement.mean_rate(record, first.log, first.workload)
        if mean is not None:
            record["printed_mean"] = mean
    return record


def _part(node: Node, checksums: bool) -> NodeLog:
    log = node.log or Log()
    return {
        "node": node.name,
        "task_index": node.task_index,
        "log": node.path.name,
        "sha256": sha256_of(node.path) if checksums and node.log else None,
        "bytes": log.size if node.log else None,
        "steps": list(log.steps),
        "times": _seconds(log.times),
        "received": _seconds(log.received),
        "rates": None if log.rates is None else [None if math.isnan(rate) else rate for rate in log.rates],
        "loss": {"first": log.first_loss, "last": log.last_loss},
        "shown": {name: values for name, values in log.found.items() if any(values)},
        "exit": _end_as_data(log.exit),
    }


def _end_as_data(node_end: Any) -> Any:
    """Return what a node said at its end, its reasons as messages."""
    if not isinstance(node_end, Mapping):
        return node_end
    return {
        key: as_message(value) if key in ("reason", "why") and isinstance(value, str) else _end_as_data(value)
        for key, value in node_end.items()
    }


def _seconds(times: Sequence[int] | None) -> list[float] | None:
    if times is None:
        return None
    return [(time - times[0]) / SECOND for time in times]


def _judged(record: Record, verdict: Verdict | None, nodes: Sequence[Node]) -> Record:
    if verdict is None:
        reason = _unmeasured(record, nodes[0])
        if reason:
            verdict = Verdict("refused", because(nodes[0].file, reason), last_lines(nodes[0]))
    if verdict is not None:
        record["status"], record["reason"] = verdict.status, verdict.reason
        record["last_lines"] = verdict.last_lines
    record["notes"] = [because(node.file, note) for node in nodes if node.log for note in node.log.notes]
    if verdict is None:
        record["notes"] += [*_doubts(record), *_own_speed(record, nodes[0])]
    return record


def _unmeasured(record: Record, node: Node) -> Message | None:
    """Return why a record has no speed that counts, None if it has one."""
    try:
        throughput.measure(record)
    except throughput.ThroughputError as exc:
        return exc.message
    return agreement.refusal(record, node.log, node.workload) if node.log else None


def _own_speed(record: Record, node: Node) -> list[Message]:
    """Return the warnings about what a run says of its speed, but for its rates of single steps."""
    case, measured, notes = record["case"], throughput.measure(record), []
    if record.get("micro_steps") and case["accumulation"] > 1:
        notes.append(message("run.micro-steps", count=case["window"] / case["accumulation"]))
    own = {"mean": None, "lines": None, "end": _reported(node)}
    if node.log:
        own["lines"] = agreement.rate_of_parts(record, node.log, node.workload)
    own["mean"] = record.get("printed_mean")
    for source, rate in own.items():
        if rate and abs(measured["rate"] - rate) > agreement.FAR * rate:
            notes.append(
                message(f"run.own-{source}", rate=measured["rate"], source=_source(measured), own=rate)
            )
    return notes


def _source(measured: Mapping[str, Any]) -> Message:
    """Return what a rate was read from."""
    return message(f"source.{measured['time_source']}")


def _reported(node: Node) -> float | None:
    reported = node.workload.self_reported
    if not reported or not reported.rate or not node.log:
        return None
    try:
        return float(self_reported.read(node.path, reported.literal)[reported.rate])
    except (KeyError, ValueError):
        return None


def _doubts(record: Record) -> list[Message]:
    """Return the warnings about a run that counts."""
    case = record["case"]
    measured = throughput.measure(record)
    notes = _differing_readings(record, measured)
    slow = straggler(record)
    notes += [slow] if slow else []
    first = record["nodes"][0]
    for node in record["nodes"]:
        notes += _gaps(node, case)
    # Each worker is its own clock, so only lengths are compared.
    for key in typing.get_args(throughput.Stamps):
        ours = throughput.window_seconds(first, key, case)
        for node in record["nodes"][1:]:
            theirs = throughput.window_seconds(node, key, case)
            if ours and theirs and abs(theirs - ours) > throughput.tolerance(case["window"], key) * ours:
                notes.append(
                    message(
                        "run.windows-apart",
                        **{"first": first["node"], "node": node["node"], "ours": ours, "theirs": theirs},
                        share=abs(theirs - ours) / ours,
                        source=message(f"source.{key}"),
                    )
                )
    notes += _long_step(first, measured["time_source"], case)
    if measured["time_source"] == "times" and first["times"] and _whole_seconds(first["times"]):
        share = 1 / measured["seconds"]
        if share > throughput.DIFFER:
            notes.append(message("run.whole-seconds", seconds=measured["seconds"], share=share))
    return notes


def _differing_readings(record: Record, measured: Mapping[str, Any]) -> list[Message]:
    differs, second, unit = measured["differs"], measured["second"], record["unit"]
    sources = (measured["time_source"], second and second["time_source"])
    if differs is None or differs <= throughput.tolerance(record["case"]["window"], *sources):
        return []
    values = {"differs": differs, "unit": message(f"unit.{unit}") if unit in UNITS else unit}
    values |= {"rate": measured["rate"], "source": _source(measured)}
    return [message("run.readings-differ", **values, other=second["rate"], second=_source(second))]


def _long_step(node: NodeLog, reading: str, case: Case) -> list[Message]:
    """Return a message when one step takes a share of the window that no step should have."""
    values: Mapping[str, Any] = node
    stamps = values.get(reading)
    if reading not in ("times", "received") or not stamps:
        return []
    begin = node["steps"].index(case["warmup"])
    end = node["steps"].index(case["warmup"] + case["window"])
    seconds = stamps[end] - stamps[begin]
    longest, step = max(
        (stamps[index] - stamps[index - 1], node["steps"][index]) for index in range(begin + 1, end + 1)
    )
    if end - begin < FEW_STEPS or longest <= LONG_STEP * seconds:
        return []
    return [message("run.long-step", step=step, longest=longest, seconds=seconds)]


def _gaps(node: NodeLog, case: Case) -> list[Message]:
    begin, end = case["warmup"], case["warmup"] + case["window"]
    steps = [step for step in node["steps"] if begin <= step <= end]
    strides = {after - before for before, after in zip(steps, steps[1:], strict=False)}
    notes = []
    if len(strides) > 1:
        stride = min(strides)
        gaps = sorted(set(range(steps[0], end, stride)) - set(steps))
        notes.append(message("run.steps-missing", count=len(gaps), first=gaps[0]))
    if any(rate is not None for rate in node["rates"] or ()):
        rates = len(throughput.window_rates(node, case))
        logged = sum(begin < step <= end for step in node["steps"])
        if logged % rates if rates else logged:
            notes.append(message("run.rates-missing", rates=rates, logged=logged))
    return [because(node["log"], note) for note in notes]


def _whole_seconds(times: Sequence[float]) -> bool:
    return all(time == int(time) for time in times)
