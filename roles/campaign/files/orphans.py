#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Find and end the processes of jobs, whoever started them and wherever they went.

usage: orphans.py PLACE [PLACE ...]

Every process of a job carries SCALEBOOK_JOB=<directory of the first node's job> in its
environment. Those whose directory lies below one of the PLACEs (where nodes keep their jobs) are
ended; one JSON line tells which they were: {"ended": {job: number of processes}, "stopped": number,
"left": [pid]}; those that were stopped (SIGSTOP, a debugger) may have held up the others. Steps
that Slurm still runs for such jobs are ended first, on whatever nodes they are, whoever looks for orphans.
Names of processes are never looked at: somebody else's python or mpirun is not ours to end.

Runs on the nodes' own Python, 3.6 or later, standard library only.
"""

import json
import os
import signal
import sys
import time
from typing import Callable, Dict, Iterable, List

import procfs
import slurm_step

MARK = "SCALEBOOK_JOB"

PATIENCE = 5.0
"""Seconds to end by themselves: mpirun passes the word on to other nodes, run_node writes its last line."""


def with_group(group: int, word: bytes, *words: bytes) -> List[int]:
    """Return the pids of the process group `group` and of those with all of the words in their environment.

    The words are bytes, NAME=value. A process that leaves the group still carries the variable; one that
    rewrites its environment (a process title does that) mostly stays in the group.
    """
    pids = {pid for pid, environment in procfs.environments() if environment.issuperset((word,) + words)}
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.getpgid(int(name)) == group:
                pids.add(int(name))
        except OSError:
            continue  # it ended meanwhile
    return sorted(pids)


def of_places(places: Iterable[str]) -> Dict[int, str]:
    """Return {pid: job} of the processes of jobs below the directories `places`."""
    start, below = (MARK + "=").encode(), tuple(os.path.join(place, "").encode() for place in places)
    job_of_pid = {}
    for pid, environment in procfs.environments():
        for word in environment:
            if word.startswith(start) and word[len(start) :].startswith(below):
                job_of_pid[pid] = word[len(start) :].decode("utf-8", "replace")
    return job_of_pid


def running(pid: int) -> bool:
    """Tell whether `pid` is there and no zombie; what was killed and not reaped yet does nothing more."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        return False


def send(pids: Iterable[int], number: int) -> None:
    """Send a signal to those of `pids` that are still there."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            continue  # it ended meanwhile


def end(find: Callable[[], Iterable[int]], patience: float = PATIENCE) -> List[int]:
    """End what `find()` returns (pids), asked first, made after `patience` seconds; return what resisted."""
    pids = [pid for pid in find() if running(pid)]
    if not pids:
        return []
    send(pids, signal.SIGTERM)
    send(pids, signal.SIGCONT)  # a stopped process does not hear the word before
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if not any(running(pid) for pid in pids):
            break
        time.sleep(0.05)
    for _ in range(40):
        pids = [pid for pid in find() if running(pid)]
        if not pids:
            break
        send(pids, signal.SIGKILL)
        time.sleep(0.05)
    return pids


def main() -> None:
    """End the jobs below the places named on the command line and say which there were."""
    places = sys.argv[1:]
    steps = slurm_step.cancel(places)
    job_of_pid = of_places(places)
    jobs, stopped = list(job_of_pid.values()), procfs.stopped(job_of_pid)
    left = end(lambda: of_places(places)) if jobs else []
    ended = {job: jobs.count(job) for job in sorted({*jobs, *steps.values()})}
    print(json.dumps({"ended": ended, "stopped": len(stopped), "left": left}))


if __name__ == "__main__":
    main()
