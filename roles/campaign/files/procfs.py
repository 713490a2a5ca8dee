#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What the kernel tells of a job's processes: killed for memory, stopped, busy. Needs no framework.

Runs on the nodes' own Python, 3.6 or later, standard library only.
"""

import os

TYPE_CHECKING = False  # module typing takes 2 MB, and the sampler has 30
if TYPE_CHECKING:
    from typing import Dict, Iterable, Iterator, List, Optional, Set, Tuple

SIZE = 1 << 14
"""Bytes that are read at a time."""

_CGROUP_FILES = (
    ("/sys/fs/cgroup{path}/memory.events", "oom_kill"),  # version 2
    ("/sys/fs/cgroup/memory{path}/memory.oom_control", "oom_kill"),  # version 1
    # In a container its own group is the root of what it sees.
    ("/sys/fs/cgroup/memory.events", "oom_kill"),
    ("/sys/fs/cgroup/memory/memory.oom_control", "oom_kill"),
    ("/proc/vmstat", "oom_kill"),  # the whole machine
)


def read(path: str) -> bytes:
    """Return the content of a file in /proc or /sys, or raise OSError. open() takes twice as long."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = [os.read(file, SIZE)]
        while parts[-1]:
            parts.append(os.read(file, SIZE))
        return b"".join(parts)
    finally:
        os.close(file)


def _read(path: str) -> str:
    try:
        return read(path).decode("ascii", "replace")
    except OSError:
        return ""


def _stat(pid: int) -> "List[str]":
    """Return the fields of /proc/PID/stat from the third (state) on, none of a process that is not there."""
    return _read("/proc/%d/stat" % pid).rpartition(")")[2].split()


def boot() -> str:
    """Return what tells this start of the machine from all others, an empty text where Linux does not say.

    It is the same in every container of a machine, and another one after a restart.
    """
    return _read("/proc/sys/kernel/random/boot_id").strip()


def oom_kills(of_machine: bool = False) -> "Optional[int]":
    """Return how many processes the kernel has killed for want of memory, as near to us as it counts.

    Of this process's cgroup where that can be read, else, or where asked, of the machine, since a container
    has a cgroup of its own; None where nothing counts.
    """
    groups = [line.split(":", 2) for line in _read("/proc/self/cgroup").splitlines()]
    paths = [path for _, names, path in groups if names == "" or "memory" in names.split(",")]
    for file, word in _CGROUP_FILES[-1:] if of_machine else _CGROUP_FILES:
        for path in paths if "{path}" in file else [""]:
            for line in _read(file.format(path=path.rstrip("/"))).splitlines():
                name, _, value = line.partition(" ")
                if name == word and value.strip().isdigit():
                    return int(value)
    return None


def stopped(pids: "Iterable[int]") -> "List[int]":
    """Return those of `pids` that are stopped (SIGSTOP, a debugger): they hang the job and say nothing."""
    return [pid for pid in pids if _stat(pid)[:1] in (["T"], ["t"])]


def family(pid: int) -> "List[int]":
    """Return `pid` and its descendants."""
    pids = []
    pending = [pid]
    while pending:
        pids.append(pending.pop())
        try:
            threads = os.listdir("/proc/%d/task" % pids[-1])
        except OSError:
            continue  # it ended meanwhile
        for thread in threads:
            pending += map(int, _read("/proc/%d/task/%s/children" % (pids[-1], thread)).split())
    return pids


def environments(pids: "Optional[Iterable[int]]" = None) -> "Iterator[Tuple[int, Set[bytes]]]":
    """Yield (pid, set of b"NAME=value") of every process but this one whose environment may be read.

    With `pids`, of these processes only.
    """
    if pids is None:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    for pid in pids:
        if pid != os.getpid():
            try:
                yield pid, set(read("/proc/%d/environ" % pid).split(b"\0"))
            except OSError:
                continue  # it ended meanwhile, or it is another user's


def listed() -> "Dict[int, int]":
    """Return the inode in /proc of each process there is, by its pid.

    Linux gives each process an inode of its own, so a pid with another one than before is another process. A
    process may get a new one while the kernel is short of memory. The list tells it, no file is asked for it.
    """
    return {int(entry.name): entry.inode() for entry in os.scandir("/proc") if entry.name.isdigit()}


def started(pid: int) -> "Optional[Tuple[int, int]]":
    """Return when a process started, in ticks of the machine's time, and its parent; None if it is gone."""
    fields = _stat(pid)
    return (int(fields[19]), int(fields[1])) if fields else None


def below(pids: "Set[int]", parents: "Dict[int, int]") -> "Set[int]":
    """Return `pids` and the descendants of all of them."""
    all_pids = set(pids)
    for pid in parents:
        line = []
        while pid and pid not in all_pids:  # a pid that is gone has no parent
            line.append(pid)
            pid = parents.get(pid, 0)
        if pid:
            all_pids.update(line)
    return all_pids


def work_of(pids: "List[int]") -> "Tuple[float, float]":
    """Return the seconds that the processes `pids` (computed, queued for a processor).

    A rank that waits for its peers in a collective does neither, so the slow rank of a
    synchronised job stands out by more of them, though all ranks' steps take equally long.
    """
    return computed(pids), queued(pids) or 0.0


def queued(pids: "Iterable[int]") -> "Optional[float]":
    """Tell the seconds that the threads of `pids` waited for a processor, None if the kernel does not."""
    times_of_thread = threads(pids)
    return sum(waited for _, waited in times_of_thread.values()) / 1e9 if times_of_thread else None


def threads(pids: "Iterable[int]") -> "Dict[int, Tuple[int, int]]":
    """Return the nanoseconds that each thread of `pids` (computed, waited for a processor).

    The kernel may not tell it. A thread has a number of its own among all processes.
    """
    times_of_thread = {}
    for pid in pids:
        try:
            place = os.open("/proc/%d/task" % pid, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            continue  # it ended meanwhile
        try:
            for thread in os.listdir(place):
                times = _times(place, thread)
                if times is not None:
                    times_of_thread[int(thread)] = times
        finally:
            os.close(place)
    return times_of_thread


def _times(place: int, thread: str) -> "Optional[Tuple[int, int]]":
    """Return the nanoseconds of a thread: a trainer has hundreds of them, so this is short."""
    try:
        file = os.open(thread + "/schedstat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=place)
    except OSError:
        return None
    try:
        words = os.read(file, 128).split()
        return int(words[0]), int(words[1])
    except (OSError, IndexError):
        return None
    finally:
        os.close(file)


def computed(pids: "Iterable[int]") -> float:
    """Return the seconds that the processes `pids`, and those of their children that ended, computed."""
    return usage_of(pids)[0]


def usage_of(pids: "Iterable[int]") -> "Tuple[float, float]":
    """Return the seconds of `computed`, and the bytes that the processes `pids` have resident."""
    ticks = pages = 0
    for pid in pids:
        fields = _stat(pid)
        if len(fields) > 21:
            ticks += sum(map(int, fields[11:15]))  # user, system, and of children that ended
            pages += int(fields[21])
    return ticks / float(os.sysconf("SC_CLK_TCK")), pages * float(os.sysconf("SC_PAGE_SIZE"))
