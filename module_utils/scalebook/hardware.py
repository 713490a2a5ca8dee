# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What nodes are made of: nodes with the same hardware are described once.

The fields are those of MLPerf's system description, as far as module hardware_info can read them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from ansible.module_utils.scalebook.contracts import Hardware
from ansible.module_utils.scalebook.text import clean

Say = Callable[..., str]

# Interfaces that a sentence names; a table has them all.
FEW = 3


def group(found: Mapping[str, Mapping[str, Any]]) -> list[Hardware]:
    """Return {node: what hardware_info returned} as one entry for each kind of node, with its `nodes`."""
    return merge([cast(Hardware, {"nodes": [node], **values}) for node, values in found.items()])


def merge(entries: Iterable[Hardware]) -> list[Hardware]:
    """Return the entries, those that differ only in their nodes as one."""
    merged: list[Hardware] = []
    for entry in entries:
        same = next((each for each in merged if _kind(each) == _kind(entry)), None)
        if same is None:
            merged.append(cast(Hardware, {**entry, "nodes": list(entry["nodes"])}))
        else:
            same["nodes"] += [node for node in entry["nodes"] if node not in same["nodes"]]
    return merged


def of_nodes(entries: Iterable[Hardware], names: Sequence[str]) -> list[Hardware]:
    """Return the entries of these nodes only."""
    chosen = [{**entry, "nodes": [name for name in entry["nodes"] if name in names]} for entry in entries]
    return [cast(Hardware, entry) for entry in chosen if entry["nodes"]]


def plain(text: str, **values: Any) -> str:
    """Return an English text with its `{names}` replaced."""
    return text.format(**values)


def sentence(entry: Hardware, _: Say = plain) -> str:
    """Return a node's hardware as one line: GPUs, processor, memory, network and system, as far as known.

    `_` says a text in another language, as wording.Wording does.
    """
    parts = [gpus(entry, _), processor(entry, _), memory(entry, _), network(entry, _), system(entry, _)]
    return _("; ").join(part for part in parts if part)


def kinds(entries: Iterable[Hardware]) -> str:
    """Return what sets the hardware of a campaign apart: the GPUs of each kind of node, else the processor.

    It is "" where no record says it.
    """
    names = {clean(gpus(entry) or processor(entry)) for entry in entries}
    return " and ".join(sorted(filter(None, names))).replace("|", "/")


def gpus(entry: Hardware, _: Say = plain) -> str:
    """Return such as `8 × NVIDIA H200 (140 GiB), PCIe 5 x16, linked by NV18`."""
    found = entry.get("gpus") or []
    if not found:
        return ""
    names = Counter(f"{gpu['name']}{_gib(gpu.get('memory_mib'))}" for gpu in found)
    text = _(" and ").join(f"{count} × {name}" for name, count in names.items())
    generations = sorted({gpu["pcie_generation"] for gpu in found if "pcie_generation" in gpu})
    if len(generations) == 1:
        widths = sorted({gpu["pcie_width"] for gpu in found if "pcie_width" in gpu})
        text += _(", ") + f"PCIe {generations[0]}" + (f" x{widths[0]}" if len(widths) == 1 else "")
    links = entry.get("gpu_links") or {}
    return text + (_(", linked by {links}", links=", ".join(sorted(links))) if links else "")


COUNTS = {
    "sockets": ("{count} socket", "{count} sockets"),
    "cores": ("{count} core", "{count} cores"),
    "threads": ("{count} thread", "{count} threads"),
}


def processor(entry: Hardware, _: Say = plain) -> str:
    """Return such as `Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz, 2 sockets, 40 cores, 80 threads`."""
    text = entry.get("processor", "")
    for key, (one, many) in COUNTS.items():
        count = entry.get(key)
        if isinstance(count, int):
            text += _(", ") + _(one if count == 1 else many, count=count)
    return text


def memory(entry: Hardware, _: Say = plain) -> str:
    """Return such as `377 GiB memory`."""
    return _("{size} GiB memory", size=f"{entry['memory_gib']:.0f}") if entry.get("memory_gib") else ""


def network(entry: Hardware, _: Say = plain) -> str:
    """Return the network devices with their speeds, the first few of many."""
    found = entry.get("networks") or []
    named = [
        f"{device['name']} ({device['kind']}"
        + (f", {device['speed_gbit']:g} Gb/s" if "speed_gbit" in device else "")
        + ")"
        for device in found
    ]
    more = _(" and {count} more", count=len(named) - FEW) if len(named) > FEW else ""
    return _(", ").join(named[:FEW]) + more


def system(entry: Hardware, _: Say = plain) -> str:
    """Return such as `Ubuntu 18.04, kernel 5.4.0, driver 440.33.01, container`."""
    known = {key: entry[key] for key in ("system", "kernel", "driver", "virtual") if entry.get(key)}
    if "kernel" in known:
        known["kernel"] = _("kernel {version}", version=known["kernel"])
    if "driver" in known:
        known["driver"] = _("driver {version}", version=known["driver"])
    if "virtual" in known:
        known["virtual"] = _(known["virtual"])
    return _(", ").join(known.values())


def _kind(entry: Hardware) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key != "nodes"}


def _gib(mib: Any) -> str:
    return f" ({mib / 1024:.0f} GiB)" if isinstance(mib, (int, float)) else ""
