#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Binds the processes of a run to the processors beside their GPU, where a machine has several NUMA nodes.

The first run_node of a node does it for all ranks there, from outside: whatever starts them (mpirun, srun,
torchrun, DeepSpeed, horovodrun), each rank's number is in its environment. A process that drives all devices
is bound to the processors of all of them. Threads and processes that come later inherit the processors, and
Linux takes memory from the node of the processor that first touches it, so memory follows. Only processors
that this process may use count: a container or Slurm may allow some of them.

Runs on the nodes' own Python, 3.6 or later, standard library only.
"""

import os
import subprocess
import time
from typing import Any, Dict, Iterable, List, Optional, Set

import procfs
from messages import MessageError, message, why

ROOT = "/"
"""Where /sys is; tests have machines of their own."""

ROUNDS = 2
"""How often a process is bound: a thread may start another one while the first round goes on."""

LATEST = 60.0
"""Seconds after which ranks are not looked for any more; a run that prints steps has its first one before."""


def read_list(text: str) -> Set[int]:
    """Return the numbers of a list of the kernel: `0-3,8`."""
    parts = [part.split("-") for part in text.strip().split(",") if part]
    return {number for part in parts for number in range(int(part[0]), int(part[-1]) + 1)}


def write_list(numbers: Iterable[int]) -> str:
    """Return numbers as the kernel lists them."""
    runs: List[List[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ",".join("-".join(map(str, run)) for run in runs)


def numa_nodes() -> Dict[int, Set[int]]:
    """Return the processors of each NUMA node that this process may use; nodes without one are left out."""
    top, allowed = ROOT + "sys/devices/system/node/", os.sched_getaffinity(0)
    names = os.listdir(top) if os.path.isdir(top) else []
    numbers = sorted(int(name[4:]) for name in names if name[:4] == "node" and name[4:].isdigit())
    nodes = {number: read_list(_text("%snode%d/cpulist" % (top, number))) & allowed for number in numbers}
    return {number: cpus for number, cpus in nodes.items() if cpus}


def _text(path: str) -> str:
    """Return a file of /sys, empty where it cannot be read."""
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""


def gpu_nodes(visible: str) -> List[int]:
    """Return the NUMA node of each GPU that CUDA_VISIBLE_DEVICES names, by index or UUID.

    Raises ValueError where one of them is not known.
    """
    query = ["nvidia-smi", "--query-gpu=index,uuid,pci.bus_id", "--format=csv,noheader"]
    try:
        output = subprocess.check_output(query, stderr=subprocess.STDOUT, timeout=30).decode()
    except (OSError, subprocess.SubprocessError) as error:
        raise ValueError("nvidia-smi does not name the GPUs: %s" % error) from error
    places = {}
    for index, uuid, bus in (line.split(", ") for line in output.splitlines() if line.count(", ") == 2):
        places[index] = places[uuid] = bus.strip().lower()[-12:]  # Linux writes four digits of the domain
    nodes = []
    for device in visible.split(","):
        path = "%ssys/bus/pci/devices/%s/numa_node" % (ROOT, places.get(device))
        node = int(_text(path) or -1)
        if node < 0:
            raise ValueError("the NUMA node of GPU %s is not known" % device)
        nodes.append(node)
    return nodes


def spread(ranks: int, nodes: List[int]) -> List[List[int]]:
    """Return the NUMA nodes of each rank on processors: equal shares, in order."""
    count = len(nodes)
    return [
        nodes[rank * count // ranks : max(rank * count // ranks + 1, (rank + 1) * count // ranks)]
        for rank in range(ranks)
    ]


class BindingError(MessageError):
    """Why nothing can be bound."""


class Binding:
    """How the ranks of one node are bound; `env` is that of its job, `processes` are what mpirun starts.

    Without `mode` numa, or without several NUMA nodes, nothing is bound, and `why` says so.
    """

    def __init__(self, mode: str, env: Dict[str, str], processes: int) -> None:
        self.ranks, self.processes = int(env.get("GPUS_PER_NODE") or 1), processes
        self.marks = [("%s=%s" % (name, env.get(name, ""))).encode() for name in ("JOB_DIR", "SCALEBOOK_JOB")]
        self.cpus: List[Set[int]] = []
        self.nodes: List[List[int]] = []
        self.seen: Dict[int, str] = {}
        self.rounds: Dict[int, int] = {}
        self.began = self.next = time.monotonic()
        self.why: Optional[Dict[str, Any]] = None if mode == "numa" else message("binding.none")
        nodes = {} if self.why else numa_nodes()
        if not self.why and len(nodes) < 2:
            self.why = message("binding.one-node")
        if self.why:
            return
        try:
            visible = env.get("CUDA_VISIBLE_DEVICES", "")
            on_gpu = env.get("DEVICE") == "gpu"
            self.nodes = [[n] for n in gpu_nodes(visible)] if on_gpu else spread(self.ranks, sorted(nodes))
            if len(self.nodes) != self.ranks:
                raise BindingError("binding.other-gpus", visible=visible, ranks=self.ranks)
            self.cpus = [set().union(*(nodes[node] for node in rank)) for rank in self.nodes]
        except KeyError as error:
            self.why = message("binding.no-processor", node=str(error))
        except (BindingError, ValueError) as error:
            self.why = why(error)
        if self.cpus and all(rank == set().union(*nodes.values()) for rank in self.cpus):
            self.why, self.cpus = message("binding.all-nodes"), []

    def start(self, pid: int) -> None:
        """Bind the node script before there are ranks: to the processors of all of them."""
        if self.cpus:
            bind(pid, set().union(*self.cpus))

    def rank_of(self, environment: Set[bytes]) -> Optional[int]:
        """Return which rank of this node a process with this environment belongs to, None for no rank."""
        named = dict(word.split(b"=", 1) for word in environment if b"=" in word)
        ours = self.marks[0] in environment or (b"JOB_DIR" not in named and self.marks[1] in environment)
        if not ours:
            return None
        number = named.get(b"LOCAL_RANK")
        if self.processes == self.ranks:  # mpirun takes simulated nodes for one, and counts over all
            number = named.get(b"OMPI_COMM_WORLD_RANK")
        elif number is None and named.get(b"OMPI_COMM_WORLD_LOCAL_SIZE") == b"%d" % self.ranks:
            number = named.get(b"OMPI_COMM_WORLD_LOCAL_RANK")  # of an mpirun within the node script
        return int(number) % self.ranks if number and number.isdigit() else None

    def look(self, excluded: Set[int], last: bool = False) -> None:
        """Bind the ranks that are there and not bound yet, and keep what processors each has.

        With `last` now, otherwise not again before some time has passed. `excluded` are not of the run.
        """
        now = time.monotonic()
        if not self.cpus or (not last and (now < self.next or now - self.began > LATEST)):
            return
        for pid, environment in procfs.environments():
            rank = None if pid in excluded else self.rank_of(environment)
            if rank is None:
                continue
            if self.rounds.get(pid, 0) < ROUNDS:  # what binds itself later is let be
                self.rounds[pid] = self.rounds.get(pid, 0) + 1
                bind(pid, self.cpus[rank])
            try:
                self.seen[rank] = write_list(os.sched_getaffinity(pid))
            except OSError:
                continue  # it ended meanwhile
        # Short at first, so that ranks are bound before they start threads; little work later.
        self.next = now + max(0.1, 5 * (time.monotonic() - now), (now - self.began) / 20)

    def record(self) -> Dict[str, Any]:
        """Return what was done, for the record: the processors that each rank was seen with."""
        if not self.cpus:
            return {"mode": "none", "why": self.why, "cpus": write_list(os.sched_getaffinity(0))}
        ranks = [
            {"rank": rank, "numa_nodes": nodes, "cpus": self.seen.get(rank)}
            for rank, nodes in enumerate(self.nodes)
        ]
        if self.seen:
            return {"mode": "numa", "memory": "first touch", "ranks": ranks}
        together, allowed = set().union(*self.cpus), os.sched_getaffinity(0)
        if together >= allowed:
            return {"mode": "none", "why": message("binding.no-process"), "cpus": write_list(allowed)}
        return {"mode": "numa", "memory": "first touch", "ranks": [], "cpus": write_list(together)}


def bind(pid: int, cpus: Set[int]) -> None:
    """Bind all threads of a process to processors."""
    try:
        threads = os.listdir("/proc/%d/task" % pid)
    except OSError:
        return  # it ended meanwhile
    for thread in threads:
        try:
            os.sched_setaffinity(int(thread), cpus)
        except OSError:
            continue
