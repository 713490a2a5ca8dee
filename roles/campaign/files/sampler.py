#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Reads how busy a node is while a job runs, one process per node, started and ended by run_node.

usage: sampler.py --out FILE --interval SECONDS [--gpus 0,1] [--directory DIR ...]

FILE begins with a line `# {...}` that describes it, then comes a CSV table: a line for each reading, with
its time on the node's monotonic clock. Counters are written as they are, so the difference of two
readings is exact however many lie between. Standard input brings the words `first` and `last`, when the
window's first and last step were logged: each is answered by a full reading at once, marked with that word.
The other readings follow at the interval; what takes long is put off in some of them, and has `-` there.

It ends when standard input does, which is also what happens when run_node is killed. Then it appends why
sources are missing, and prints one JSON line on what it used itself. It never writes to a disk that is
nearly full.

Runs on the nodes' own Python, 3.6 or later; the standard library is enough.
"""

import argparse
import json
import math
import os
import resource
import select
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

import gpu_sources
import host_sources

SCHEMA = 1
SPARE = 4 << 20
"""Bytes that must stay free where FILE is: the log of the run needs them more."""


class FullError(Exception):
    """The disk has no space left for readings."""


class Table:
    """FILE, line by line; nothing stays in a buffer, so what was read survives a kill."""

    def __init__(self, path: str) -> None:
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        self.directory = os.path.dirname(path) or "."
        self.lines = 0

    def write(self, line: str) -> None:
        """Append a line, or raise FullError."""
        there = os.statvfs(self.directory)
        if there.f_bavail * there.f_frsize < SPARE:
            raise FullError("less than %d MB free in %s" % (SPARE >> 20, self.directory))
        data = line.encode() + b"\n"
        try:
            if os.write(self.file, data) < len(data):
                raise FullError("no space left in %s" % self.directory)
        except OSError as error:
            raise FullError("%s: %s" % (self.directory, error.strerror)) from error
        self.lines += 1


def open_sources(
    directories: List[str], gpus: List[str], interval: float
) -> Tuple[List[host_sources.Source], Dict[str, str]]:
    """Return the sources of this node, and why others are missing."""
    words = [("%s=%s" % (name, os.environ.get(name, ""))).encode() for name in ("JOB_DIR", "SCALEBOOK_RUN")]
    makers: List[Tuple[str, Callable[[], host_sources.Source]]] = [
        ("cpu", host_sources.Processors),
        ("memory", host_sources.Memory),
        ("disk", lambda: host_sources.Disks(directories)),
        ("network", host_sources.Network),
        ("infiniband", host_sources.InfiniBand),
        ("host", host_sources.HostEnergy),
    ]
    if gpus:
        makers.append(
            (
                "gpu",
                lambda: gpu_sources.Patient(
                    gpu_sources.columns(gpus), lambda: gpu_sources.open_gpus(gpus, interval)
                ),
            )
        )
    # Last: the search for the processes takes longest.
    makers.append(("job", lambda: host_sources.JobShare(*words)))
    sources, absent = [], {} if gpus else {"gpu": gpu_sources.none_used()}
    for name, make in makers:
        try:
            source = make()
            source.read()  # what cannot be read now is not there
            sources.append(source)
        except (host_sources.Absent, OSError, ValueError, KeyError, IndexError) as error:
            absent[name] = str(error)
    return sources, absent


def written(value: host_sources.Value) -> str:
    """Return a value as a cell: whole numbers without a point, nothing for None, NaN and infinity."""
    if isinstance(value, str):
        return value
    if value is None or not math.isfinite(value):
        return ""
    return "%d" % value if value == int(value) else "%.4f" % value


class Sampler:
    """The readings."""

    def __init__(self, table: Table, interval: float, sources: List[host_sources.Source]) -> None:
        self.table, self.interval, self.sources = table, interval, sources
        self.paces = [host_sources.Pace() for _ in sources]

    def describe(self) -> None:
        """Write the lines before the first reading."""
        columns = [column for source in self.sources for column in source.columns]
        about: Dict[str, Any] = {}
        for source in self.sources:
            about.update(source.about)
        # Both clocks, one after the other: what places the window of another node on this one's clock.
        clocks = {"monotonic": time.monotonic(), "wall": time.time()}
        head = {"schema": SCHEMA, "interval": self.interval, "columns": columns, "about": about, **clocks}
        self.table.write("# " + json.dumps(head, sort_keys=True))
        self.table.write(",".join(["at", "mark"] + [name for name, _, _ in columns]))

    def take(self, mark: str = "") -> None:
        """Write one reading, a full one if it has a mark."""
        cells = ["%.6f" % time.monotonic(), mark]
        full = bool(mark)
        for source, pace in zip(self.sources, self.paces):  # noqa: B905 - strict is of Python 3.10
            values: List[host_sources.Value] = [host_sources.PUT_OFF] * len(source.columns)
            if pace.turn(full):
                try:
                    with pace:
                        values = source.read(full)
                except (host_sources.Absent, OSError, ValueError, KeyError, IndexError):
                    values = [None] * len(source.columns)  # it went away
            cells += [written(value) for value in values]
        self.table.write(",".join(cells))

    def conclude(self, absent: Dict[str, str]) -> None:
        """Write the line after the last reading: why sources are missing, and what the GPUs are."""
        about: Dict[str, Any] = {}
        for source in self.sources:
            if isinstance(source, gpu_sources.Patient):
                absent = dict(absent, **source.absent())
                about = source.source.about if source.source else {}
        self.table.write("# " + json.dumps({"absent": absent, "about": about}, sort_keys=True))

    def run(self) -> None:
        """Take readings until standard input ends."""
        due = time.monotonic()
        heard = b""
        while True:
            ready = select.select([0], [], [], max(0.0, due - time.monotonic()))[0]
            now = time.monotonic()
            if ready:
                more = os.read(0, 4096)
                if not more:
                    self.take()
                    return
                *words, heard = (heard + more).split(b"\n")
                for word in words:
                    self.take(word.decode("ascii", "replace"))
                    due = now + self.interval  # the readings of the window are an interval apart
            elif now >= due:
                self.take()
                due = max(due + self.interval, now)


def peak_memory() -> Optional[int]:
    """Return the most bytes that this process had resident, None where the system does not tell it.

    Not ru_maxrss: Linux hands on that of the process which started this one, where it is larger.
    """
    try:
        lines = host_sources.text("/proc/self/status").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    except (host_sources.Absent, StopIteration):
        return None


def main() -> None:
    """Sample until standard input ends, and print what it took."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--interval", type=float, required=True)
    parser.add_argument("--gpus", default="")
    parser.add_argument("--directory", action="append", default=[])
    args = parser.parse_args()
    gpus = gpu_sources.names_in(args.gpus)
    reason = None
    lines = 0
    try:
        table = Table(args.out)
        sources, absent = open_sources(args.directory, gpus, args.interval)
        sampler = Sampler(table, args.interval, sources)
        try:
            sampler.describe()
            sampler.run()
        finally:
            lines = table.lines
            sampler.conclude(absent)
    except FullError as error:
        reason = str(error)
    except OSError as error:
        reason = "%s: %s" % (error.filename or args.out, error.strerror)
    used = resource.getrusage(resource.RUSAGE_SELF)
    said: Dict[str, Any] = {
        "reason": reason,
        "readings": max(0, lines - 2),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 3),
    }
    memory = peak_memory()
    if memory is not None:
        said["memory_bytes"] = memory
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()
    os._exit(0)  # a thread may hang in the driver


if __name__ == "__main__":
    main()
