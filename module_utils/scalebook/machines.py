# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Machine identities: whether two descriptions are of one machine, and how many machines some nodes are.

A machine that was started again is the same machine.  One that was made from a copy of its disk is not,
though both have one machine-id: their network devices, GPUs or boards tell them apart.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from ansible.module_utils.scalebook.contracts import MachineIdentity

_HARDWARE = {"board": "mainboard", "addresses": "network devices", "gpus": "GPUs"}
"""What two descriptions of one machine have in common, where both have it -> what it is called."""


def difference(one: MachineIdentity, other: MachineIdentity) -> str:
    """Return why two descriptions are not known to be of the same machine, "" where they are.

    A part of the hardware may be exchanged, or hidden from a container: where both have network devices,
    one of these is the same, and so for GPUs.  Containers that have no GPU in common are two machines, since
    their numbers come from other GPUs.  A container that is made again has another machine-id, but the boot
    of its host.
    """
    for key, name in _HARDWARE.items():
        known, others = _values(one, key), _values(other, key)
        if known and others and not known & others:
            return f"other {name}"
    if _values(one, "boot") & _values(other, "boot"):
        return ""
    known, others = _values(one, "machine"), _values(other, "machine")
    if known or others:
        unknown = "" if known and others else "; one of them is unknown"
        return "" if known == others else f"another machine-id{unknown}"
    shared = any(_values(one, key) & _values(other, key) for key in _HARDWARE)
    return "" if shared else "nothing is known that tells machines apart"


def count_machines(
    nodes: Iterable[str], machines: Mapping[str, MachineIdentity], boots: Mapping[str, str] | None = None
) -> int | None:
    """Return how many machines the nodes of one run are: containers of a host are one, None if unknown.

    `machines` are those of its record, `boots` (node -> boot_id) what its node scripts reported, which is
    all that records of earlier versions have.
    """
    known = {node: identity.get("boot") for node, identity in machines.items()}
    starts = [(boots or {}).get(node) or known.get(node) for node in nodes]
    return len(set(starts)) if starts and all(starts) else None


def digest(machines: Mapping[str, MachineIdentity]) -> str:
    """Return a word for nodes and their machines, the same after these are started again."""
    lasting = [
        (node, {key: sorted(_values(identity, key)) for key in ("machine", *_HARDWARE)})
        for node, identity in machines.items()
    ]
    return hashlib.sha256(json.dumps(lasting).encode()).hexdigest()[:8]


def _values(identity: Mapping[str, Any], key: str) -> set[str]:
    """Return what an identity says of `key`, nothing where it is absent or no text."""
    value = identity.get(key)
    values = value if isinstance(value, list) else [value]
    return {each for each in values if isinstance(each, str) and each}
