# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Checks of the machines and of the network between them (preflight.judge runs them)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import Finding, Message, as_message, message
from ansible.module_utils.scalebook.preflight.site import Check, Site, finding

Interval = tuple[float, float]


def reach(site: Site) -> Iterator[Finding]:
    """Every machine answers the control node."""
    for machine in site.machines:
        probed = site.probed.get(machine["name"])
        error = message("preflight.no-answer") if probed is None else probed.get("error")
        if error:
            fix = message("fix.ping", name=machine["name"])
            yield finding(
                "reach",
                "refuse",
                machine["nodes"],
                observed=error,
                expected=message("expected.answer"),
                fix=fix,
            )


def shell(site: Site) -> Iterator[Finding]:
    """A login is fast: every start of a run waits for it."""
    limit = float(site.limits["login_seconds"])
    fix = message("fix.slow-shell")
    for machine, took in site.facts("login"):
        for kind, code in (("command", "preflight.slow-command"), ("login", "preflight.slow-login")):
            seconds = took[kind]
            if seconds is None or seconds > limit:
                duration = (
                    message("preflight.longer", seconds=2 * limit)
                    if seconds is None
                    else message("preflight.tenths", seconds=seconds)
                )
                observed = message(code, duration=duration, shell=took["shell"])
                yield finding(
                    "shell",
                    "warn",
                    machine["nodes"],
                    observed=observed,
                    expected=message("expected.most-seconds", seconds=limit),
                    fix=fix,
                )
                break
    yield from site.failures("login", "shell", "warn", expected=message("expected.login-shell"), fix=fix)


def login(site: Site) -> Iterator[Finding]:
    """Every machine can log in to every other, as mpirun does."""
    fix = message("fix.provision-logins")
    names = {machine["name"]: machine for machine in site.machines}
    refused: dict[str, dict[str, str]] = {}
    probed = [machine["name"] for machine, _ in site.facts("peers")]
    for machine, peers in site.facts("peers"):
        for peer, result in peers.items():
            if "error" in result and peer in names:
                refused.setdefault(peer, {})[machine["name"]] = result["error"]
    for peer, whys in refused.items():
        why = next(iter(whys.values()))
        if len(whys) > 1 and set(whys) >= set(probed) - {peer}:
            observed = message("preflight.no-login-of-any", peer=peer, why=why)
            yield finding(
                "login",
                "refuse",
                names[peer]["nodes"],
                observed=observed,
                expected=message("expected.login-by-key"),
                fix=fix,
            )
        else:
            for name, why in whys.items():
                observed = message("preflight.no-login", node=name, peer=peer, why=why)
                yield finding(
                    "login",
                    "refuse",
                    [name, peer],
                    observed=observed,
                    expected=message("expected.login-by-key"),
                    fix=fix,
                )
    yield from site.failures("peers", "login", "refuse", expected=message("expected.login-by-key"), fix=fix)


def firewall(site: Site) -> Iterator[Finding]:
    """Every machine is reached by every other on any port: mpirun and frameworks choose theirs."""
    by_name = {machine["name"]: machine for machine in site.machines}
    closed: dict[str, list[tuple[Mapping[str, Any], Mapping[str, Any]]]] = {}
    for machine, doors in site.facts("doors"):
        met = site.fact(machine, "peers") or {}
        for peer, door in doors.items():
            # Check `login` reports a peer that is not reached at all.
            if door["error"] and peer in by_name and "error" not in met.get(peer, {}):
                closed.setdefault(peer, []).append((machine, door))
    for peer, refused in closed.items():
        machine, door = by_name[peer], refused[0][1]
        sources = [each["address"] for each, _ in refused]
        if (site.fact(machine, "guards") or {}).get("firewalld"):
            code = "preflight.firewalld"
            added = " ".join(f"--add-source={source}" for source in sources[:8])
            fix = message("fix.firewalld", peer=peer, added=added)
        else:
            code, fix = "preflight.firewall", message("fix.firewall")
        nodes = [each["name"] for each, _ in refused]
        observed = message(code, peer=peer, nodes=nodes, port=door["port"], why=door["error"])
        yield finding(
            "firewall",
            "refuse",
            machine["nodes"],
            observed=observed,
            expected=message("expected.any-port"),
            fix=fix,
        )


def selinux(site: Site) -> Iterator[Finding]:
    """SELinux lets sshd read the keys that log in."""
    for machine, guards in site.facts("guards"):
        label = [*guards["label"].split(":"), "", "", ""][2]
        of_nfs = label == "nfs_t"
        if guards["selinux"] and label not in ("", "ssh_home_t") and not (of_nfs and guards["nfs_homes"]):
            observed = message("preflight.selinux", path="~/.ssh/authorized_keys", label=label)
            fix = as_message("setsebool -P use_nfs_home_dirs 1" if of_nfs else "restorecon -R ~/.ssh")
            yield finding(
                "selinux",
                "warn",
                machine["nodes"],
                observed=observed,
                expected=message("expected.ssh-label"),
                fix=fix,
            )


def launcher(site: Site) -> Iterator[Finding]:
    """The first node can start a step of Slurm on every other, as srun does."""
    expected = message("expected.slurm-step")
    for machine, peers in site.facts("peers"):
        for peer, result in peers.items():
            if "error" in result:
                observed = message("preflight.no-step", node=machine["name"], peer=peer, why=result["error"])
                fix = message("fix.slurm-node", peer=peer)
                yield finding("launcher", "refuse", [peer], observed=observed, expected=expected, fix=fix)
    fix = message("fix.slurm-steps")
    yield from site.failures("peers", "launcher", "refuse", expected=expected, fix=fix)


def name(site: Site) -> Iterator[Finding]:
    """Every machine resolves every node's name to its address, and has a host name of its own."""
    fix = message("fix.provision-names")
    if _by_steps(site):
        fix = message("fix.slurm-names")
    owners: dict[str, list[str]] = {}
    for machine, names in site.facts("names"):
        owners.setdefault(names["own"], []).append(machine["name"])
        node_names = names["nodes"]
        for other in site.machines:
            correct = node_names.get(other["address"]) or [other["address"]]
            for node in other["nodes"]:
                addresses = node_names.get(node) or []
                if not set(addresses) & set(correct):
                    observed = (
                        message("preflight.other-address", node=node, addresses=addresses)
                        if addresses
                        else message("preflight.unknown-name", node=node)
                    )
                    yield finding(
                        "name",
                        "refuse",
                        machine["nodes"],
                        observed=observed,
                        expected=other["address"],
                        fix=fix,
                    )
        own = names["own_addresses"]
        if own and all(ipaddress.ip_address(address.split("%")[0]).is_loopback for address in own):
            observed = message("preflight.own-name", name=names["own"], addresses=own)
            yield finding(
                "name", "warn", machine["nodes"], observed=observed, expected=machine["address"], fix=fix
            )
    for own, machines in owners.items():
        if len(machines) > 1:
            observed = message("preflight.same-names", machines=machines, name=own)
            yield finding(
                "name",
                "refuse",
                machines,
                observed=observed,
                expected=message("expected.different-names"),
                fix=as_message("hostnamectl set-hostname NAME"),
            )
    yield from site.failures(
        "names", "name", "refuse", expected=message("expected.names-that-resolve"), fix=fix
    )


def address(site: Site) -> Iterator[Finding]:
    """The address of every machine is on one interface, in one network, and traffic is sent from it."""
    subnet = site.limits.get("subnet") or ""
    network = ipaddress.ip_network(subnet, strict=False) if subnet else None
    mtus: dict[int, list[str]] = {}
    for machine, interfaces in site.facts("interfaces"):
        own = set(_own(site, machine))
        holding = {name: fields for name, fields in interfaces.items() if own & {*_addresses(fields)}}
        if len(holding) != 1:
            yield _not_on_one_interface(machine, interfaces, [*holding])
            continue
        [(interface, fields)] = holding.items()
        mtus.setdefault(fields.get("mtu", 0), []).append(machine["name"])
        if not fields.get("up", True):
            yield finding(
                "address",
                "refuse",
                machine["nodes"],
                observed=message("preflight.interface-down", name=interface, address=machine["address"]),
                expected=message("expected.up"),
                fix=as_message(f"ip link set {interface} up"),
            )
        place = ipaddress.ip_interface(next(each for text, each in _addresses(fields).items() if text in own))
        if place.network.num_addresses > 2:
            network = network or place.network
        # An address of a point-to-point link is in no network with others: its routes tell.
        point_to_point = (
            not subnet and place.network.num_addresses <= 2 and site.fact(machine, "routes") is not None
        )
        if network and place.ip not in network and not point_to_point:
            yield _in_other_network(machine, interface, str(network), "refuse" if subnet else "warn")
        yield from _routes(site, machine, own)
        yield from _chosen(site, machine, interface)
    yield from _differing_mtus(mtus)
    yield from site.failures(
        "interfaces",
        "address",
        "warn",
        expected=message("expected.iproute2"),
        fix=as_message("apt-get install iproute2"),
    )


def _addresses(interface: Mapping[str, Any]) -> dict[str, str]:
    """Return the addresses of an interface, each with the length of its network: 10.0.0.2 -> 10.0.0.2/24."""
    return {each.split("/")[0]: each for each in interface["addresses"]}


def _not_on_one_interface(
    machine: Mapping[str, Any], interfaces: Mapping[str, Mapping[str, Any]], holding: Sequence[str]
) -> Finding:
    """Return the finding of a machine whose address no interface, or several, have."""
    every = [
        message("preflight.interface", name=name, addresses=fields["addresses"])
        for name, fields in interfaces.items()
    ]
    place = machine["address"]
    observed = message("preflight.on-no-interface", address=place, all=every)
    if holding:
        observed = message("preflight.on-interfaces", address=place, interfaces=holding, all=every)
    return finding(
        "address",
        "refuse",
        machine["nodes"],
        observed=observed,
        expected=message("expected.one-interface"),
        fix=message("fix.provision-addresses"),
    )


def _in_other_network(machine: Mapping[str, Any], interface: str, network: str, level: str) -> Finding:
    """Return the finding of a machine whose address is not in the network of the others."""
    place = machine["address"]
    return finding(
        "address",
        level,
        machine["nodes"],
        observed=message("preflight.other-network", address=place, interface=interface, network=network),
        expected=message("expected.one-network", network=network),
        fix=message("fix.provision-addresses"),
    )


def _differing_mtus(mtus: Mapping[int, list[str]]) -> Iterator[Finding]:
    """Yield the finding of interfaces whose MTU is not that of most; `mtus` has the machines of each."""
    if len(mtus) > 1:
        each_mtu = [message("preflight.mtu", mtu=mtu, nodes=names) for mtu, names in sorted(mtus.items())]
        fewest = min(mtus.values(), key=len)
        yield finding(
            "address",
            "warn",
            fewest,
            observed=message("preflight.mtus", each=each_mtu),
            expected=message("expected.one-mtu"),
            fix=as_message("ip link set INTERFACE mtu N"),
        )


def _routes(site: Site, machine: Mapping[str, Any], own: set[str]) -> Iterator[Finding]:
    strays: dict[str, list[str]] = {}
    for peer, source in (site.fact(machine, "routes") or {}).items():
        if source not in own:
            strays.setdefault(source, []).append(peer)
    for source, peers in strays.items():
        observed = message("preflight.traffic", peers=peers, source=source)
        fix = message("fix.route", command="ip route get ADDRESS")
        yield finding(
            "address", "refuse", machine["nodes"], observed=observed, expected=machine["address"], fix=fix
        )


def _chosen(site: Site, machine: Mapping[str, Any], interface: str) -> Iterator[Finding]:
    """Check that NCCL, Gloo and TensorPipe are set to the interface with the node's address."""
    settings: dict[str, str] = {}
    for line in site.fact(machine, "nccl") or []:
        variable, _, value = line.partition("=")
        if value.strip() and variable.endswith("_IFNAME"):  # an empty one is none
            settings.setdefault(variable, value)  # of two settings the first counts
    for variable, value in settings.items():
        if variable.startswith("NCCL") and not site.with_gpus:
            continue
        if not _names_interface(value, interface):
            observed = message(
                "preflight.other-interface",
                setting=f"{variable}={value}",
                interface=interface,
                address=machine["address"],
            )
            fix = message("fix.interface", variable=variable, interface=interface)
            yield finding(
                "address", "refuse", machine["nodes"], observed=observed, expected=interface, fix=fix
            )


def _names_interface(value: str, interface: str) -> bool:
    """Return whether NCCL would take `interface`: prefixes, `=` for exact names, `^` for all but these.

    https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-socket-ifname
    """
    kind, words = re.fullmatch(r"(\^?=?)(.*)", value, re.DOTALL).groups()  # type: ignore[union-attr]
    exact = kind.endswith("=")
    hit = any(interface == word if exact else interface.startswith(word) for word in words.split(",") if word)
    return hit != kind.startswith("^")


def clock(site: Site) -> Iterator[Finding]:
    """The clocks of the machines agree."""
    offsets = _offsets(site)
    if not offsets:
        return
    # Most clocks are right: the median is the reference.
    middle = sorted(offsets, key=lambda machine: sum(offsets[machine]))[(len(offsets) - 1) // 2]
    warn, refuse = float(site.limits["clock_warn"]), float(site.limits["clock_refuse"])
    names = {machine["name"]: machine["nodes"] for machine in site.machines}
    for machine, (low, high) in offsets.items():
        ahead, behind = low - offsets[middle][1], offsets[middle][0] - high
        apart = max(ahead, behind)
        if machine == middle or apart <= warn:
            continue
        code = "preflight.clock-ahead" if ahead > behind else "preflight.clock-behind"
        observed = message(code, seconds=apart, node=middle)
        nodes = names[machine] if len(offsets) > 2 else [*names[machine], *names[middle]]
        fix = message("fix.clock")
        level = "refuse" if apart > refuse else "warn"
        yield finding(
            "clock",
            level,
            nodes,
            observed=observed,
            expected=message("expected.seconds-apart", seconds=warn),
            fix=fix,
        )


def _offsets(site: Site) -> dict[str, Interval]:
    """Return {machine: interval of its clock minus that of one of them}.

    Each interval was read within one connection (node_probe): delay makes it wide, never wrong.
    """
    offsets: dict[str, dict[str, Interval]] = {}
    for machine, peers in site.facts("peers"):
        for peer, result in peers.items():
            if "offset" in result:
                low, high = map(float, result["offset"])
                offsets.setdefault(machine["name"], {})[peer] = (low, high)
                offsets.setdefault(peer, {}).setdefault(machine["name"], (-high, -low))
    if not offsets:
        return {}
    best = max(offsets, key=lambda machine: len(offsets[machine]))
    machine_names = {machine["name"] for machine in site.machines}
    return {
        best: (0.0, 0.0),
        **{peer: offset for peer, offset in offsets[best].items() if peer in machine_names},
    }


def ports(site: Site) -> Iterator[Finding]:
    """The ports that runs will listen on are free."""
    for machine, held in site.facts("ports"):
        for process in held:
            port = process["port"]
            place = machine["ports"].index(port) if port in machine["ports"] else 0
            observed = message("preflight.port", port=port, process=_process(process))
            fix = message("fix.port")
            yield finding(
                "port",
                "refuse",
                machine["nodes"][place : place + 1],
                observed=observed,
                expected=message("expected.free"),
                fix=fix,
            )
    yield from site.failures(
        "ports", "port", "warn", expected=message("expected.free-ports"), fix=message("fix.check-ports")
    )


def runs(site: Site) -> Iterator[Finding]:
    """No other run is in progress, and none has left processes behind."""
    # A campaign that shares no lock with this one: of another container, or left by one that was killed.
    for probe, level, code, fix in (
        ("ours", "refuse", "preflight.run", message("fix.wait-for-run")),
        ("others", "warn", "preflight.other-run", message("fix.wait-for-other-run")),
    ):
        for machine, processes in site.facts(probe):
            groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
            for process in processes:
                groups.setdefault((str(process["run"]), process["user"]), []).append(process)
            for (run, _), group in groups.items():
                observed = message(code, run=run, processes=_pids(group), command=group[0]["command"][:60])
                yield finding(
                    "run",
                    level,
                    machine["nodes"],
                    observed=observed,
                    expected=message("expected.no-other-run"),
                    fix=fix,
                )
    yield from site.failures(
        "ours", "run", "warn", expected=message("expected.process-list"), fix=message("fix.check-processes")
    )


def disk(site: Site) -> Iterator[Finding]:
    """The file system has room for node jobs and logs."""
    for machine, space in site.facts("work"):
        yield from room(space, machine["nodes"], int(site.limits["disk_mb"]), int(site.limits["inodes"]))
    fix = message("fix.file-system")
    yield from site.failures("work", "disk", "refuse", expected=message("expected.file-system"), fix=fix)


def room(space: Mapping[str, Any], nodes: Sequence[str], mb: int, inodes: int) -> Iterator[Finding]:
    """Yield what is wrong with a file system; `space` is as module node_probe returns it."""
    path = space["path"]
    if not space["writable"]:
        yield finding(
            "disk",
            "refuse",
            nodes,
            observed=message("preflight.not-writable", path=path),
            expected=message("expected.writable"),
            fix=message("fix.writable", path=path),
        )
    if space["mb"] < mb:
        observed = message("preflight.space", path=path, mb=space["mb"], of_mb=space["size_mb"])
        yield finding(
            "disk",
            "refuse",
            nodes,
            observed=observed,
            expected=message("expected.least-mb", mb=mb),
            fix=message("fix.space"),
        )
    if space["inodes"] is not None and space["inodes"] < inodes:
        observed = message("preflight.inodes", path=path, count=space["inodes"])
        yield finding(
            "disk",
            "refuse",
            nodes,
            observed=observed,
            expected=message("expected.least", count=inodes),
            fix=message("fix.inodes"),
        )


def shm(site: Site) -> Iterator[Finding]:
    """Shared memory has room: without it NCCL and data loaders fail with a bus error."""
    least = int(site.limits["shm_mb"])
    for machine, space in site.facts("shm"):
        if space["mb"] < least:
            observed = message("preflight.space", path=space["path"], mb=space["mb"], of_mb=space["size_mb"])
            fix = message("fix.shm", mb=least)
            level = "refuse" if site.with_gpus else "warn"
            yield finding(
                "shm",
                level,
                machine["nodes"],
                observed=observed,
                expected=message("expected.least-mb", mb=least),
                fix=fix,
            )
    yield from site.failures(
        "shm",
        "shm",
        "warn",
        expected=message("expected.shm"),
        fix=as_message("mount -t tmpfs tmpfs /dev/shm"),
    )


def memlock(site: Site) -> Iterator[Finding]:
    """Memory can be locked for RDMA."""
    for machine, limits in site.facts("limits"):
        if limits["rdma"] and limits["memlock"] >= 0:
            observed = message("preflight.memlock", kb=limits["memlock"] // 1024)
            fix = message("fix.memlock")
            yield finding(
                "memlock",
                "refuse",
                machine["nodes"],
                observed=observed,
                expected=message("expected.unlimited"),
                fix=fix,
            )


def _own(site: Site, machine: Mapping[str, Any]) -> list[str]:
    """Return the numeric addresses of `machine`."""
    names = site.fact(machine, "names") or {}
    return names.get("nodes", {}).get(machine["address"]) or [machine["address"]]


def _pids(processes: Sequence[Mapping[str, Any]]) -> Message:
    pids, user = [str(process["pid"]) for process in processes[:8]], processes[0]["user"]
    if len(processes) > 8:
        return message("preflight.many-processes", pids=pids, more=len(processes) - 8, user=user)
    return message("preflight.one-process" if len(pids) == 1 else "preflight.processes", pids=pids, user=user)


def _process(process: Mapping[str, Any]) -> Message:
    command, user = process["command"][:80], process["user"]
    if process["pid"] is None:
        return message("preflight.process-of", command=command, user=user)
    return message("preflight.process", command=command, pid=process["pid"], user=user)


def _several(site: Site) -> bool:
    return site.connected


def _by_steps(site: Site) -> bool:
    return bool(site.limits.get("steps"))


CHECKS = (
    Check("reach", reach),
    Check("launcher", launcher, lambda site: _several(site) and _by_steps(site)),
    Check("login", login, lambda site: _several(site) and not _by_steps(site)),
    Check("firewall", firewall, lambda site: _several(site) and not _by_steps(site)),
    Check("selinux", selinux, lambda site: _several(site) and not _by_steps(site)),
    Check("shell", shell, lambda site: not (_by_steps(site) or all(one["local"] for one in site.machines))),
    Check("name", name, _several),
    Check("address", address, _several),
    Check("clock", clock, _several),
    Check("run", runs),
    Check("port", ports),
    Check("disk", disk),
    Check("shm", shm),
    Check("memlock", memlock, lambda site: site.with_gpus),
)
