# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What nodes are made of: nodes with the same hardware are described once, and a case has what it used of it.

The fields are those of MLPerf's system description, as far as module hardware_info can read them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypedDict, cast

from ansible.module_utils.scalebook.contracts import Hardware
from ansible.module_utils.scalebook.text import clean

Say = Callable[..., str]

# Interfaces that a sentence names; a table has them all.
FEW = 3

VISIBLE = ("gpus", "gpu_links", "gpu_topology")
"""Fields that tell which GPUs of a node a job could see, and not what the node is."""

OF_PROCESSOR = ("processor", "sockets", "cores", "threads")


class Kind(TypedDict, total=False):
    """What sets a kind of node apart: its GPUs, counted by name, with their links; else its processor."""

    gpus: dict[str, int]
    links: list[str]
    processor: str
    sockets: int
    cores: int
    threads: int


TEXTS = {
    "hardware.list": "; ",
    "hardware.parts": ", ",
    "hardware.and": " and ",
    "hardware.shared": "{nodes} nodes, {machines} machines",
    "hardware.shared-one": "{nodes} nodes, 1 machine",
    "hardware.linked": "{gpus}, linked by {links}",
    "hardware.socket": "{count} socket",
    "hardware.sockets": "{count} sockets",
    "hardware.core": "{count} core",
    "hardware.cores": "{count} cores",
    "hardware.thread": "{count} thread",
    "hardware.threads": "{count} threads",
    "hardware.memory": "{size:.0f} GiB memory",
    "hardware.size": "{size:.0f} GiB",
    "hardware.speed": "{speed:g} Gb/s",
    "hardware.more": "{list} and {count} more",
    "hardware.kernel": "kernel {version}",
    "hardware.driver": "driver {version}",
    "hardware.container": "container",
    "hardware.virtual-machine": "virtual machine",
}
"""The texts of the catalogue in English: kinds of hardware are compared by them."""


def plain(code: str, **values: Any) -> str:
    """Return an English text with its `{names}` replaced."""
    return TEXTS[code].format(**values)


def group(by_node: Mapping[str, Mapping[str, Any]]) -> list[Hardware]:
    """Return {node: what hardware_info returned} as one entry for each kind of node, with its `nodes`."""
    return merge([cast(Hardware, {"nodes": [node], **values}) for node, values in by_node.items()])


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


def places(entries: Sequence[Hardware], own: Iterable[Hardware]) -> list[int]:
    """Return where in `entries` those are that describe the same kinds of node as `own`."""
    kinds = [_kind(entry) for entry in entries]
    return sorted({kinds.index(_kind(entry)) for entry in own if _kind(entry) in kinds})


def of_nodes(entries: Iterable[Hardware], names: Sequence[str]) -> list[Hardware]:
    """Return the entries of these nodes only."""
    chosen = [{**entry, "nodes": [name for name in entry["nodes"] if name in names]} for entry in entries]
    return [cast(Hardware, entry) for entry in chosen if entry["nodes"]]


def sentence(entry: Hardware, _: Say = plain) -> str:
    """Return a node's hardware as one line: GPUs, processor, memory, network and system, as far as known.

    `_` says a text in another language by its code, as wording.Wording does.
    """
    parts = [gpus(entry, _), processor(entry, _), memory(entry, _), network(entry, _), system(entry, _)]
    return _("hardware.list").join(part for part in parts if part)


def brief(entry: Hardware, _: Say = plain) -> str:
    """Return what decides how fast a node is as one line: GPUs, processor, memory and driver."""
    short_entry = {key: value for key, value in entry.items() if key not in ("kernel", "virtual")}
    parts = [gpus(entry, _), processor(entry, _), memory(entry, _), system(cast(Hardware, short_entry), _)]
    return _("hardware.list").join(part for part in parts if part)


def hosts(entries: Iterable[Hardware]) -> list[Hardware]:
    """Return an entry for each kind of node, with all GPUs that some case could see of it."""
    kinds: list[Hardware] = []
    for entry in sorted(entries, key=lambda each: -len(each.get("gpus") or ())):
        same = next((each for each in kinds if _same_node(each, entry)), None)
        if same is None:
            kinds.append(cast(Hardware, {**entry, "nodes": list(entry["nodes"])}))
        else:
            same["nodes"] += [node for node in entry["nodes"] if node not in same["nodes"]]
    return kinds


def visible(entries: Iterable[Hardware], host: Hardware) -> list[int]:
    """Return how many GPUs of a `host`, an entry of `hosts`, these entries have, each number once."""
    return sorted({len(entry.get("gpus") or ()) for entry in entries if _same_node(host, entry)})


def of_case(entries: Sequence[Hardware], case_row: Mapping[str, Any]) -> list[Hardware]:
    """Return the entries that a case, or a row with its fields, ran on: those that it names, if it does.

    Others that have fewer GPUs than it used are not its own.
    """
    named = [entries[index] for index in case_row.get("hardware") or () if index < len(entries)]
    if named or case_row.get("device") == "cpu":
        return named or list(entries)
    enough = [entry for entry in entries if len(entry.get("gpus") or ()) >= case_row["gpus"]]
    return enough or list(entries)


def used_of_nodes(entries: Sequence[Hardware], case_row: Mapping[str, Any]) -> list[Hardware]:
    """Return what a case used of its nodes: on each as many GPUs as it says, and no GPU on processors."""
    return merge(_part(entry, case_row) for entry in of_case(entries, case_row))


def kind(entries: Sequence[Hardware], case_row: Mapping[str, Any]) -> str:
    """Return what two runs of a case have in common if they can be compared: `2 × NVIDIA H200, NV18`.

    That is the GPU, how many of each node were used and their link, or the processor; for nodes that share
    machines also their numbers.  It is "" where no record says it.
    """
    text = kinds_in_words(used_kinds(entries, case_row))
    return text and "; ".join(filter(None, [text, shared(case_row)]))


def used_kinds(entries: Sequence[Hardware], case_row: Mapping[str, Any]) -> list[Kind]:
    """Return what sets apart the hardware that a case used, each kind of node once."""
    return _kinds(_part(entry, case_row) for entry in of_case(entries, case_row))


def kinds(entries: Iterable[Hardware]) -> list[Kind]:
    """Return what sets the hardware of a campaign apart, each kind of node once."""
    return _kinds(hosts(entries))


def kinds_in_words(listed: Iterable[Kind], _: Say = plain) -> str:
    """Return kinds of nodes as text, such as `2 × NVIDIA H200, NV18`; it is "" where no record says it."""
    names = {_gpus_and_links(each, _) or processor(cast(Hardware, each), _) for each in listed}
    return clean(_("hardware.and").join(sorted(filter(None, names)))).replace("|", "/")


def model(entries: Sequence[Hardware], case_row: Mapping[str, Any]) -> str:
    """Return the model of the GPUs that a case used, or of its processors, '' if unknown."""
    parts = used_of_nodes(entries, case_row)
    names = {gpu["name"] for entry in parts for gpu in entry.get("gpus") or ()}
    names = names or {entry.get("processor", "") for entry in parts}
    return clean(" and ".join(sorted(filter(None, names)))).replace("|", "/")


def link(entries: Sequence[Hardware], case_row: Mapping[str, Any]) -> str:
    """Return how the GPUs of a case are linked and whether its nodes share machines, '' if unknown."""
    names = {
        name for entry in of_case(entries, case_row) for name in _part(entry, case_row).get("gpu_links") or ()
    }
    return "; ".join(filter(None, [", ".join(sorted(names)), shared(case_row)]))


def shared(case_row: Mapping[str, Any], _: Say = plain) -> str:
    """Return such as `4 nodes, 1 machine` for a case whose nodes shared machines, else ''."""
    machines = case_row.get("machines")
    if not machines or machines >= case_row["nodes"]:
        return ""
    return _(
        "hardware.shared-one" if machines == 1 else "hardware.shared",
        nodes=case_row["nodes"],
        machines=machines,
    )


def node(entry: Hardware, _: Say = plain) -> str:
    """Return a node as one line that names its GPUs and not how many of them were visible."""
    models = {gpu["name"]: gpu for gpu in entry.get("gpus") or ()}
    entry_of_one = {**entry, "gpus": list(models.values()), "gpu_links": {}}
    return sentence(cast(Hardware, entry_of_one), _).replace("1 × ", "")


def models(entries: Iterable[Hardware], _: Say = plain) -> str:
    """Return the GPUs of all hosts in short, `1 and 2 × NVIDIA H200`, else their processors.

    It is "" where no record says it.
    """
    counts_of: dict[str, set[int]] = {}
    processors: set[str] = set()
    for host in hosts(entries):
        names = Counter(gpu["name"] for gpu in host.get("gpus") or ())
        for name, count in names.items():
            counts_of.setdefault(name, set()).add(count)
        processors |= set() if names else {processor(host, _)}
    together = _("hardware.and")
    gpu_texts = [f"{together.join(map(str, sorted(counts_of[name])))} × {name}" for name in sorted(counts_of)]
    return clean(together.join([*gpu_texts, *sorted(filter(None, processors))]))


def links(entry: Hardware, count: int) -> list[str]:
    """Return the names of the links between the first `count` GPUs of a node."""
    rows = [line.split("\t") for line in entry.get("gpu_topology", "").splitlines() if _OF_GPU.match(line)]
    try:
        kinds = {rows[one][other + 1].strip() for one in range(count) for other in range(one)}
    except IndexError:
        kinds = set(entry.get("gpu_links") or ())
    return sorted(filter(None, kinds)) if count > 1 else []


def gpus(entry: Hardware, _: Say = plain) -> str:
    """Return such as `8 × NVIDIA H200 (140 GiB), PCIe 5 x16, linked by NV18`."""
    own = entry.get("gpus") or []
    if not own:
        return ""
    names = Counter(_sized(gpu["name"], gpu.get("memory_mib"), _) for gpu in own)
    text = _("hardware.and").join(f"{count} × {name}" for name, count in names.items())
    generations = sorted({gpu["pcie_generation"] for gpu in own if "pcie_generation" in gpu})
    if len(generations) == 1:
        widths = sorted({gpu["pcie_width"] for gpu in own if "pcie_width" in gpu})
        text += (
            _("hardware.parts") + f"PCIe {generations[0]}" + (f" x{widths[0]}" if len(widths) == 1 else "")
        )
    between = _("hardware.parts").join(sorted(entry.get("gpu_links") or ()))
    return _("hardware.linked", gpus=text, links=between) if between else text


def processor(entry: Hardware, _: Say = plain) -> str:
    """Return such as `Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz, 2 sockets, 40 cores, 80 threads`."""
    text = entry.get("processor", "")
    for key in ("sockets", "cores", "threads"):
        count = entry.get(key)
        if isinstance(count, int):
            text += _("hardware.parts") + _(f"hardware.{key[: -1 if count == 1 else None]}", count=count)
    return text


def memory(entry: Hardware, _: Say = plain) -> str:
    """Return such as `377 GiB memory`."""
    return _("hardware.memory", size=entry["memory_gib"]) if entry.get("memory_gib") else ""


def network(entry: Hardware, _: Say = plain) -> str:
    """Return the network devices with their speeds, the first few of many."""
    named = interfaces(entry, _)
    first = _("hardware.parts").join(named[:FEW])
    return _("hardware.more", list=first, count=len(named) - FEW) if named[FEW:] else first


def interfaces(entry: Hardware, _: Say = plain) -> list[str]:
    """Return the network devices with their kinds and speeds."""
    texts = []
    for device in entry.get("networks") or []:
        speed = [_("hardware.speed", speed=device["speed_gbit"])] if "speed_gbit" in device else []
        texts.append(f"{device['name']} ({', '.join([device['kind'], *speed])})")
    return texts


def system(entry: Hardware, _: Say = plain) -> str:
    """Return such as `Ubuntu 18.04, kernel 5.4.0, driver 440.33.01, container`."""
    facts = {key: entry[key] for key in ("system", "kernel", "driver", "virtual") if entry.get(key)}
    if "kernel" in facts:
        facts["kernel"] = _("hardware.kernel", version=facts["kernel"])
    if "driver" in facts:
        facts["driver"] = _("hardware.driver", version=facts["driver"])
    if "virtual" in facts:
        code = f"hardware.{facts['virtual']}".replace(" ", "-")
        facts["virtual"] = _(code) if code in TEXTS else facts["virtual"]
    return _("hardware.parts").join(facts.values())


_OF_GPU = re.compile(r"GPU\d+\t")


def _part(entry: Hardware, case_row: Mapping[str, Any]) -> Hardware:
    """Return a node with the GPUs that a case used of it; nodes of one machine have links to each other."""
    rest = {key: value for key, value in entry.items() if key not in VISIBLE}
    own = entry.get("gpus") or []
    if case_row.get("device") == "cpu" or not own:
        return cast(Hardware, rest)
    on_one = -(-case_row["nodes"] // case_row["machines"]) if shared(case_row) else 1
    between = links(entry, min(case_row["gpus"] * on_one, len(own)))
    return cast(Hardware, {**rest, "gpus": own[: case_row["gpus"]], "gpu_links": dict.fromkeys(between, 1)})


def _kinds(entries: Iterable[Hardware]) -> list[Kind]:
    """Return the GPUs of each entry with their links, else its processor; equal ones once."""
    kinds: list[Kind] = []
    for entry in entries:
        names = Counter(clean(gpu["name"]) for gpu in entry.get("gpus") or ())
        one: Kind = {"gpus": dict(names), "links": sorted(entry.get("gpu_links") or ())}
        if not names:
            one = cast(Kind, {key: entry[key] for key in OF_PROCESSOR if key in entry})  # type: ignore[literal-required]
        kinds += [one] if one and one not in kinds else []
    return kinds


def _gpus_and_links(entry: Kind, _: Say) -> str:
    """Return such as `8 × NVIDIA H200, NV18`."""
    names = entry.get("gpus") or {}
    text = _("hardware.and").join(f"{count} × {name}" for name, count in names.items())
    return _("hardware.parts").join(filter(None, [text, *entry.get("links", ())])) if text else ""


def _same_node(host: Hardware, entry: Hardware) -> bool:
    """Return whether two entries are of the same node, of which one may have had fewer GPUs visible."""
    fields = {*host, *entry} - {"nodes", *VISIBLE}
    one, other = ({field: each.get(field) for field in fields} for each in (host, entry))
    more, fewer = host.get("gpus") or [], entry.get("gpus") or []
    if one != other or len(more) == len(fewer):
        return _kind(host) == _kind(entry)
    return bool(set(host["nodes"]) & set(entry["nodes"])) and all(gpu in more for gpu in fewer)


def _kind(entry: Hardware) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key != "nodes"}


def _sized(name: str, mib: Any, _: Say) -> str:
    return f"{name} ({_('hardware.size', size=mib / 1024)})" if isinstance(mib, (int, float)) else name
