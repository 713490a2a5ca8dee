# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Inventory -> nodes: what planning and launching need to know of each, with names and numbers checked."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import Node

# Role node has the same: what the plan accepts can be provisioned.
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
_ADDRESS = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
# Programs read 010.0.0.1 and 10.1 as other addresses than people do.
_NUMBERS = re.compile(r"[\d.]+")
_WITH_PORT = re.compile(r"([^:\[\]]+|\[[^\[\]]+\]):(\d+)")
_IN_BRACKETS = re.compile(r"\[([^\[\]]*:[^\[\]]*)\]")
# Where Ansible logs in, also with IPv6.
_LOGIN = re.compile(r"[A-Za-z0-9:][A-Za-z0-9._:%-]{0,252}")
_PORT = re.compile(r"[1-9]\d{0,4}")
_SLOTS = re.compile(r"[1-9]\d{0,3}")

MOST_SLOTS = 1024
LARGEST_PORT = 65535
SSH_PORT = 22


class HostError(ValueError):
    """A host of the inventory that cannot be used; the text names it, the variable and the value."""


def nodes(hosts: Iterable[Mapping[str, Any]], device: str) -> list[Node]:
    """Return the nodes of the inventory's `hosts`, their hostvars, in inventory order.

    Nodes with a local connection are one machine, whatever their names; `host` is the host of the
    inventory that acts for a node, the first of its machine's nodes.  The GPUs found on that host
    (`workload_gpu_count`) go before the `slots` of the inventory.  Raises HostError.
    """
    hosts = list(hosts)
    names = [check_name(str(host["inventory_hostname"])) for host in hosts]
    local = [host.get("ansible_connection", "ssh") == "local" for host in hosts]
    acting = [local.index(True) if here else index for index, here in enumerate(local)]
    all_nodes: list[Node] = []
    for index, host in enumerate(hosts):
        name, actor = names[index], hosts[acting[index]]
        login = "127.0.0.1" if local[index] else _login(host, name)
        address = check_address(str(host.get("node_address", login)), name)
        gpus = int(actor.get("workload_gpu_count", 0)) if device == "gpu" else 0
        home = actor.get("scalebook_home")
        all_nodes.append(
            {
                "name": name,
                "host": names[acting[index]],
                "address": address,
                "slots": gpus or check_slots(host.get("slots", 1), name),
                "machine": "localhost" if local[index] else _machine(login, host, name),
                "work": str(actor.get("campaign_work") or f"{home}/work") if home else None,
            }
        )
    remote = [node for node, here in zip(all_nodes, local, strict=True) if not here]
    _refuse_shared_addresses(remote)
    _refuse_shared_names(remote)
    _refuse_loopback(remote)
    by_step = [host.get("ansible_connection") == "srun" for host in hosts]
    _refuse_shared_work(node for node, here in zip(all_nodes, by_step, strict=True) if here)
    return all_nodes


def without_home(hosts: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the names of remote `hosts`, hostvars, for which the inventory does not say where to install."""
    return [
        str(host["inventory_hostname"])
        for host in hosts
        if "scalebook_home" not in host and host.get("ansible_connection", "ssh") != "local"
    ]


def _login(host: Mapping[str, Any], name: str) -> str:
    """Return where Ansible logs in; ansible_ssh_host is the name of ansible_host in old inventories."""
    if name.lower().partition(".")[0] == "localhost":
        raise HostError(
            f"host name {name!r}: every machine calls itself so, and other nodes could not reach it. Fix: "
            "give the host another name in the inventory, or set ansible_connection: local"
        )
    login = str(host.get("ansible_host", host.get("ansible_ssh_host", name)))
    port = _WITH_PORT.fullmatch(login)
    if port:
        raise HostError(
            f"{name}: ansible_host {login[:60]!r} has a port. Fix: set ansible_host to "
            f"{port[1].strip('[]')[:60]} and ansible_port to {port[2][:10]}"
        )
    bare = _IN_BRACKETS.fullmatch(login)
    if bare:
        raise HostError(
            f"{name}: ansible_host {login[:60]!r} has brackets. Fix: set ansible_host to {bare[1][:60]}"
        )
    return login


def _machine(login: str, host: Mapping[str, Any], name: str) -> str:
    """Return where Ansible logs in, with the port unless it is that of ssh: one machine has one."""
    if not _LOGIN.fullmatch(login):
        raise HostError(f"{name}: ansible_host {login[:60]!r}: allowed is a host name or an address")
    port = check_port(host.get("ansible_port", host.get("ansible_ssh_port", SSH_PORT)), name)
    return login if port == SSH_PORT else f"[{login}]:{port}"


def _refuse_shared_addresses(remote: Iterable[Node]) -> None:
    """Raise HostError for nodes that the others cannot tell apart: ports of ssh do not reach what trains."""
    names: dict[str, list[str]] = {}
    for node in remote:
        names.setdefault(node["address"].lower(), []).append(node["name"])
    shared = [
        f"{' and '.join(nodes)} have the address {address}" for address, nodes in names.items() if nodes[1:]
    ]
    if shared:
        raise HostError(
            f"{'; '.join(shared)}: mpirun and the training processes reach a node by its address alone, so "
            "each needs one of its own. Fix: set node_address of each to an address that the other nodes "
            "reach (ansible_host and ansible_port may stay), or list one machine once, with its GPUs as slots"
        )


def _refuse_shared_names(remote: Iterable[Node]) -> None:
    """Raise HostError for a name that stands for two nodes: the nodes look names up in one table."""
    names: dict[str, list[str]] = {}
    for node in remote:
        for word in {node["name"].lower(), node["address"].lower()}:
            names.setdefault(word, []).append(node["name"])
    shared = [f"{word} is {' and '.join(nodes)}" for word, nodes in sorted(names.items()) if nodes[1:]]
    if shared:
        raise HostError(
            f"{'; '.join(shared)}, by name or address, whatever the case of letters. Fix: give the nodes "
            "other names in the inventory, or set ansible_host to their addresses"
        )


def _refuse_loopback(remote: Sequence[Node]) -> None:
    """Raise HostError for one of several nodes with an address that each machine has for itself."""
    for node in remote if len(remote) > 1 else ():
        address = node["address"].lower()
        if address.partition(".")[0] == "localhost" or (
            _NUMBERS.fullmatch(address) and ipaddress.ip_address(address).is_loopback
        ):
            raise HostError(
                f"{node['name']}: address {address!r}: the other nodes would reach themselves. Fix: set "
                "node_address to an address of the node that they reach"
            )


def _refuse_shared_work(nodes: Iterable[Node]) -> None:
    """Raise HostError for nodes of Slurm with one directory of jobs: they share the home that it is in."""
    names: dict[str | None, list[str]] = {}
    for node in nodes:
        names.setdefault(node["work"], []).append(node["name"])
    for directory, sharing in names.items():
        if directory and sharing[1:]:
            raise HostError(
                f"campaign_work={directory} is that of {' and '.join(sharing)}: each would overwrite the "
                "jobs of the others. Fix: put {{ inventory_hostname }} into it, as inventory/slurm does"
            )


def check_name(name: str) -> str:
    """Return `name` if it can be a word of ssh's and mpirun's command lines and a directory's name."""
    if not _NAME.fullmatch(name) or ".." in name:
        raise HostError(
            f"host name {name[:60]!r}: allowed are letters, digits, dot, dash and underscore, at most 100, "
            "beginning and ending with a letter or digit"
            + (". Fix: give the host a name, and set ansible_host to the address" if ":" in name else "")
        )
    return name


def check_address(address: str, name: str) -> str:
    """Return `address` if it can be an address of the host `name` for mpirun and the training processes."""
    if ":" in address:
        raise HostError(
            f"{name}: address {address[:60]!r}: runs use IPv4, as Open MPI is built without IPv6. Fix: set "
            "node_address to an IPv4 address of the node, or to a name that has one; ansible_host may stay"
        )
    if not _ADDRESS.fullmatch(address) or (_NUMBERS.fullmatch(address) and not _is_ipv4(address)):
        raise HostError(f"{name}: address {address[:60]!r}: allowed is a host name or an address")
    return address


def _is_ipv4(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


def check_port(value: Any, name: str) -> int:
    """Return the port of the ssh server of the host `name`."""
    text = str(value).strip()
    if isinstance(value, bool) or not _PORT.fullmatch(text) or int(text) > LARGEST_PORT:
        raise HostError(
            f"{name}: ansible_port={text[:60]!r}: allowed are whole numbers from 1 to {LARGEST_PORT}"
        )
    return int(text)


def check_slots(value: Any, name: str) -> int:
    """Return the number of devices of the host `name`."""
    text = str(value).strip()
    if isinstance(value, bool) or not _SLOTS.fullmatch(text) or int(text) > MOST_SLOTS:
        raise HostError(f"{name}: slots={text[:60]!r}: allowed are whole numbers from 1 to {MOST_SLOTS}")
    return int(text)
