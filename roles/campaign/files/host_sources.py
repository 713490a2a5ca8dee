#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What /proc and /sys tell of a node: processors, memory, disks, network, energy, and the job's own share.

A source has `columns`, a list of (name, kind, unit), and `read()`, which returns a value for each of them,
None for one that is not there any more, PUT_OFF for one that takes too long to be read each time. A name is
group:instance:quantity. Of a counter only differences mean something, a gauge is a value by itself. `about`
are facts that do not change. A source that is not there raises Absent with the reason.

Runs on the nodes' own Python, 3.6 or later, standard library only.
"""

import os
import time
from abc import ABC, abstractmethod

import procfs
from messages import MessageError

TYPE_CHECKING = False  # module typing takes 2 MB
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Sequence, Set, Tuple, Union

    from messages import Message

    Column = Tuple[str, str, str]
    Value = Union[float, str, None]

PUT_OFF = "-"
"""The value of what is not read this time: see Pace."""

SECTOR = 512
"""Bytes of a sector in /proc/diskstats, whatever the disk's own are."""

UNKNOWN_SPEEDS = (65535, 4294967295)
"""What a driver says that does not know the speed of its link: -1 in 16 and in 32 bits."""

WORD = 4
"""Bytes of a unit in InfiniBand's counters of data."""

ALLOWED = 1e-4
"""Seconds of processor time that a source, or a question to a GPU, may take for a reading, on average.

Half a dozen sources and eleven questions then stay below 0.2 % of a core together, with a reading a second
and the two ends of a window of 40 s: a few take what they may, most a tenth of it."""

SELDOM = 10
"""What takes longest is still read in every tenth reading: on a node whose log has no steps, nothing marks
where the window begins and ends."""

BETWEEN = 30
"""The same of counters that are needed at the two ends of the window alone, once the first end was marked:
the last one will be, too."""


class Absent(MessageError):  # noqa: N818 - it is not an error
    """A source, or what a source could tell, that is not on this node; its message says why."""


class Pace:
    """When something is read: each time, or only every n-th time where that takes more than is allowed.

    with pace: … measures one reading. The cheaper one of the last two counts, because the first one fills
    caches, and any may be disturbed. `by_ends`: of the window nothing but its two ends is needed.
    """

    def __init__(self, allowed: float = ALLOWED, by_ends: bool = False) -> None:
        self.allowed = allowed
        self.by_ends = by_ends
        self.most = SELDOM
        self.rest = 0
        self.took = self.began = 0.0

    def turn(self, full: bool) -> bool:
        """Return whether it is read this time; in a full reading everything is."""
        if full and self.by_ends:
            self.most = BETWEEN
        self.rest -= 1
        return full or self.rest < 0

    def __enter__(self) -> None:
        self.began = time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)

    def __exit__(self, *error: object) -> None:
        took = time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) - self.began
        self.rest = min(int(min(took, self.took) / self.allowed), self.most - 1)
        self.took = took


class Source(ABC):
    """What can be read at once."""

    paces_its_parts = False
    """Whether the source puts off its parts itself, each as often as that takes too long."""

    def __init__(self) -> None:
        self.columns: List[Column] = []
        self.about: Dict[str, Any] = {}

    @abstractmethod
    def read(self, full: bool = False) -> "List[Value]":
        """Return a value for each of the columns; `full`: nothing may be put off."""

    def closing(self) -> "Tuple[Dict[str, Message], Dict[str, Any]]":
        """Return, after the last reading, why values are missing, and facts that were not known before."""
        return {}, {}


def text(path: str) -> str:
    """Return the content of a small file, or raise Absent."""
    try:
        return procfs.read(path).decode("ascii", "replace")
    except OSError as error:
        raise Absent("absent.unreadable", path=path, why=error.strerror) from error


def number(path: str) -> "Optional[float]":
    """Return the number that a file holds, None when it holds none or is not there."""
    try:
        return float(text(path))
    except (Absent, ValueError):
        return None


def listed(directory: str) -> "List[str]":
    """Return the paths in a directory, sorted; none of one that is not there."""
    try:
        return sorted(os.path.join(directory, name) for name in os.listdir(directory))
    except OSError:
        return []


class Processors(Source):
    """/proc/stat: seconds that the processors were busy, all of them and each."""

    def __init__(self) -> None:
        super().__init__()
        self.ticks = float(os.sysconf("SC_CLK_TCK"))
        self.cores = [line.split(None, 1)[0] for line in self._lines()[1:]]
        whole = [("cpu::%s" % name, "counter", "s") for name in ("busy", "iowait", "steal")]
        self.columns = whole + [("core:%s:busy" % name[3:], "counter", "s") for name in self.cores]
        self.about = {"cores": len(self.cores)}
        # This process may use the same as the job: a set of processors (taskset, a container) is inherited.
        allowed = {"cpu%d" % number for number in os.sched_getaffinity(0)}
        if not allowed.issuperset(self.cores):
            self.about["job_cores"] = [self.cores.index(name) for name in self.cores if name in allowed]

    def _lines(self) -> "List[str]":
        # The line after those of the processors counts thousands of interrupts.
        return text("/proc/stat").partition("\nintr")[0].splitlines()

    def read(self, full: bool = False) -> "List[Value]":
        """Busy is neither idle nor waiting for a disk nor given to another virtual machine."""
        busy, waited = {}, []
        for line in self._lines():
            name, user, nice, system, _, iowait, irq, softirq, steal = line.split(None, 9)[:9]
            busy[name] = (int(user) + int(nice) + int(system) + int(irq) + int(softirq)) / self.ticks
            if name == "cpu":
                waited = [int(iowait) / self.ticks, int(steal) / self.ticks]
        return [busy.get("cpu"), *waited, *(busy.get(name) for name in self.cores)]


class Memory(Source):
    """/proc/meminfo: what is not available to a new process."""

    def __init__(self) -> None:
        super().__init__()
        self.columns = [("memory::used", "gauge", "B")]
        self.about = {"memory_bytes": self._kilobytes()["MemTotal"] * 1024}

    def _kilobytes(self) -> "Dict[str, int]":
        lines = [line.split() for line in text("/proc/meminfo").splitlines()[:3]]
        return {words[0].rstrip(":"): int(words[1]) for words in lines}

    def read(self, full: bool = False) -> "List[Value]":
        """Free memory and caches that can be given up are available."""
        now = self._kilobytes()
        return [(now["MemTotal"] - now["MemAvailable"]) * 1024.0]


def disk_of(directory: str, sys: str = "/sys") -> "Optional[str]":
    """Return the name of the disk that holds a directory, None where none does (network, memory, overlay)."""
    try:
        device = os.stat(directory).st_dev
    except OSError:
        return None
    place = os.path.realpath("%s/dev/block/%d:%d" % (sys, os.major(device), os.minor(device)))
    if not os.path.exists(place):
        return None
    if os.path.exists(os.path.join(place, "partition")):
        place = os.path.dirname(place)
    return os.path.basename(place)


class Disks(Source):
    """/proc/diskstats of the disks that hold `directories`; where none is found, of all physical ones."""

    def __init__(self, directories: "Sequence[str]") -> None:
        super().__init__()
        there = set(self._fields())
        data_disks = {disk_of(directory) for directory in directories} & there
        disks = listed("/sys/block")
        physical = {os.path.basename(disk) for disk in disks if os.path.exists(os.path.join(disk, "device"))}
        self.names = sorted(name for name in data_disks or physical & there if name)
        if not self.names:
            raise Absent("absent.no-disk", path="/proc/diskstats")
        for name in self.names:
            self.columns += [
                ("disk:%s:read" % name, "counter", "B"),
                ("disk:%s:written" % name, "counter", "B"),
                ("disk:%s:busy" % name, "counter", "s"),
            ]
        self.about = {"disks_hold_the_data": bool(data_disks)}

    def _fields(self) -> "Dict[str, List[str]]":
        lines = [line.split() for line in text("/proc/diskstats").splitlines()]
        return {words[2]: words for words in lines if len(words) > 12}

    def read(self, full: bool = False) -> "List[Value]":
        """Busy is the time in which at least one request was under way."""
        now = self._fields()
        values: List[Value] = []
        for name in self.names:
            words = now.get(name)
            if words is None:
                values += [None, None, None]
            else:
                read, written_sectors, busy = int(words[5]), int(words[9]), int(words[12])
                values += [read * float(SECTOR), written_sectors * float(SECTOR), busy / 1000.0]
        return values


class Network(Source):
    """/proc/net/dev: bytes of each interface, loopback included."""

    def __init__(self) -> None:
        super().__init__()
        self.names = sorted(self._fields())
        if not self.names:
            raise Absent("absent.no-interface", path="/proc/net/dev")
        for name in self.names:
            self.columns += [
                ("network:%s:received" % name, "counter", "B"),
                ("network:%s:sent" % name, "counter", "B"),
            ]
        pattern = "/sys/class/net/%s/%s"
        speeds = {name: number(pattern % (name, "speed")) for name in self.names}
        self.about = {
            "physical_interfaces": [
                name for name in self.names if os.path.exists(pattern % (name, "device"))
            ],
            "network_megabits": {
                name: speed
                for name, speed in speeds.items()
                if speed and speed > 0 and speed not in UNKNOWN_SPEEDS
            },
        }

    def _fields(self) -> "Dict[str, List[str]]":
        fields_of = {}
        for line in text("/proc/net/dev").splitlines()[2:]:
            name, _, fields = line.rpartition(":")
            fields_of[name.strip().replace(",", "_")] = fields.split()
        return fields_of

    def read(self, full: bool = False) -> "List[Value]":
        """An interface that is gone has no value."""
        now = self._fields()
        values: List[Value] = []
        for name in self.names:
            fields = now.get(name)
            values += [float(fields[0]), float(fields[8])] if fields else [None, None]
        return values


class InfiniBand(Source):
    """Counters of the data that the ports of InfiniBand and RoCE adapters moved."""

    def __init__(self, top: str = "/sys/class/infiniband") -> None:
        super().__init__()
        ports = [port for adapter in listed(top) for port in listed(os.path.join(adapter, "ports"))]
        self.ports = [
            path for path in (os.path.join(port, "counters") for port in ports) if os.path.exists(path)
        ]
        if not self.ports:
            raise Absent("absent.no-port", path=top)
        rates = {}
        for path in self.ports:
            words = path.split("/")
            name = "%s/%s" % (words[-4], words[-2])
            self.columns += [
                ("infiniband:%s:received" % name, "counter", "B"),
                ("infiniband:%s:sent" % name, "counter", "B"),
            ]
            rate = text(os.path.join(os.path.dirname(path), "rate")).split()
            rates[name] = float(rate[0]) * 1000 if rate else 0.0
        self.about = {"infiniband_megabits": {name: rate for name, rate in rates.items() if rate > 0}}

    def read(self, full: bool = False) -> "List[Value]":
        """The counters count words of four bytes."""
        values: List[Value] = []
        for path in self.ports:
            for name in ("port_rcv_data", "port_xmit_data"):
                words = number(os.path.join(path, name))
                values.append(None if words is None else words * WORD)
        return values


class HostEnergy(Source):
    """RAPL: the joules of each processor package. Readable for root alone since 2020."""

    def __init__(self, top: str = "/sys/class/powercap") -> None:
        super().__init__()
        # intel-rapl:0 is a package, intel-rapl:0:1 a part of it.
        names = [path.rpartition("/")[2].split(":") for path in listed(top)]
        packages = [":".join(name) for name in names if name[0] == "intel-rapl" and len(name) == 2]
        self.paths = [os.path.join(top, package, "energy_uj") for package in packages]
        if not self.paths:
            raise Absent("absent.no-package", path=top)
        for path in self.paths:
            text(path)
            package = os.path.dirname(path).rpartition(":")[2]
            self.columns.append(("host:%s:energy" % package, "counter", "J"))
        self.last: Dict[str, float] = {}
        self.turns: Dict[str, float] = {}

    def read(self, full: bool = False) -> "List[Value]":
        """The counter starts again from 0 after max_energy_range_uj."""
        values: List[Value] = []
        for path in self.paths:
            now = number(path)
            if now is not None:
                if now < self.last.get(path, 0.0):
                    span = number(os.path.join(os.path.dirname(path), "max_energy_range_uj"))
                    self.turns[path] = self.turns.get(path, 0.0) + (span or 0.0)
                self.last[path] = now
                now = (now + self.turns.get(path, 0.0)) / 1e6
            values.append(now)
        return values


class JobShare(Source):
    """The processes of the job, known by `words` (NAME=value) of their environment: their time and memory.

    A process that rewrites its title (stress-ng, setproctitle) loses its environment: its parent tells.
    Memory is what they have resident; pages that several of them share count for each. They are queued while
    they could compute, but have no processor; of threads that ended meanwhile nothing tells it. A thread is
    busy for the part of the time since the reading before in which it computed or was queued.
    """

    paces_its_parts = True

    def __init__(self, *words: bytes) -> None:
        super().__init__()
        self.words = set(words)
        self.columns = [
            ("job::busy", "counter", "s"),
            ("job::memory", "gauge", "B"),
            ("job::queued", "counter", "s"),
            ("job::busiest_thread", "gauge", ""),
            ("job::next_thread", "gauge", ""),
        ]
        starter = procfs.started(os.getppid())  # what starts the job has started this process
        self.since = starter[0] if starter else 0
        self.older: Set[Tuple[int, int]] = set()
        self.own: Set[Tuple[int, int]] = set()
        self.pids: List[int] = []
        self.seek = Pace(ALLOWED / 2, by_ends=True)  # a job has most of its processes from the first step on
        self.use, self.wait = Pace(), Pace()  # threads can be many more than processes
        self.wanted: Dict[int, int] = {}
        self.read_at = 0.0

    def search(self) -> None:
        """Find the processes. What is older than the job cannot be of it, and is looked at once.

        A process stays the job's whatever happens to its environment, and whoever becomes its parent; one
        that ended does until its parent asks how, because its time is not in its parent's before. A process
        is known by its pid and its inode: a pid is given again.
        """
        there = procfs.listed()
        self.older.intersection_update(there.items())
        self.own.intersection_update(there.items())
        parents = {}
        for process in there.items() - self.older:
            start = procfs.started(process[0])
            if start and start[0] >= self.since:
                parents[process[0]] = start[1]
            elif start:
                self.older.add(process)
        own = {pid for pid, _ in self.own}
        environments = procfs.environments(parents.keys() - own)
        own.update(pid for pid, environment in environments if environment.issuperset(self.words))
        descendants = procfs.below(own, parents) - procfs.below({os.getpid()}, parents)
        self.own = {(pid, there[pid]) for pid in descendants}
        self.pids = sorted(descendants)

    def read(self, full: bool = False) -> "List[Value]":
        """Time of processes that ended counts where their parent is one of the job's."""
        if self.seek.turn(full):
            with self.seek:
                self.search()
        values: List[Value] = [PUT_OFF] * len(self.columns)
        if self.use.turn(full):
            with self.use:
                values[:2] = procfs.usage_of(self.pids)
        if self.wait.turn(full):
            with self.wait:
                values[2:] = self._threads()
        return values

    def _threads(self) -> "List[Value]":
        """Return the seconds that threads were queued, and how busy the busiest of them is and the next."""
        now, threads = time.monotonic(), procfs.threads(self.pids)
        if not threads:
            return [None] * 3
        span = 1e9 * (now - self.read_at)
        before, self.read_at = self.wanted, now
        self.wanted = {thread: computed + queued for thread, (computed, queued) in threads.items()}
        # Of a thread that was not known before, nothing tells how much of its time lies in between.
        shares = sorted(
            (self.wanted[thread] - before[thread]) / span for thread in before if thread in threads
        )
        busiest = [shares[-1], shares[-2] if shares[1:] else 0.0] if shares else [None, None]
        return [sum(queued for _, queued in threads.values()) / 1e9, *busiest]
