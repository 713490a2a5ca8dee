# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Inventory -> nodes: what planning and launching need to know of each, with names and numbers checked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ansible.module_utils.scalebook.contracts import Node

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_ADDRESS = re.compile(r"[A-Za-z0-9:][A-Za-z0-9._:%-]{0,252}")
_SLOTS = re.compile(r"[1-9]\d{0,3}")

MOST_SLOTS = 1024


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
    found: list[Node] = []
    for index, host in enumerate(hosts):
        name, actor = names[index], hosts[acting[index]]
        address = "127.0.0.1" if local[index] else str(host.get("ansible_host", name))
        machine = check_address(address, name)
        gpus = int(actor.get("workload_gpu_count", 0)) if device == "gpu" else 0
        home = actor.get("scalebook_home")
        found.append(
            {
                "name": name,
                "host": names[acting[index]],
                "address": check_address(str(host.get("node_address", address)), name),
                "slots": gpus or check_slots(host.get("slots", 1), name),
                "machine": "localhost" if local[index] else machine,
                "work": str(actor.get("campaign_work") or f"{home}/work") if home else None,
            }
        )
    return found


def check_name(name: str) -> str:
    """Return `name` if it can be a word of ssh's and mpirun's command lines and a directory's name."""
    if not _NAME.fullmatch(name) or ".." in name:
        raise HostError(
            f"host name {name[:60]!r}: allowed are letters, digits, dot, dash and underscore, at most 100, "
            "beginning with a letter or digit"
        )
    return name


def check_address(address: str, name: str) -> str:
    """Return `address` if it can be an address of the host `name`."""
    if not _ADDRESS.fullmatch(address):
        raise HostError(f"{name}: address {address[:60]!r}: allowed is a host name or an address")
    return address


def check_slots(value: Any, name: str) -> int:
    """Return the number of devices of the host `name`."""
    text = str(value).strip()
    if isinstance(value, bool) or not _SLOTS.fullmatch(text) or int(text) > MOST_SLOTS:
        raise HostError(f"{name}: slots={text[:60]!r}: allowed are whole numbers from 1 to {MOST_SLOTS}")
    return int(text)
