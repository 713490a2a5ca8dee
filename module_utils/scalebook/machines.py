# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Machine identities: whether two descriptions are of one machine.

A machine that was started again is the same machine.  One that was made from a copy of its disk is not,
though both have one machine-id: their network devices, GPUs or boards tell them apart.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, cast

from ansible.module_utils.scalebook.contracts import MachineIdentity

HARDWARE = {"board": "another mainboard", "addresses": "other network devices", "gpus": "other GPUs"}
"""What two descriptions of one machine have in common, where both have it -> what to say otherwise."""
SYSTEM = {"machine": "another machine-id", "container": "another container"}
DIFFERENCES = {
    **HARDWARE,
    **SYSTEM,
    "contained": "one of both is a container",
    "unknown": "it is not known what it was",
}
"""What differs -> what to say of it."""
_LASTING = (*HARDWARE, *SYSTEM)
_UNIQUE = ("addresses", "gpus", *SYSTEM)

LOCAL = "local-"
"""What the digest of an address begins with that is not unique in the world: others may have it too."""


def difference(one: MachineIdentity, other: MachineIdentity) -> str:
    """Return why two descriptions may be of different machines, a key of DIFFERENCES, "" where they are not.

    A part of the hardware may be exchanged, or hidden from a container: where both have network devices,
    one of these is the same, and so for GPUs.  Containers of one host are different, since their shares of
    it may differ, unless they have a GPU in common: such a container was made again.  A container and its
    host are different in the same way, though both have one boot.
    """
    made_again = _common(one, other, "gpus")
    for key in (*HARDWARE, *SYSTEM):
        if key == "container" and made_again:
            continue
        if _values(one, key) and _values(other, key) and not _common(one, other, key):
            return key
    contained = {bool(_values(identity, "container")) for identity in (one, other) if lasts(identity)}
    if len(contained) > 1 and not made_again:
        return "contained"
    common = set().union(*(_common(one, other, key) for key in (*_UNIQUE, "boot")))
    return "" if any(not value.startswith(LOCAL) for value in common) else "unknown"


def digest(machines: Mapping[str, MachineIdentity]) -> str:
    """Return a word for nodes and their machines, the same after these are started again."""
    lasting = [
        (node, {key: sorted(_values(identity, key)) for key in _LASTING})
        for node, identity in machines.items()
    ]
    return hashlib.sha256(json.dumps(lasting).encode()).hexdigest()[:8]


def lasts(identity: MachineIdentity) -> bool:
    """Return whether a machine is known by more than its boot."""
    return any(_values(identity, key) for key in _LASTING)


def _common(one: MachineIdentity, other: MachineIdentity, key: str) -> set[str]:
    return _values(one, key) & _values(other, key)


def _values(identity: MachineIdentity, key: str) -> set[str]:
    """Return what an identity says of `key`, nothing where it is absent or no text."""
    value = cast(Mapping[str, Any], identity).get(key)
    values = value if isinstance(value, list) else [value]
    return {each for each in values if isinstance(each, str) and each}
