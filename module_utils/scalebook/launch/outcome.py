# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Converts the results of a run's Ansible tasks into the record's `job` section."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ansible.module_utils.scalebook.contracts import JobReport, Message, Node, ProgramEnd, because, message
from ansible.module_utils.scalebook.failure_search import advice, first_cause

Result = Mapping[str, Any]
KILLED_BY_TIMEOUT = (124, 137)  # exit statuses of the program `timeout`


def job_end(result: Result, members: Sequence[Node] = ()) -> dict[str, Any]:
    """Return what run_job reports; where it reports nothing, the same keys from the task's result.

    `unreported` says that run_job reported nothing, `unreachable` that the control node lost the first node
    while the job ran.  mpirun knows hosts by
    the addresses it was given; here they get the names of `members`, the run's nodes.
    """
    ended: dict[str, Any] = {}
    if result.get("rc") == 0:
        with contextlib.suppress(ValueError):  # cut short: the first node's machine went down
            ended = dict(json.loads(result.get("stdout") or ""))
    if not ended:
        message = str(result.get("stderr") or "") + str(result.get("msg") or "")
        rc = int(result.get("rc") or 0) or 255
        loss = {"unreported": True, "unreachable": bool(result.get("unreachable"))}
        ended = {"rc": rc if rc > 0 else 128 - rc, "seconds": 0, "stderr": message, **loss}
    names = {node["address"]: node["name"] for node in members}
    if len(names) < len(members):  # nodes of one machine share its address
        return ended
    stderr = str(ended.get("stderr") or "")
    for address, name in names.items():
        stderr = re.sub(rf"(?<![\w.]){re.escape(address)}(?!\.?\w)", name, stderr)
    unstarted = [names.get(address, address) for address in ended.get("unstarted") or ()]
    awaited = [names.get(address, address) for address in ended.get("hosts") or ()]
    return {**ended, "stderr": stderr, "unstarted": unstarted, "hosts": awaited}


def linger_note(job: JobReport, hosts: Sequence[str], cleared: Sequence[Result]) -> str:
    """Return the note on a job that run_job ended after its run, "" for any other.

    `cleared` is what orphans.py said on `hosts`: it has seen which processes were stopped.
    """
    if not job.get("lingered"):
        return ""
    frozen = []
    for host, result in zip(hosts, cleared, strict=True):
        with contextlib.suppress(ValueError, AttributeError):  # it gave no answer
            if json.loads(result.get("stdout") or "").get("stopped"):
                frozen.append(host)
    open_ = job.get("hosts") or ()
    why = f": its processes on {', '.join(frozen)} were stopped" if frozen else ""
    why = why or (f": it was still connected to {', '.join(open_)}" if open_ else "")
    return f"mpirun had not ended 30 s after the first node's part of the run and was ended{why}"


def program_end(result: Result, nodes: Sequence[str], name: str, limit: int) -> ProgramEnd:
    """Return how a program of the micro-benchmarks ended on `nodes`.

    `result` is that of ansible.builtin.command with the clock in UTC, `limit` the seconds that the program
    `timeout` gave it.
    """
    rc = int(result["rc"]) if result.get("rc") is not None else 255
    reason = None
    if rc:
        lines = [*(result.get("stderr_lines") or ()), *(result.get("stdout_lines") or ())]
        last = _cause(lines) or " ".join(str(line) for line in lines[-5:]) or str(result.get("msg") or "")
        code = "program.ended-late" if rc in KILLED_BY_TIMEOUT else "program.ended"
        reason = message(code, rc=rc, limit=limit, file=f"{name}.log", why=last)
    return {
        "nodes": list(nodes),
        "rc": rc,
        "seconds": _seconds(result),
        "started": _utc(result.get("start")),
        "ended": _utc(result.get("end")),
        "reason": reason,
    }


def _cause(lines: Sequence[Any]) -> Message | None:
    """Return the first cause that a program's output tells, None for none."""
    hit = first_cause(["\n".join(map(str, lines)).encode()])
    return because(message("reason.it-says", line=hit.text), advice(hit.cause)) if hit else None


def _seconds(result: Result) -> float | None:
    times = [result.get(key) for key in ("start", "end")]
    if not all(times):
        return None
    start, end = (datetime.fromisoformat(str(each)) for each in times)
    return (end - start).total_seconds()


def _utc(text: Any) -> str | None:
    return str(text)[:19].replace(" ", "T") + "Z" if text else None


def trouble(
    hosts: Sequence[str], writes: Sequence[Result], cleared: Sequence[Result]
) -> dict[str, dict[str, str]]:
    """Return `{"lost": {host: why}, "unwritten": {host: why}}` from two tasks' results on `hosts`.

    A host that cannot be reached after the job has ended is lost.  One that answers but could not
    write its node jobs is not: its disk may be full.
    """
    lost_hosts = {
        name: _last_line(result)
        for name, result in zip(hosts, cleared, strict=True)
        if result.get("unreachable")
    }
    unwritten = {
        name: _last_line(result)
        for name, result in zip(hosts, writes, strict=True)
        if name not in lost_hosts and "made" not in result and not result.get("unreachable")
    }
    return {"lost": lost_hosts, "unwritten": unwritten}


def _last_line(result: Result) -> str:
    return (str(result.get("msg") or "").strip().splitlines() or [""])[-1].strip()
