# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Checks of the machines and of the network between them (preflight.judge asks them all)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.preflight_site import Finding, Site, finding

Interval = tuple[float, float]


def reach(site: Site) -> Iterator[Finding]:
    """The controller gets an answer from every machine."""
    for machine in site.machines:
        seen = site.seen.get(machine["name"])
        error = "no answer" if seen is None else seen.get("error")
        if error:
            cure = f"ansible -i INVENTORY {machine['name']} -m ping shows it; its host key must be known"
            yield finding("reach", "refuse", machine["nodes"], error, "an answer", cure)


def shell(site: Site) -> Iterator[Finding] | None:
    """A login is quick: every start of every run waits for it."""
    return _shell(site) if not all(machine["local"] for machine in site.machines) else None


def _shell(site: Site) -> Iterator[Finding]:
    limit = float(site.limits["login_seconds"])
    cure = (
        "look for what is slow in ~/.bashrc, ~/.profile and /etc/profile.d (conda init, module load, a home "
        "directory on a slow server)"
    )
    for machine, took in site.facts("login"):
        for kind, what in (("command", "a command by ssh"), ("login", "a login shell")):
            seconds = took[kind]
            if seconds is None or seconds > limit:
                said = f"more than {2 * limit:g}" if seconds is None else f"{seconds:.1f}"
                found = f"{what} waits {said} s for {took['shell']}"
                yield finding("shell", "warn", machine["nodes"], found, f"at most {limit:g} s", cure)
                break
    yield from site.failures("login", "shell", "warn", "a login shell that starts", cure)


def login(site: Site) -> Iterator[Finding] | None:
    """Every machine logs in to every other, as mpirun does."""
    return _login(site) if site.connected else None


def _login(site: Site) -> Iterator[Finding]:
    cure = "ansible-playbook provision.yml lets the nodes log in to each other and writes their host keys"
    names = {machine["name"]: machine for machine in site.machines}
    refused: dict[str, dict[str, str]] = {}
    asked = [machine["name"] for machine, _ in site.facts("peers")]
    for machine, peers in site.facts("peers"):
        for peer, said in peers.items():
            if "error" in said and peer in names:
                refused.setdefault(peer, {})[machine["name"]] = said["error"]
    for peer, whys in refused.items():
        why = next(iter(whys.values()))
        if len(whys) > 1 and set(whys) >= set(asked) - {peer}:
            found = f"no other node can log in to {peer}: {why}"
            yield finding("login", "refuse", names[peer]["nodes"], found, "a login by key", cure)
        else:
            for name, each in whys.items():
                found = f"{name} cannot log in to {peer}: {each}"
                yield finding("login", "refuse", [name, peer], found, "a login by key", cure)
    yield from site.failures("peers", "login", "refuse", "a login by key", cure)


def name(site: Site) -> Iterator[Finding] | None:
    """Every machine knows every node by name, at its address, and itself by a name of its own."""
    return _name(site) if site.connected else None


def _name(site: Site) -> Iterator[Finding]:
    cure = "ansible-playbook provision.yml writes the nodes into /etc/hosts"
    owners: dict[str, list[str]] = {}
    for machine, names in site.facts("names"):
        owners.setdefault(names["own"], []).append(machine["name"])
        known = names["nodes"]
        for other in site.machines:
            there = known.get(other["address"]) or [other["address"]]
            for node in other["nodes"]:
                addresses = known.get(node) or []
                if not set(addresses) & set(there):
                    found = f"{node} is {_and(addresses) or 'unknown'} there"
                    yield finding("name", "refuse", machine["nodes"], found, other["address"], cure)
        own = names["own_addresses"]
        if own and all(ipaddress.ip_address(address.split("%")[0]).is_loopback for address in own):
            found = f"its own name {names['own']} is {_and(own)}, at which no other node finds it"
            yield finding("name", "warn", machine["nodes"], found, machine["address"], cure)
    for own, machines in owners.items():
        if len(machines) > 1:
            found = f"{_and(machines)} all call themselves {own}: NCCL takes them for one machine"
            yield finding("name", "refuse", machines, found, "a name each", "hostnamectl set-hostname NAME")
    yield from site.failures("names", "name", "refuse", "names that resolve", cure)


def address(site: Site) -> Iterator[Finding] | None:
    """The address of every machine is on one interface, in one network, and traffic leaves from it."""
    return _address(site) if site.connected else None


def _address(site: Site) -> Iterator[Finding]:
    cure = "set ansible_host (or node_address) to the address of the interface that runs shall use"
    wanted = site.limits.get("subnet") or ""
    network = ipaddress.ip_network(wanted, strict=False) if wanted else None
    mtus: dict[int, list[str]] = {}
    for machine, interfaces in site.facts("interfaces"):
        own = set(_own(site, machine))
        holding = {
            interface: fields
            for interface, fields in interfaces.items()
            if own & {place.split("/")[0] for place in fields["addresses"]}
        }
        if len(holding) != 1:
            there = _and(
                f"{interface} {_and(fields['addresses'])}" for interface, fields in interfaces.items()
            )
            found = f"{machine['address']} is on {_and(holding) or 'none of its interfaces'} ({there})"
            yield finding("address", "refuse", machine["nodes"], found, "on one interface", cure)
            continue
        [(interface, fields)] = holding.items()
        mtus.setdefault(fields.get("mtu", 0), []).append(machine["name"])
        if not fields.get("up", True):
            found = f"{interface} with {machine['address']} is down"
            yield finding("address", "refuse", machine["nodes"], found, "up", f"ip link set {interface} up")
        place = next(
            ipaddress.ip_interface(each) for each in fields["addresses"] if each.split("/")[0] in own
        )
        network = network or place.network
        if place.ip not in network:
            level = "refuse" if wanted else "warn"
            found = f"{machine['address']} on {interface} is not in {network}"
            yield finding("address", level, machine["nodes"], found, f"all nodes in {network}", cure)
        yield from _routes(site, machine, own)
        yield from _chosen(site, machine, interface)
    if len(mtus) > 1:
        found = "; ".join(f"MTU {mtu}: {_and(names)}" for mtu, names in sorted(mtus.items()))
        fewest = min(mtus.values(), key=len)
        yield finding("address", "warn", fewest, found, "one MTU", "ip link set INTERFACE mtu N")
    yield from site.failures("interfaces", "address", "warn", "ip of iproute2", "apt-get install iproute2")


def _routes(site: Site, machine: Mapping[str, Any], own: set[str]) -> Iterator[Finding]:
    strays: dict[str, list[str]] = {}
    for peer, source in (site.fact(machine, "routes") or {}).items():
        if source not in own:
            strays.setdefault(source, []).append(peer)
    for source, peers in strays.items():
        found = f"traffic to {_and(peers)} leaves from {source}"
        cure = "ip route get ADDRESS shows the way it takes; remove the route over the other interface"
        yield finding("address", "refuse", machine["nodes"], found, machine["address"], cure)


def _chosen(site: Site, machine: Mapping[str, Any], interface: str) -> Iterator[Finding]:
    """What NCCL, Gloo and TensorPipe are told to use must be the interface with the node's address."""
    told: dict[str, str] = {}
    for line in site.fact(machine, "nccl") or []:
        variable, _, value = line.partition("=")
        told.setdefault(variable, value)  # of two settings the first counts
    for variable, value in told.items():
        if variable.startswith("NCCL") and not site.with_gpus:
            continue
        if not _names_interface(value, interface):
            found = f"{variable}={value} is not {interface}, which has {machine['address']}"
            cure = f"set {variable}=={interface} (nccl_subnet, then provision.yml), or unset it"
            yield finding("address", "refuse", machine["nodes"], found, interface, cure)


def _names_interface(value: str, interface: str) -> bool:
    """Return whether NCCL would take `interface`: prefixes, `=` for exact names, `^` for all but these.

    https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-socket-ifname
    """
    kind, words = re.fullmatch(r"(\^?=?)(.*)", value, re.DOTALL).groups()  # type: ignore[union-attr]
    exact = kind.endswith("=")
    hit = any(interface == word if exact else interface.startswith(word) for word in words.split(",") if word)
    return hit != kind.startswith("^")


def clock(site: Site) -> Iterator[Finding] | None:
    """The clocks of the machines agree."""
    return _clock(site) if site.connected else None


def _clock(site: Site) -> Iterator[Finding]:
    offsets = _offsets(site)
    if not offsets:
        return
    # Most clocks are right: the one in the middle stands for them.
    middle = sorted(offsets, key=lambda machine: sum(offsets[machine]))[(len(offsets) - 1) // 2]
    warn, refuse = float(site.limits["clock_warn"]), float(site.limits["clock_refuse"])
    names = {machine["name"]: machine["nodes"] for machine in site.machines}
    for machine, (low, high) in offsets.items():
        ahead, behind = low - offsets[middle][1], offsets[middle][0] - high
        apart = max(ahead, behind)
        if machine == middle or apart <= warn:
            continue
        way = "ahead of" if ahead > behind else "behind"
        found = f"its clock is at least {apart:.1f} s {way} that of {middle}"
        nodes = names[machine] if len(offsets) > 2 else [*names[machine], *names[middle]]
        cure = "chronyc -a makestep; chronyc sources shows whether a time server is reached"
        level = "refuse" if apart > refuse else "warn"
        yield finding("clock", level, nodes, found, f"at most {warn:g} s apart", cure)


def _offsets(site: Site) -> dict[str, Interval]:
    """Return {machine: interval of its clock minus that of one of them}.

    Each interval was read within one connection (look.py, meet): delay makes it wide, never wrong.
    """
    readings: dict[str, dict[str, Interval]] = {}
    for machine, peers in site.facts("peers"):
        for peer, said in peers.items():
            if "offset" in said:
                low, high = map(float, said["offset"])
                readings.setdefault(machine["name"], {})[peer] = (low, high)
                readings.setdefault(peer, {}).setdefault(machine["name"], (-high, -low))
    if not readings:
        return {}
    best = max(readings, key=lambda machine: len(readings[machine]))
    known = {machine["name"] for machine in site.machines}
    return {best: (0.0, 0.0), **{peer: at for peer, at in readings[best].items() if peer in known}}


def ports(site: Site) -> Iterator[Finding]:
    """The ports that runs will listen on are free."""
    for machine, held in site.facts("ports"):
        for one in held:
            place = machine["ports"].index(one["port"]) if one["port"] in machine["ports"] else 0
            found = f"port {one['port']} is held by {_process(one)}"
            cure = "end it, or take other ports with -e campaign_port=N"
            yield finding("port", "refuse", machine["nodes"][place : place + 1], found, "free", cure)
    yield from site.failures("ports", "port", "warn", "free ports", "look at ss -ltnp")


def runs(site: Site) -> Iterator[Finding]:
    """No run of ours is going on, and none has left anything."""
    cure = "wait for its end; where its controller is gone, preflight.yml -e reap=true ends it"
    for machine, processes in site.facts("ours"):
        groups: dict[str, list[Mapping[str, Any]]] = {}
        for process in processes:
            groups.setdefault(str(process["run"]), []).append(process)
        for run, group in groups.items():
            found = f"{run} has {_pids(group)}: {group[0]['command'][:60]}"
            yield finding("run", "refuse", machine["nodes"], found, "no other run", cure)
    yield from site.failures("ours", "run", "warn", "a list of processes", "look at ps -ef")


def disk(site: Site) -> Iterator[Finding]:
    """There is room for jobs and logs."""
    for machine, found in site.facts("work"):
        yield from room(found, machine["nodes"], int(site.limits["disk_mb"]), int(site.limits["inodes"]))
    cure = "a file system that hangs: look at mount and at its server"
    yield from site.failures("work", "disk", "refuse", "an answer of the file system", cure)


def room(found: Mapping[str, Any], nodes: Sequence[str], mb: int, inodes: int) -> Iterator[Finding]:
    """Yield what is wrong with a file system that look.py saw, `found`."""
    path = found["path"]
    if not found["writable"]:
        yield finding(
            "disk", "refuse", nodes, f"{path} cannot be written to", "writable", f"look at ls -ld {path}"
        )
    if found["mb"] < mb:
        said = f"{path} has {found['mb']} MB left of {found['size_mb']}"
        yield finding("disk", "refuse", nodes, said, f"at least {mb} MB", "make room, or choose another disk")
    if found["inodes"] is not None and found["inodes"] < inodes:
        said = f"{path} has {found['inodes']} inodes left"
        yield finding("disk", "refuse", nodes, said, f"at least {inodes}", "remove small files (df -i)")


def shm(site: Site) -> Iterator[Finding]:
    """There is shared memory: NCCL and data loaders end in a bus error without."""
    wanted = int(site.limits["shm_mb"])
    for machine, found in site.facts("shm"):
        if found["mb"] < wanted:
            said = f"{found['path']} has {found['mb']} MB left of {found['size_mb']}"
            cure = (
                f"mount -o remount,size={wanted}m /dev/shm, or start the container with --shm-size {wanted}m"
            )
            level = "refuse" if site.with_gpus else "warn"
            yield finding("shm", level, machine["nodes"], said, f"at least {wanted} MB", cure)
    yield from site.failures("shm", "shm", "warn", "a /dev/shm", "mount -t tmpfs tmpfs /dev/shm")


def memlock(site: Site) -> Iterator[Finding] | None:
    """Memory can be pinned for RDMA."""
    return _memlock(site) if site.with_gpus else None


def _memlock(site: Site) -> Iterator[Finding]:
    for machine, limits in site.facts("limits"):
        if limits["rdma"] and limits["memlock"] >= 0:
            found = f"a login may lock {limits['memlock'] // 1024} KB of memory, and there is InfiniBand"
            cure = "ansible-playbook provision.yml raises it (/etc/security/limits.d); then log in anew"
            yield finding("memlock", "refuse", machine["nodes"], found, "unlimited", cure)


def _own(site: Site, machine: Mapping[str, Any]) -> list[str]:
    """Return the addresses that `machine` is called at, as numbers."""
    names = site.fact(machine, "names") or {}
    return names.get("nodes", {}).get(machine["address"]) or [machine["address"]]


def _pids(processes: Sequence[Mapping[str, Any]]) -> str:
    pids = ", ".join(str(process["pid"]) for process in processes[:8])
    more = f" and {len(processes) - 8} more" if len(processes) > 8 else ""
    return f"{'process' if len(processes) == 1 else 'processes'} {pids}{more} of {processes[0]['user']}"


def _process(process: Mapping[str, Any]) -> str:
    pid = "" if process["pid"] is None else f"pid {process['pid']}, "
    return f"{process['command'][:80]} ({pid}user {process['user']})"


def _and(words: Iterable[str]) -> str:
    return " and ".join(words)


Check = Callable[[Site], "Iterator[Finding] | None"]

CHECKS: tuple[tuple[str, Check], ...] = (
    ("reach", reach),
    ("login", login),
    ("shell", shell),
    ("name", name),
    ("address", address),
    ("clock", clock),
    ("run", runs),
    ("port", ports),
    ("disk", disk),
    ("shm", shm),
    ("memlock", memlock),
)
