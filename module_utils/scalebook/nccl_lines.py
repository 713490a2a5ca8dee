# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The lines of NCCL -> what the GPUs of a run are connected by, as NCCL chose it.

The forms of the lines are those of NCCL 2.18 to 2.30: src/transport/net.cc, p2p.cc and shm.cc print a line
for each connection («Channel 00/0 : 1[1] -> 8[0] [send] via NET/IB/0(8)/GDRDMA»; the number in parentheses is
the rank whose adapter is used, PXN), src/transport/net_ib.cc (net_ib/init.cc in 2.30) and net_socket.cc the
devices («Using [0]mlx5_0:1/RoCE»), src/init.cc the version, the ranks and the channels, src/graph/paths.cc
how far each GPU is from each device («GPU/0-1b000 :… NET/0-2 (3/48.0/PIX)», numbers in hex).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook import network
from ansible.module_utils.scalebook.contracts import FarAdapter, Interconnect

MARK = "NCCL "
"""What every line of NCCL has."""
DISTANCES = ("LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS")
"""The kinds of paths of NCCL (src/graph/topo.cc, 2.28), the shortest first."""

_LINE = re.compile(r"(\S+:\d+):\d+ (\[\d+\]) NCCL INFO (.*)")
_NODE = re.compile(r"NODE (\d+)")
_VERSION = re.compile(r"NCCL version (\d+\.\d+\.\d+)")
_CONNECTION = re.compile(
    r"(?:Channel|CollNet) \S+ : .* via (?P<kind>NET|COLLNET|P2P|SHM)(?:/(?P<how>direct pointer|[^/\s]+))?"
    r"(?:/(?P<device>\d+)(?P<proxy>\(\d+\))?(?P<rest>\S*))?"
)
_ADAPTER = re.compile(r"\[(\d+)\](\S+?:\d+)/(IB|RoCE)")
_MERGED = re.compile(r"Made virtual device \[(\d+)\] name=(\S+)")
_INTERFACE = re.compile(r"\[(\d+)\]([^\s:]+):")
_PLACE = re.compile(r" rank (\d+) n[rR]anks \d+ .*busId ([0-9a-f]+)")
_CHANNELS = re.compile(r"(\d+) coll channels(?:.* (\d+) nvls channels)?")
_PATHS = re.compile(r"GPU/(?:[0-9A-Fa-f]+-)?([0-9A-Fa-f]+) :")
_PATH = re.compile(r"(GPU|NET)/(?:[0-9A-Fa-f]+-)?([0-9A-Fa-f]+) \(\d+/[\d.]+/([A-Z0-9]+)\)")


def of_text(names: Sequence[str], text: str) -> Interconnect | None:
    """Return what NCCL said in a file of all nodes: `NODE 0` is before the lines of the first."""
    lines: list[list[str]] = [[] for _ in names]
    current: list[str] = []
    for line in text.splitlines():
        head = _NODE.fullmatch(line)
        if head:
            current = lines[int(head[1])] if int(head[1]) < len(names) else []
        current.append(line)
    return of_nodes(names, lines)


def of_nodes(names: Sequence[str], lines: Iterable[Iterable[str]]) -> Interconnect | None:
    """Return what NCCL said in the `lines` of the nodes `names`; None where it said nothing."""
    of_each = [_Node(each) for each in lines]
    if not any(each.connections or each.versions for each in of_each):
        return None
    transports: Counter[str] = sum((each.transports() for each in of_each), Counter())
    channels = [each.channels for each in of_each if each.channels]
    connected: Interconnect = {
        "versions": sorted(set().union(*(each.versions for each in of_each))),
        "transports": dict(sorted(transports.items())),
        "links": sorted(set().union(*(each.links for each in of_each)), key=_far),
        "adapters": sorted(set().union(*(each.adapters() for each in of_each))),
        "far": [far for name, each in zip(names, of_each, strict=True) for far in each.far(name)],
    }
    direct = [way for each in of_each for way in each.gpudirect()]
    if direct:
        connected["gpudirect"] = all(direct)
    if channels:
        connected["channels"] = max(count for count, _ in channels)
        connected["nvls"] = any(nvls for _, nvls in channels)
    return connected


def _far(distance: str) -> int:
    return DISTANCES.index(distance) if distance in DISTANCES else len(DISTANCES)


class _Node:
    """What the processes of one node have said of each of their GPUs, by `host:pid[GPU]`."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.versions: set[str] = set()
        self.links: set[str] = set()
        self.channels: tuple[int, bool] | None = None
        self.connections: list[tuple[str, Mapping[str, str | None]]] = []
        self.names: dict[str, str] = {}
        self.interfaces: dict[str, str] = {}
        self.places: dict[str, tuple[int, str]] = {}
        self.paths: dict[str, dict[str, str]] = {}
        for line in lines:
            self._hear(line)

    def _hear(self, line: str) -> None:
        version, match = _VERSION.search(line), _LINE.search(line)
        if version:
            self.versions.add(version[1])
        if not match:
            return
        process, text = match[1] + match[2], match[3]
        connection, place, channels = (each.search(text) for each in (_CONNECTION, _PLACE, _CHANNELS))
        if connection:
            self.connections.append((process, connection.groupdict()))
        elif place:
            self.places[process] = int(place[1]), place[2].lower()
        elif channels:
            most, nvls = self.channels or (0, False)
            self.channels = max(most, int(channels[1])), nvls or int(channels[2] or 0) > 0
        elif text.startswith("NET/"):
            self._hear_of_devices(text)
        elif _PATHS.match(text):
            self._hear_of_paths(text)

    def _hear_of_devices(self, text: str) -> None:
        own, _, _ = text.partition("; OOB")
        if text.startswith(network.SOCKET):
            self.interfaces.update(_INTERFACE.findall(own) if "Using" in own else ())
        self.names.update({index: f"{name} ({link})" for index, name, link in _ADAPTER.findall(own)})
        self.names.update(_MERGED.findall(own))

    def _hear_of_paths(self, text: str) -> None:
        gpu, _, paths = text.partition(" :")
        own = gpu.rpartition("/")[2].rpartition("-")[2].lower()
        for kind, other, distance in _PATH.findall(paths):
            if kind == "NET":
                self.paths.setdefault(own, {})[str(int(other, 16))] = distance
            elif distance != "LOC":
                self.links.add(distance)

    def transports(self) -> Counter[str]:
        """Return how many connections there are of each transport."""
        return Counter(
            "SHM" if way["kind"] == "SHM" else f"{way['kind']}/{way['how']}" for _, way in self.connections
        )

    def _over_network(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        return (each for each in self.connections if each[1]["kind"] == "NET")

    def gpudirect(self) -> list[bool]:
        """Return for each connection through an adapter whether it reaches the memory of the GPU itself."""
        return ["GDRDMA" in (way["rest"] or "") for _, way in self._over_network() if way["how"] != "Socket"]

    def _name(self, way: Mapping[str, Any]) -> str:
        names = self.interfaces if way["how"] == "Socket" else self.names
        return names.get(way["device"], f"{way['how']}/{way['device']}")

    def adapters(self) -> set[str]:
        """Return the devices that connections to other nodes go through."""
        return {self._name(way) for _, way in self._over_network()}

    def far(self, node: str) -> list[FarAdapter]:
        """Return the GPUs that do not use their nearest adapter; with PXN they use that of another rank."""
        far: dict[tuple[int, str], FarAdapter] = {}
        for process, way in self._over_network():
            rank, gpu = self.places.get(process, (-1, ""))
            paths = self.paths.get(gpu, {})
            if way["proxy"] or way["how"] == "Socket" or way["device"] not in paths:
                continue
            distance, nearest = paths[way["device"]], min(paths, key=lambda device: _far(paths[device]))
            if _far(distance) > _far(paths[nearest]):
                far[rank, way["device"]] = {
                    "node": node,
                    "rank": rank,
                    "adapter": self._name(way),
                    "distance": distance,
                    "nearest": self._name({**way, "device": nearest}),
                    "nearest_distance": paths[nearest],
                }
        return [far[key] for key in sorted(far)]
