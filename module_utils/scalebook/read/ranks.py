# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A log in which a launcher tagged the lines of several ranks -> the lines of each.

Looked at are only logs whose steps are not those of one rank.  Each line of a step must have its tag: one
without could be of any rank.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO, NamedTuple

from ansible.module_utils.scalebook.contracts import Message, because, message
from ansible.module_utils.scalebook.files import open_regular
from ansible.module_utils.scalebook.read.agreement import FAR
from ansible.module_utils.scalebook.read.blocks import BLOCK, Blocks
from ansible.module_utils.scalebook.read.step_log import Log, read_lines, read_log
from ansible.module_utils.scalebook.read.timestamps import SECOND
from ansible.module_utils.scalebook.throughput import DIFFER
from ansible.module_utils.scalebook.workload import OTHER_NODES, Sanity, Workload

MOST_RANKS = 4096
"""Ranks of one log: a job has some hundreds, and a million would fill the memory."""

KEPT = 1 << 18
"""Bytes of steps that are kept of each rank, to be compared, besides the ends of the window."""

KEPT_SHOWN = 1 << 13
"""Bytes of other lines that are."""

_DATE = (
    rb"(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]?\d \d\d:\d\d:\d\d \d{4} ?"
    rb"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,]*Z? ?)?"
)
# mpirun, horovodrun: [1,0]<stdout>:, [prterun-host-7@1,0]<stdout>:, [0]<stderr>:.
_JOB = rb"\[(?:[\w.-]+@)?(?:\d+,)?"
_STREAM = _JOB + rb"(?P<stream>\d+)\]<std(?:out|err|diag)>: ?"
# PyTorch and torchrun: [rank0]:, [default0]:.
_NAMED = rb"\[[A-Za-z_]+(?P<named>\d+)\]: ?"
# srun -l and Intel MPI: 0:, [0].
_NUMBER = rb"(?: *(?P<number>\d+): |\[(?P<bracket>\d+)\] )"
# pdsh, Docker Compose, kubectl: the host, or the container.
_HOST = rb"(?:\[pod/)?(?P<host>[A-Za-z0-9][\w.-]*)(?:: | +\| |/[\w.-]+\] )"
_STRONG = re.compile(_DATE + rb"(?:" + _STREAM + rb"|" + _NAMED + rb")")
_AFTER_HOST = re.compile(_DATE + rb"(?:" + _STREAM + rb"|" + _NAMED + rb"|" + _NUMBER + rb")")
_FIRST = re.compile(_DATE + rb"(?:" + _STREAM + rb"|" + _NAMED + rb"|" + _NUMBER + rb"|" + _HOST + rb")")
# What one rank wrote without an end of line goes on with the next tag.
_WITHIN = re.compile(rb"(?<!^)" + _JOB + rb"\d+\]<std(?:out|err|diag)>:")
_ONLY_DATE = re.compile(_DATE)


class Rank(NamedTuple):
    """Who wrote a line: the numbers and hosts of its tags, which also say in which order ranks come."""

    numbers: tuple[int, ...]
    hosts: tuple[tuple[object, ...], ...]
    name: str


def read_any_log(path: str | os.PathLike[str], workload: Workload) -> Log:
    """Read a log as read_log does, and of one with the tagged lines of several ranks those of the first.

    Raises OSError and LogError as read_log does.
    """
    log = read_log(path, workload)
    if not log.mixed or log.offset is not None:  # the node script stamps lines of its own job, not of others
        return log
    with open_regular(path) as file:
        ranks = _steps_of_ranks(file, workload)
        if not ranks:
            return log
        file.seek(0)
        first = read_lines(_lines_of_rank(file, next(iter(ranks))), workload)
    first.size = log.size
    _compare(first, ranks, workload)
    return first


def _compare(log: Log, ranks: Mapping[Rank, bytes], workload: Workload) -> None:
    """Note in the log of the first rank whether the steps of the others agree with it."""
    first, *others = ranks
    if log.refusal:
        log.refusal = because(first.name, log.refusal)
        return
    apart = []
    for other in others:
        compared = read_lines([ranks[other]], workload)
        difference = _difference(log, compared, workload)
        if compared.refusal or difference is None or difference > FAR:
            apart_from = message("reason.ranks-apart", first=first.name, other=other.name)
            log.refusal = because(apart_from, _why(log, compared, workload, other.name))
            return
        apart += [other] if difference > DIFFER else []
        log.notes += _contradictions(first, log, other, compared, workload)
    if apart:
        log.notes.append(
            message("run.rank-windows-apart", rank=first.name, share=DIFFER, others=_names(apart))
        )
    log.notes.append(message("run.ranks", rank=first.name, others=_names(others)))


def _contradictions(
    first: Rank, log: Log, other: Rank, compared: Log, workload: Workload
) -> Iterator[Message]:
    """Return a message for each value, such as the number of devices, that another rank shows otherwise."""
    for rule in _shared(workload):
        ours, theirs = log.found.get(rule.name, []), compared.found.get(rule.name, [])
        if ours and theirs and ours != theirs:
            values = {"name": rule.name, "theirs": theirs, "ours": ours}
            yield message("run.rank-differs", rank=other.name, first=first.name, **values)


def _shared(workload: Workload) -> list[Sanity]:
    """Return the rules whose value each rank of a run shows alike."""
    return [rule for rule in workload.sanity if rule.expect not in (None, OTHER_NODES, "task_index")]


def _difference(log: Log, other: Log, workload: Workload) -> float | None:
    """Return how far the windows of two ranks lie apart, None if only one of them has a window."""
    ours, theirs = _window(log, workload), _window(other, workload)
    if ours is None or theirs is None:
        return 0.0 if ours is theirs else None
    return abs(theirs - ours) / ours if ours else 0.0


def _window(log: Log, workload: Workload) -> float | None:
    """Return the seconds of the window, 0 where steps have no time; None without the window."""
    steps = list(log.steps)
    if workload.need not in steps or (log.times is not None and workload.warmup not in steps):
        return None
    if log.times is None:
        return 0.0
    return float(log.times[steps.index(workload.need)] - log.times[steps.index(workload.warmup)])


def _why(log: Log, other: Log, workload: Workload, name: str) -> Message:
    if other.refusal:
        return message("reason.rank-refused", rank=name, why=other.refusal)
    ours, theirs = _window(log, workload), _window(other, workload)
    if ours is None or theirs is None:
        return message("reason.rank-stops", rank=name, step=other.last_step)
    return message("reason.rank-takes", rank=name, theirs=theirs / SECOND, ours=ours / SECOND)


def _names(ranks: Sequence[Rank]) -> list[str] | Message:
    names = [rank.name for rank in ranks]
    return message("run.and-more", names=names[:3], count=len(names) - 3) if len(names) > 3 else names


def _steps_of_ranks(file: BinaryIO, workload: Workload) -> dict[Rank, bytes]:
    """Return what is compared of each rank without tags, in the order of ranks: its first lines of steps, and
    those of what ranks show alike.

    None of fewer than two ranks, nor if a line of a step has no tag.
    """
    literal, pattern = workload.log.step.literal, workload.log.step.pattern
    ends = {b"%d" % workload.warmup, b"%d" % workload.need}
    alike = {rule.line.literal for rule in _shared(workload)}
    ranks: dict[Rank, bytearray] = {}
    last_lines: dict[Rank, bytearray] = {}
    for data in Blocks(file, BLOCK):
        for line in _lines(data) if any(each in data for each in (literal, *alike)) else ():
            rank, body = _tag(line)
            if literal not in line:
                if (
                    rank
                    and any(each in line for each in alike)
                    and len(last_lines.get(rank, b"")) < KEPT_SHOWN
                ):
                    last_lines.setdefault(rank, bytearray()).extend(body + b"\n")
                continue
            match = pattern.search(body)
            if rank is None or not match:
                if pattern.search(line):
                    return {}
                continue
            rank_bytes = ranks.setdefault(rank, bytearray())
            if len(rank_bytes) < KEPT or match["step"] in ends:
                rank_bytes += body + b"\n"
        if max(len(ranks), len(last_lines)) > MOST_RANKS:
            return {}
    return (
        {rank: bytes(last_lines.get(rank, b"") + ranks[rank]) for rank in sorted(ranks)}
        if len(ranks) > 1
        else {}
    )


def _lines_of_rank(file: BinaryIO, chosen: Rank) -> Iterator[bytes]:
    """Return the lines of one rank without their tags; a line without a tag goes on with the one before."""
    last: Rank | None = None
    for data in Blocks(file, BLOCK):
        for line in _lines(data):
            rank, body = _tag(line)
            last = rank or last
            if last == chosen:
                yield body + b"\n"


def _lines(data: bytes) -> Iterator[bytes]:
    for line in data.split(b"\n"):
        line = line.rstrip(b"\r")
        if b"<std" in line:
            yield from (piece for piece in _pieces(line) if piece)
        elif line:
            yield line


def _pieces(line: bytes) -> Iterator[bytes]:
    """Return a line cut before each tag of mpirun or horovodrun, with the date and the host before that."""
    begin = 0
    for tag in _WITHIN.finditer(line):
        before = _tag(line[begin : tag.start()])[1]
        if not _ONLY_DATE.fullmatch(before):
            yield line[begin : tag.start()]
            begin = tag.start()
    yield line[begin:]


def _tag(line: bytes) -> tuple[Rank | None, bytes]:
    """Return who wrote a line, None if that is not known, and the line without tags."""
    match = _FIRST.match(line)
    if not match:
        return None, line
    numbers: list[int] = []
    hosts: list[bytes] = []
    end = 0
    while match:
        groups = match.groupdict()
        number = groups["stream"] or groups["named"] or groups.get("number") or groups.get("bracket")
        if number:
            numbers.append(int(number))
        else:
            hosts.append(groups["host"])
        end = match.end()
        match = (_STRONG if number else _AFTER_HOST).match(line, end)
    name = " ".join([host.decode() for host in hosts] + [f"rank {number}" for number in numbers[-1:]])
    return Rank(tuple(numbers[::-1]), tuple(map(_natural, hosts)), name), line[end:]


def _natural(host: bytes) -> tuple[object, ...]:
    """Return a host in a form that sorts n2 before n10."""
    return tuple(
        (int(part), "") if part.isdigit() else (-1, part.decode()) for part in re.split(rb"(\d+)", host)
    )
