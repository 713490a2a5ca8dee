# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Faults of hardware, as far as containers can have them: slow links, a slow node, a core that is taken."""

import contextlib
import math
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from . import link
from .base import run
from .nodes import Cluster
from .processes import NodeView, scan

PERIOD = 10_000
"""Microseconds in which a node gets its share: with a longer period short operations run unhindered."""
MARK = "SCALEBOOK_PLANTED"
BUSY = ("exec", "--detach", "--env", f"{MARK}=1")
BURST = ("burst", "256kb", "cburst", "256kb")
HEALTHY = "1:2"
"""The class of what no filter takes to another one."""


class Planted(NamedTuple):
    """A fault: its kind, one of KINDS, and the nodes that it is on."""

    kind: str
    nodes: tuple[str, ...]


class Ground:
    """The nodes with a processor and a cable each, and what is planted on them.

    As many nodes as the machine has processors can be measured alone at a time; the next ones have the same
    processors.  `slow` is the share of its processor that a slow node has.  `healthy` and `rate` are the
    rates of a healthy and of a slow cable, as tc writes them: low enough for the processors.
    """

    def __init__(self, cluster: Cluster, count: int, slow: float, healthy: str, rate: str) -> None:
        self.cluster, self.slow, self.healthy, self.rate = cluster, slow, healthy, rate
        self.nodes = {f"NODE{number}": NodeView(cluster, number) for number in range(1, count + 1)}

    def plant(self, fault: Planted) -> None:
        """Plant a fault."""
        KINDS[fault.kind](self, *fault.nodes)

    def clear(self) -> None:
        """Make all nodes healthy and equal, whatever was planted."""
        views = list(self.nodes.values())
        for pids in scan(views, MARK).values():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        for view in views:
            view.refresh()
            self.limit(view.name, 1)
            for end in (self.sending(view.name), self.receiving(view.name)):
                end("qdisc", "del", "root", check=False)  # where there is one
                end("qdisc", "add", "root", "handle", "1:", "htb", "default", "2")
                end("class", "add", "parent", "1:", "classid", HEALTHY, "htb", "rate", self.healthy, *BURST)

    def processor_seconds(self) -> float:
        """Return how long the processors have computed for all nodes."""
        return sum(_processor_seconds(view.pid) for view in self.nodes.values())

    def groups(self) -> list[list[str]]:
        """Return the nodes that do not share a processor, in groups."""
        names, at_once = [*self.nodes], os.cpu_count() or 1
        return [names[first : first + at_once] for first in range(0, len(names), at_once)]

    def processor(self, node: str) -> int:
        """Return the number of the processor that a node computes on."""
        return (self.nodes[node].number - 1) % (os.cpu_count() or 1)

    def hit(self, fault: Planted) -> Planted:
        """Return a fault with all nodes that it slows down: those on a core that is taken, too."""
        if fault.kind != "core taken":
            return fault
        taken = {self.processor(node) for node in fault.nodes}
        return fault._replace(nodes=tuple(node for node in self.nodes if self.processor(node) in taken))

    def limit(self, node: str, share: float) -> None:
        """Give a node a share of its processor."""
        number, processor = self.nodes[node].number, self.processor(node)
        limits = ("--cpu-period", str(PERIOD), "--cpu-quota", str(int(share * PERIOD)))
        self.cluster.engine("update", *limits, "--cpuset-cpus", str(processor), self.cluster.name(number))

    def sending(self, node: str) -> Callable[..., object]:
        """Return what calls tc for the node's end of its cable."""
        return self.tc("eth0", "nsenter", "-t", str(self.nodes[node].pid), "-n")

    def receiving(self, node: str) -> Callable[..., object]:
        """Return what calls tc for the other end of the node's cable."""
        return self.tc(link.find(self.cluster, self.nodes[node].number))

    @staticmethod
    def tc(interface: str, *before: str) -> Callable[..., object]:
        """Return what calls tc for an interface, with the words of an object, of what is done, and others."""

        def call(what: str, done: str, *words: str, check: bool = True) -> object:
            return run([*before, "tc", what, done, "dev", interface, *words], check=check)

        return call

    # -- the kinds ---------------------------------------------------------------------------------

    def slow_node(self, node: str) -> None:
        """Give the node a share of its processor only, as cpulimit does."""
        self.limit(node, self.slow)

    def taken_core(self, node: str) -> None:
        """Start a process that computes for ever; it gets as much of the node's time as what is measured."""
        self.cluster.engine(
            *BUSY, self.cluster.name(self.nodes[node].number), "python3", "-c", "while True: pass"
        )

    def slow_outgoing(self, node: str) -> None:
        """Limit what the node sends."""
        self.sending(node)("class", "change", "classid", HEALTHY, "htb", "rate", self.rate, *BURST)

    def slow_incoming(self, node: str) -> None:
        """Limit what the node receives, at the other end of its cable."""
        self.receiving(node)("class", "change", "classid", HEALTHY, "htb", "rate", self.rate, *BURST)

    def slow_direction(self, source: str, target: str) -> None:
        """Limit what one node sends to another one."""
        tc, address = self.sending(source), self.cluster.address(self.nodes[target].number)
        tc("class", "add", "parent", "1:", "classid", "1:1", "htb", "rate", self.rate, *BURST)
        match = ("u32", "match", "ip", "dst", f"{address}/32", "flowid", "1:1")
        tc("filter", "add", "parent", "1:", "protocol", "ip", "prio", "1", *match)

    def slow_link(self, one: str, other: str) -> None:
        """Limit what two nodes send each other."""
        self.slow_direction(one, other)
        self.slow_direction(other, one)


KINDS: dict[str, Callable[..., None]] = {
    "slow node": Ground.slow_node,
    "core taken": Ground.taken_core,
    "outgoing": Ground.slow_outgoing,
    "incoming": Ground.slow_incoming,
    "link": Ground.slow_link,
    "direction": Ground.slow_direction,
}
"""Those of links have the names of `faults` in acceptance.json."""
OF_PROCESSORS = ("slow node", "core taken")
OF_TWO_NODES = ("link", "direction")


def named(fault: Planted, acceptance: dict[str, Any]) -> bool:
    """Return whether a verdict names the planted fault, and nothing else.

    A node that computes slowly also sends slowly, so that its links may be named beside it.  Of the nodes on
    a core that is taken one is enough: half of all are slow then, so that none is off the median.
    """
    nodes = set(fault.nodes)
    bad = [row for row in acceptance["findings"] if row["verdict"] == "bad"]
    if fault.kind in OF_PROCESSORS:
        alone = [row for row in bad if row["quantity"] != "link"]
        return (
            bool(alone)
            and all(set(row["nodes"]) & nodes for row in bad)
            and bool(acceptance["bad"])
            and set(acceptance["bad"]) <= nodes
        )
    cause = sorted(fault.nodes) if fault.kind == "link" else [*fault.nodes]
    return (
        acceptance["faults"] == [{"kind": fault.kind, "nodes": cause}]
        and len(acceptance["bad"]) == 1
        and set(acceptance["bad"]) <= nodes
    )


def _processor_seconds(pid: int) -> float:
    """Return how long the control group of a process has computed, by cgroup v1 or v2."""
    groups = [line.split(":", 2) for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()]
    for _, names, path in groups:
        usage = Path(f"/sys/fs/cgroup/cpuacct{path}/cpuacct.usage")
        if "cpuacct" in names.split(",") and usage.exists():
            return int(usage.read_text()) / 1e9
    for _, names, path in groups:
        status = Path(f"/sys/fs/cgroup{path}/cpu.stat")
        if not names and status.exists():
            return int(status.read_text().split()[1]) / 1e6  # usage_usec
    return 0.0


def proportion(count: int, total: int) -> tuple[float, float]:
    """Return the exact 95 % interval of a proportion (Clopper and Pearson, Biometrika 26, 1934)."""
    return (
        _solve(lambda share: _at_least(count, total, share), 0.025) if count else 0.0,
        _solve(lambda share: 1 - _at_least(count + 1, total, share), 0.025, falls=True)
        if count < total
        else 1.0,
    )


def _at_least(count: int, total: int, share: float) -> float:
    """Return the probability of `count` or more of `total`."""
    return math.fsum(
        math.comb(total, number) * share**number * (1 - share) ** (total - number)
        for number in range(count, total + 1)
    )


def _solve(function: Callable[[float], float], value: float, falls: bool = False) -> float:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if (function(middle) < value) != falls:
            low = middle
        else:
            high = middle
    return (low + high) / 2
