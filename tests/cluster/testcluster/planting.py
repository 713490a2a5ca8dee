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
QUEUE = ("burst", "256kb", "latency", "50ms")


class Planted(NamedTuple):
    """A fault: its kind, one of KINDS, and the nodes that it is on."""

    kind: str
    nodes: tuple[str, ...]


class Ground:
    """The nodes with equal shares of the machine's processors, and what is planted on them.

    `share` is how much of the processors a node has: with less than its fair share it does not matter to a
    node whether others compute at the same time.  `slow` is the share of it that a slow node has, `rate`
    that of a slow link, as tc writes it.
    """

    def __init__(self, cluster: Cluster, count: int, share: float, slow: float, rate: str) -> None:
        self.cluster, self.share, self.slow, self.rate = cluster, share, slow, rate
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
            self.limit(view.name, self.share)
            for words in (self.inside(view.name), ("tc",)):
                interface = "eth0" if len(words) > 1 else link.find(self.cluster, view.number)
                run([*words, "qdisc", "del", "dev", interface, "root"], check=False)  # where there is one

    def processor_seconds(self) -> float:
        """Return how long the processors have computed for all nodes."""
        return sum(_processor_seconds(view.pid) for view in self.nodes.values())

    def limit(self, node: str, share: float) -> None:
        """Limit the processor time of a node, in processors."""
        name = self.cluster.name(self.nodes[node].number)
        quota = max(1000, int(share * PERIOD))
        self.cluster.engine("update", "--cpu-period", str(PERIOD), "--cpu-quota", str(quota), name)

    def inside(self, node: str) -> tuple[str, ...]:
        """Return the words before the options of tc in the network of a node."""
        return "nsenter", "-t", str(self.nodes[node].pid), "-n", "tc"

    # -- the kinds ---------------------------------------------------------------------------------

    def slow_node(self, node: str) -> None:
        """Take a share of its processor time from the node, as cpulimit does."""
        self.limit(node, self.share * self.slow)

    def taken_core(self, node: str) -> None:
        """Start a process that computes for ever; it gets as much of the node's time as what is measured."""
        self.cluster.engine(
            *BUSY, self.cluster.name(self.nodes[node].number), "python3", "-c", "while True: pass"
        )

    def slow_outgoing(self, node: str) -> None:
        """Limit what the node sends."""
        run([*self.inside(node), "qdisc", "replace", "dev", "eth0", "root", "tbf", "rate", self.rate, *QUEUE])

    def slow_incoming(self, node: str) -> None:
        """Limit what the node receives, at the other end of its cable."""
        interface = link.find(self.cluster, self.nodes[node].number)
        run(["tc", "qdisc", "replace", "dev", interface, "root", "tbf", "rate", self.rate, *QUEUE])

    def slow_direction(self, source: str, target: str) -> None:
        """Limit what one node sends to another one."""
        on, address = ("dev", "eth0"), self.cluster.address(self.nodes[target].number)
        for words in (
            ("qdisc", "replace", *on, "root", "handle", "1:", "htb"),  # what has no class is not limited
            ("class", "replace", *on, "parent", "1:", "classid", "1:1", "htb", "rate", self.rate),
            (
                *("filter", "replace", *on, "parent", "1:", "protocol", "ip", "prio", "1"),
                *("u32", "match", "ip", "dst", f"{address}/32", "flowid", "1:1"),
            ),
        ):
            run([*self.inside(source), *words])

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

    A node that computes slowly also sends slowly, so that its links may be named beside it.
    """
    nodes = set(fault.nodes)
    bad = [row for row in acceptance["findings"] if row["verdict"] == "bad"]
    if fault.kind in OF_PROCESSORS:
        alone = [row for row in bad if row["quantity"] != "link"]
        return (
            bool(alone)
            and all(set(row["nodes"]) & nodes for row in bad)
            and acceptance["bad"] == [*fault.nodes]
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
