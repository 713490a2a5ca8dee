# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What connected the GPUs of a run: the words for it, and whether something faster was up."""

from __future__ import annotations

from collections.abc import Iterable

from ansible.module_utils.scalebook.contracts import Hardware, Interconnect, Message, Run, message

NVLINK = frozenset(("NVL", "NVB"))
"""The kinds of paths of NCCL that are NVLink, straight or over another GPU."""

SOCKET = "NET/Socket"
RDMA = frozenset(("InfiniBand", "RoCE"))


def unused(nccl: Interconnect | None, entries: Iterable[Hardware]) -> list[str]:
    """Return what of InfiniBand and RoCE is up on the nodes of a run that used sockets."""
    if not nccl or SOCKET not in nccl["transports"]:
        return []
    networks = [network for entry in entries for network in entry.get("networks") or ()]
    return sorted({f"{each['name']} ({each['kind']})" for each in networks if each["kind"] in RDMA})


def refusal(nccl: Interconnect | None, entries: Iterable[Hardware]) -> Message | None:
    """Return why what was measured over this network does not count, None where it does."""
    up = unused(nccl, entries)
    return message("reason.sockets", up=up) if up else None


def gpudirect_off(nccl: Interconnect) -> bool:
    """Return whether a connection through an adapter went through the memory of the host."""
    return nccl.get("gpudirect") is False


def slower(nccl: Interconnect) -> list[Message]:
    """Return what of a connection is slower than it may be."""
    off = [message("nccl.gpudirect-off")] if gpudirect_off(nccl) else []
    return [*off, *(message("flag.far-adapter", **far) for far in nccl["far"])]


def transport(nccl: Interconnect) -> str:
    """Return what connected the GPUs as NCCL writes it: `NET/IB/GDRDMA, P2P/CUMEM`."""
    direct = "/GDRDMA" if nccl.get("gpudirect") else ""
    over_adapters = [name for name in nccl["transports"] if name.startswith("NET/") and name != SOCKET]
    return ", ".join(name + direct * (name in over_adapters) for name in nccl["transports"])


def of_runs(runs: Iterable[Run]) -> str:
    """Return what connected the GPUs in all of `runs`, "" where NCCL did not say it."""
    return " / ".join(sorted({transport(run["nccl"]) for run in runs if "nccl" in run}))


def described(nccl: Interconnect) -> Message:
    """Return in one line what is known of what connected the GPUs of a run."""
    parts: list[Message | str] = [transport(nccl)] if nccl["transports"] else []
    if nccl["links"] and NVLINK.issuperset(nccl["links"]):
        parts.append("NVLink")
    if nccl.get("nvls"):
        parts.append("NVLS")
    if nccl["adapters"]:
        parts.append(message("nccl.adapters", adapters=nccl["adapters"]))
    if "channels" in nccl:
        parts.append(message("nccl.channels", count=nccl["channels"]))
    parts += [f"NCCL {version}" for version in nccl["versions"]]
    return message("nccl.facts", facts=parts)
