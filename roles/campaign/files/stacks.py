#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Where the ranks of a hung workload are: each prints its Python stack into the node's log, and ends.

Node scripts set PYTHONFAULTHANDLER, with which Python prints the stack of all threads on SIGABRT, also from
within a call into C that does not return.  That needs no ptrace, no package and no lock of the interpreter,
and works with every framework.  All processes are stopped first: otherwise the end of one rank would be an
error of the others, which wait for it.  Processes without that handler are left alone.

Runs on the nodes' own Python, 3.6 or later, standard library only.
"""

import resource
import signal
import time
from typing import Any, Callable, Dict, Iterable, List

import orphans
import procfs

PATIENCE, ALL = 1.0, 3.0
"""Seconds that one rank has to print its stack, and all ranks of the node."""

QUIET = 0.1
"""Seconds without a line after which all that was printed is in the log."""

NO_CORE = 1
"""The limit of a core file that keeps the kernel from writing one, also to a program (core(5))."""


def catches_abort(pid: int) -> bool:
    """Tell whether a process has a handler for SIGABRT."""
    try:
        caught = procfs.read("/proc/%d/status" % pid).partition(b"SigCgt:")[2].split()
    except OSError:
        return False  # it ended meanwhile
    return bool(caught) and bool(int(caught[0], 16) >> (signal.SIGABRT - 1) & 1)


def ranks(pids: Iterable[int], own_rank: int) -> Dict[int, int]:
    """Return {pid: rank} of the processes that can print their stack, one for each rank.

    A launcher of several ranks sets RANK for each; without it the node's process is `own_rank`.  Of those
    with one rank the first counts: the others load data for it.
    """
    rank_of = {}
    for pid, environment in procfs.environments([pid for pid in pids if catches_abort(pid)]):
        words = [word[5:] for word in environment if word.startswith(b"RANK=") and word[5:].isdigit()]
        rank_of[pid] = int(words[0]) if words else -1
    if max(rank_of.values(), default=-1) >= 0:
        rank_of = {pid: rank for pid, rank in rank_of.items() if rank >= 0}
    else:
        rank_of = dict.fromkeys(rank_of, own_rank)
    parents = {pid: (procfs.started(pid) or (0, 0))[1] for pid in rank_of}
    return {pid: rank for pid, rank in rank_of.items() if rank_of.get(parents[pid]) != rank}


def ask(pids: List[int], own_rank: int, event: Callable[..., Any], lines: Callable[[], int]) -> None:
    """Make the ranks among `pids` print their stacks, one after the other; `pids` are stopped, and ranks end.

    `event` writes a line of ours before each stack, `lines` returns how many the log has.
    """
    rank_of_pid = ranks(pids, own_rank)
    if not rank_of_pid:
        return
    orphans.send(pids, signal.SIGSTOP)
    await_quiet(lines)
    deadline = time.monotonic() + ALL
    for pid in sorted(rank_of_pid, key=lambda pid: rank_of_pid[pid]):
        try:
            event(event="stack", rank=rank_of_pid[pid])
            resource.prlimit(pid, resource.RLIMIT_CORE, (NO_CORE, NO_CORE))
        except OSError:
            continue  # it ended, or the disk of the log is full
        except ValueError:
            pass  # a lower limit holds
        orphans.send([pid], signal.SIGABRT)
        orphans.send([pid], signal.SIGCONT)
        patience = min(deadline, time.monotonic() + PATIENCE)
        while orphans.running(pid) and time.monotonic() < patience:
            time.sleep(0.01)
        await_quiet(lines)


def await_quiet(lines: Callable[[], int]) -> None:
    """Wait until no more lines come."""
    before = -1
    while lines() != before:
        before = lines()
        time.sleep(QUIET)
