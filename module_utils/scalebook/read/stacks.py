# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The stacks that the ranks of a hung run have printed -> which rank is where, the fewest together first.

run_node writes a line of its own before each; what follows is that of Python's faulthandler: the threads, the
newest first, and the frames of each, the innermost first.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ansible.module_utils.scalebook.contracts import Message, message
from ansible.module_utils.scalebook.files import NotRegularError, open_regular

SEARCHED = 1 << 20
"""Bytes of the end of a log that may have the stacks."""

PLACES, RANKS = 3, 8
"""How many places, and ranks of each, a reason names."""

_EVENT = re.compile(r'SCALEBOOK (\{.*"event": "(\w+)".*\})')
_FRAME = re.compile(r'  File "([^"]+)", line (\d+|\?\?\?) in (\S+)')
_THREAD = re.compile(r"(Current thread|Thread) 0x[0-9a-f]+ .*\(most recent call first\)")
_EXCHANGE = re.compile(r"/(?:torch|paddle|oneflow)/.*(?:distributed|collective|comm)|/horovod/|mpi_ops")
_LIBRARY = re.compile(r"/(?:site|dist)-packages/|/lib/python3|^<")
_PLUMBING = ("wrapper", "wait", "_wait")
"""Functions of libraries that say less than the one that called them."""


class Frame(NamedTuple):
    """One function of a stack, and where it is."""

    file: str
    line: str
    function: str


def places(paths: Iterable[Path]) -> list[Message]:
    """Return in which function the ranks are whose stacks stand in the logs `paths`."""
    together: dict[tuple[str, str], list[int]] = {}
    mute = []
    for rank, threads in sorted(stack for path in paths for stack in _stacks(path)):
        if threads:
            together.setdefault(_place(threads), []).append(rank)
        else:
            mute.append(rank)
    groups = sorted(together.items(), key=lambda group: (len(group[1]), group[1]))[:PLACES]
    sentences = [
        message("reason.stack", ranks=some(ranks), function=name, place=where)
        for (name, where), ranks in groups
    ]
    return sentences + ([message("reason.no-stack", ranks=some(mute))] if mute else [])


def some(ranks: list[int]) -> list[object]:
    """Return the first of `ranks`, and how many more there are."""
    more = [message("reason.more-ranks", count=len(ranks) - RANKS)] if len(ranks) > RANKS else []
    return [*ranks[:RANKS], *more]


def events(path: Path, name: str) -> Iterator[dict[str, Any]]:
    """Yield what run_node wrote in its lines of this name at the end of a log."""
    for line in _end_of(path):
        event = _EVENT.search(line)
        if event and event[2] == name:
            with contextlib.suppress(ValueError):  # a line that the end of the log cuts
                yield json.loads(event[1])


def _place(threads: list[list[Frame]]) -> tuple[str, str]:
    """Return the function of the thread that exchanges data, or of the first, and where it is called."""
    exchanging = [stack for stack in threads if any(_exchanges(frame) for frame in stack)]
    stack = (exchanging or threads)[0]
    named = next((frame for frame in stack if _exchanges(frame)), stack[0])
    own = next((frame for frame in stack if not _LIBRARY.search(frame.file)), named)
    where = f"{Path(own.file).name}:{own.line}"
    return named.function, where if own is named else f"{where}, {own.function}"


def _exchanges(frame: Frame) -> bool:
    return bool(_EXCHANGE.search(frame.file)) and frame.function not in _PLUMBING


def _stacks(path: Path) -> Iterator[tuple[int, list[list[Frame]]]]:
    """Yield (rank, frames of each thread, the one that was asked first) of each stack in a log."""
    rank: int | None = None
    threads: list[list[Frame]] = []
    current: list[Frame] | None = None
    for line in _end_of(path):
        event, thread, frame = _EVENT.search(line), _THREAD.search(line), _FRAME.search(line)
        if event:
            if rank is not None:
                yield rank, _ordered(threads, current)
            rank, threads, current = _rank(event), [], None
        elif thread:
            threads.append([])
            current = threads[-1] if thread[1].startswith("Current") else current
        elif frame and threads:
            threads[-1].append(Frame(*frame.groups()))


def _ordered(threads: list[list[Frame]], current: list[Frame] | None) -> list[list[Frame]]:
    return sorted((stack for stack in threads if stack), key=lambda stack: stack is not current)


def _rank(event: re.Match[str]) -> int | None:
    """Return the rank of an event of ours, None where it is another event."""
    try:
        return int(json.loads(event[1])["rank"]) if event[2] == "stack" else None
    except (ValueError, KeyError, TypeError):
        return None


def _end_of(path: Path) -> list[str]:
    try:
        with open_regular(path) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - SEARCHED))
            return file.read().decode("utf-8", "replace").splitlines()
    except (OSError, NotRegularError):
        return []  # the record says elsewhere that the log is missing
