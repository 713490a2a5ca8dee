#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The readings that sampler.py takes, and the file that they are in.

It imports little, because the sampler may have 30 MB: NVIDIA's driver takes 19 of them, and Python itself 9.

Runs on the nodes' own Python, 3.6 or later, standard library only.
"""

import math
import os
import select
import sys
import time

import host_sources
from messages import message, why

TYPE_CHECKING = False  # module typing takes 2 MB
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Tuple

    from messages import Message

SCHEMA = 1
PLAIN = frozenset(range(32, 127)) - {ord(sign) for sign in '"\\'}
"""The characters that JSON has as they are."""

SPARE = 4 << 20
"""Bytes that must stay free where FILE is: the log of the run needs them more."""


def as_json(value: "Any") -> str:
    """Return a value as JSON, which module json would do with 1.3 MB."""
    if isinstance(value, dict):
        return "{%s}" % ", ".join("%s: %s" % (as_json(key), as_json(value[key])) for key in sorted(value))
    if isinstance(value, (list, tuple)):
        return "[%s]" % ", ".join(map(as_json, value))
    if isinstance(value, str):
        data = value.encode("utf-16-be", "surrogatepass")
        units = [data[index] << 8 | data[index + 1] for index in range(0, len(data), 2)]
        return '"%s"' % "".join(chr(unit) if unit in PLAIN else "\\u%04x" % unit for unit in units)
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return repr(value)


class FullError(host_sources.Absent):
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
            raise FullError("sampler.full", megabytes=SPARE >> 20, place=self.directory)
        data = line.encode() + b"\n"
        try:
            if os.write(self.file, data) < len(data):
                raise FullError("sampler.no-space", place=self.directory)
        except OSError as error:
            raise FullError("absent.unreadable", path=self.directory, why=error.strerror) from error
        self.lines += 1


def names_in(visible: str) -> "List[str]":
    """Return the names of the GPUs in a value of CUDA_VISIBLE_DEVICES."""
    return [word for word in visible.split(",") if _is_name(word)]


def _is_name(word: str) -> bool:
    kind, dash, rest = word.partition("-")
    if not dash:
        return word.isdigit()
    return kind in ("GPU", "MIG") and rest.replace("-", "").replace("/", "").replace("_", "").isalnum()


def none_used() -> "Message":
    """Return why a job without GPUs of NVIDIA has no readings of GPUs."""
    return message("absent.amd" if os.path.exists("/dev/kfd") else "absent.no-gpu-used")


def open_sources(
    directories: "List[str]", gpus: "List[str]"
) -> "Tuple[List[host_sources.Source], Dict[str, Message]]":
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
        import gpu_sources  # here, because ctypes takes memory

        makers.append(("gpu", lambda: gpu_sources.without_waiting(gpus)))
    # Last: the search for the processes takes longest.
    makers.append(("job", lambda: host_sources.JobShare(*words)))
    sources, absent = [], {} if gpus else {"gpu": none_used()}
    for name, make in makers:
        try:
            source = make()
            source.read()  # what cannot be read now is not there
            sources.append(source)
        except (host_sources.Absent, OSError, ValueError, KeyError, IndexError) as error:
            absent[name] = why(error)
    return sources, absent


def cell(value: "host_sources.Value") -> str:
    """Return a value as a cell: whole numbers without a point, nothing for None, NaN and infinity."""
    if isinstance(value, str):
        return value
    if value is None or not math.isfinite(value):
        return ""
    return "%d" % value if value == int(value) else "%.4f" % value


class Sampler:
    """The readings."""

    def __init__(self, table: Table, interval: float, sources: "List[host_sources.Source]") -> None:
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
        self.table.write("# " + as_json(head))
        self.table.write(",".join(["at", "mark"] + [name for name, _, _ in columns]))

    def take(self, mark: str = "") -> None:
        """Write one reading, a full one if it has a mark."""
        cells = ["%.6f" % time.monotonic(), mark]
        full = bool(mark)
        for source, pace in zip(self.sources, self.paces):  # noqa: B905 - strict is of Python 3.10
            values: List[host_sources.Value] = [host_sources.PUT_OFF] * len(source.columns)
            if source.paces_its_parts or pace.turn(full):
                try:
                    with pace:
                        values = source.read(full)
                except (host_sources.Absent, OSError, ValueError, KeyError, IndexError):
                    values = [None] * len(source.columns)  # it went away
            cells += [cell(value) for value in values]
        self.table.write(",".join(cells))

    def conclude(self, absent: "Dict[str, Message]") -> None:
        """Write the line after the last reading: why sources are missing, and what the GPUs are."""
        about: Dict[str, Any] = {}
        for source in self.sources:
            missing, facts = source.closing()
            absent = dict(absent, **missing)
            about.update(facts)
        self.table.write("# " + as_json({"absent": absent, "about": about}))

    def run(self) -> None:
        """Take readings until standard input ends."""
        due = time.monotonic()
        pending = b""
        while True:
            ready = select.select([0], [], [], max(0.0, due - time.monotonic()))[0]
            now = time.monotonic()
            if ready:
                more = os.read(0, 4096)
                if not more:
                    self.take()
                    return
                *words, pending = (pending + more).split(b"\n")
                for word in words:
                    self.take(word.decode("ascii", "replace"))
                    due = now + self.interval  # the readings of the window are an interval apart
            elif now >= due:
                self.take()
                due = max(due + self.interval, now)


def peak_memory() -> "Optional[int]":
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
    pairs = list(zip(sys.argv[1::2], sys.argv[2::2]))  # noqa: B905 - strict is of Python 3.10
    options = dict(pairs)
    path, interval = options["--out"], float(options["--interval"])
    gpus = names_in(options.get("--gpus", ""))
    directories = [value for name, value in pairs if name == "--directory"]
    reason = None
    lines = 0
    try:
        table = Table(path)
        sources, absent = open_sources(directories, gpus)
        sampler = Sampler(table, interval, sources)
        try:
            sampler.describe()
            sampler.run()
        finally:
            lines = table.lines
            sampler.conclude(absent)
    except FullError as error:
        reason = error.message
    except OSError as error:
        reason = message("absent.unreadable", path=error.filename or path, why=error.strerror)
    report: Dict[str, Any] = {
        "reason": reason,
        "readings": max(0, lines - 2),
        "cpu_seconds": round(time.process_time(), 3),
    }
    memory = peak_memory()
    if memory is not None:
        report["memory_bytes"] = memory
    sys.stdout.write(as_json(report) + "\n")
    sys.stdout.flush()
    os._exit(0)  # a thread may hang in the driver
