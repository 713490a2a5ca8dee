# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What a campaign ran on and with: a line each for environment.csv and results.xlsx, and a section.

The fields are those of MLPerf's system description. A field that the records lack is
NOT_RECORDED: earlier versions did not read it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook import hardware
from ansible.module_utils.scalebook.contracts import Hardware, Results, Row, message
from ansible.module_utils.scalebook.judge import sharing
from ansible.module_utils.scalebook.judge.runs import binding_of
from ansible.module_utils.scalebook.judge.versions import version_of
from ansible.module_utils.scalebook.pages.blocks import Block, Column, Heading, Items, Table
from ansible.module_utils.scalebook.pages.messages_en import MESSAGES
from ansible.module_utils.scalebook.pages.wording import ENGLISH, Wording
from ansible.module_utils.scalebook.text import clean

NOT_RECORDED = "not recorded"
SOFTWARE = (
    *("framework", "torch", "cuda", "cudnn", "nccl", "mpi", "openmpi", "horovod", "python"),
    *("stack", "features", "commit", "lock"),
)
"""Facts of a node in provenance.json about its software; early campaigns have `torch` and `openmpi`."""
NAMED = ("framework", "mpi")
"""Facts that begin with the name of what they are about."""
FIRST = SOFTWARE[:9]
"""What the head of a report has."""

Line = dict[str, str]


def table(document: Results) -> list[Line]:
    """Return `{"what", "where", "value"}` lines of a report: the campaign, its hardware, its software."""
    provenance = document["provenance"] or {}
    campaign = {
        "campaign": document["campaign"],
        "first run": document["started"],
        "machines": simulated(document),
        "commit of scalebook": (provenance.get("scalebook") or {}).get("commit"),
    }
    lines = [_line(what, "", value) for what, value in campaign.items()]
    lines += _commands(document)
    entries = hardware.hosts(document["hardware"]) or [Hardware(nodes=[])]
    for entry in entries:
        where = ", ".join(entry["nodes"])
        lines += [_line(what, where, value) for what, value in _hardware(entry).items()]
    return lines + _software(provenance)


def _commands(document: Results) -> list[Line]:
    """Return a line for each command, where there are several with the cases that it measures."""
    of_document = document.get("commands") or []
    if len(of_document) < 2:
        return [_line("command", "", of_document[0]["command"] if of_document else None)]
    return [_line("command", ", ".join(each["cases"]), each["command"]) for each in of_document]


def simulated(document: Results) -> str | None:
    """Return `1 machine, 4 simulated nodes` where nodes shared machines, else `no simulated nodes`."""
    entries = document["hardware"]
    unknown = any(sharing.unknown(entries, row) for row in document.get("rows") or ())
    nothing = "no simulated nodes" if entries and not unknown else None
    return shared(document["simulated"], ENGLISH) or nothing


def system(document: Results, row: Row) -> Line:
    """Return `{"machines", "hardware", "software"}` of a row, each as a line, for tables read by programs."""
    descriptions = [hardware.sentence(entry) for entry in hardware.used_of_nodes(document["hardware"], row)]
    is_known = row.get("machines") or (
        document["hardware"] and not sharing.unknown(document["hardware"], row)
    )
    unshared = "no simulated nodes" if is_known else NOT_RECORDED
    return {
        "machines": hardware.shared(row) or unshared,
        "hardware": clean(" / ".join(descriptions)) or NOT_RECORDED,
        "software": " / ".join(software(_of_workload(document["provenance"], row["workload"]))),
    }


def _of_workload(recorded: Mapping[str, Any] | None, workload: str) -> Mapping[str, Any]:
    """Return provenance.json with what belongs to a workload alone, where it tells them apart."""
    provenance = recorded or {}
    own = {name: nodes for name, nodes in _workloads(provenance).items() if name == workload}
    return {**provenance, "workloads": own} if own else provenance


def machines(entries: Sequence[Hardware], wording: Wording, rows: Sequence[Row] = ()) -> list[str]:
    """Return a line for each kind of node, `not recorded` alone where no record says it.

    It says which cases, of `rows`, could not see all GPUs of their nodes.
    """
    if not entries:
        return [wording("report.not-recorded")]
    kinds = hardware.hosts(entries)
    return [
        clean(
            wording.about(
                ", ".join(kind["nodes"]) if len(kinds) > 1 else wording("report.each-node"),
                wording.join(
                    [hardware.sentence(kind, wording), *_partly_visible(kind, entries, rows, wording)], "list"
                ),
            )
        )
        for kind in kinds
    ]


def _partly_visible(
    kind: Hardware, entries: Sequence[Hardware], rows: Sequence[Row], wording: Wording
) -> list[str]:
    """Return such as `1n1g and 1n2g had 1 and 2 of them visible`, nothing where every case saw all GPUs."""
    _ = wording
    total = len(kind.get("gpus") or ())
    visible_of_case: dict[str, list[int]] = {}
    for row in rows:
        own = hardware.visible(hardware.of_case(entries, row), kind) if row["hardware"] else []
        visible_of_case[row["label"]] = sorted({*visible_of_case.get(row["label"], []), *own})
    parts = {label: counts for label, counts in visible_of_case.items() if set(counts) - {total}}
    if not parts:
        return []
    texts = {label: _.join(map(str, counts), "or") for label, counts in parts.items()}
    if any(len(counts) > 1 for counts in parts.values()):
        listed = [_("report.visible-in", counts=text, case=label) for label, text in texts.items()]
        return [_("report.of-them", list=_.join(listed))]
    counts = list(texts.values())[:1] if len(set(texts.values())) == 1 else list(texts.values())
    return [_("report.visible", cases=_.join(texts, "and"), counts=_.join(counts, "and"))]


def shared(counts: Mapping[str, int] | None, wording: Wording) -> str:
    """Return `1 machine, 4 simulated nodes` where nodes shared machines, else ''.

    Containers of one host, which look like machines, are `4 nodes, 1 machine`.
    """
    if not counts:
        return ""
    if counts.get("containers"):
        return wording.join(
            [wording.count(counts["nodes"], "node"), wording.count(counts["machines"], "machine")]
        )
    return wording.join(
        [wording.count(counts["machines"], "machine"), wording.count(counts["nodes"], "simulated node")]
    )


def software(recorded: Mapping[str, Any] | None, wording: Wording = ENGLISH) -> list[str]:
    """Return a sentence for each workload and for nodes that differ, the last one with scalebook's commit.

    `recorded` is the content of provenance.json.
    """
    _ = wording
    provenance = recorded or {}
    sentences = []
    for workload, nodes in _workloads(provenance).items():
        by_node = {node: _sentence(facts, wording) for node, facts in nodes.items()}
        for text in dict.fromkeys(by_node.values()):
            places = [node for node, each in by_node.items() if each == text]
            where = [workload] if len(_workloads(provenance)) > 1 else []
            where += places if len(set(by_node.values())) > 1 else []
            text = text or _("report.not-recorded")
            sentences.append(clean(_.about(", ".join(where), text) if where else text))
    commit = (provenance.get("scalebook") or {}).get("commit") or message("report.not-recorded")
    short = re.sub(r"[0-9a-f]{40}", lambda digits: digits[0][:12], _told(commit, _))
    last = _("report.scalebook", commit=short)
    return [*sentences[:-1], _.join([*(sentences[-1:] or [_("report.not-recorded")]), last], "list")]


def _sentence(facts: Mapping[str, Any], wording: Wording) -> str:
    """Return such as `tensorflow 2.20.0; CUDA 12.5.82; NCCL 2.25.1; Open MPI 4.1.8; Python 3.11.7`."""
    versions = {key: facts[key] for key in FIRST if facts.get(key) and facts[key] != "none"}
    return wording.join(
        (
            ("" if key in NAMED else wording(f"fact.{key}") + " ") + _of_node(value, wording)
            for key, value in versions.items()
        ),
        "list",
    )


def _of_node(value: Any, wording: Wording) -> str:
    """Return what a node recorded in the language of the report."""
    version = version_of(value)
    return wording.fact(version) if isinstance(version, str) else wording.tell(version)


def _workloads(provenance: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Return {workload: {node: facts}}; '' stands for the workload of early campaigns."""
    return provenance.get("workloads") or {"": provenance.get("nodes") or {}}


def _hardware(entry: Hardware) -> dict[str, Any]:
    """Return the lines of one kind of node."""
    gpus = entry.get("gpus")
    links = entry.get("gpu_links") or {}
    return {
        "GPUs": hardware.gpus(entry) if gpus else ("none" if gpus == [] else None),
        "GPU interconnect": ", ".join(f"{count} x {name}" for name, count in sorted(links.items())) or None,
        "power limit of the GPUs": _power(gpus or []),
        "processor": hardware.processor(entry),
        "memory": hardware.memory(entry),
        "network": ", ".join(hardware.interfaces(entry)) or None,
        "system": entry.get("system"),
        "kernel": entry.get("kernel"),
        "virtual": entry.get("virtual"),
        "driver": entry.get("driver"),
        "CUDA of the driver": entry.get("cuda"),
    }


def _power(gpus: list[Any]) -> str | None:
    limits = sorted({gpu["power_limit_w"] for gpu in gpus if "power_limit_w" in gpu})
    return " and ".join(f"{limit} W" for limit in limits) or None


def _software(provenance: Mapping[str, Any]) -> list[Line]:
    """Return the lines of each workload's software; nodes that agree share one."""
    lines = []
    for workload, nodes in _workloads(provenance).items():
        for key in SOFTWARE:
            values: dict[str, list[str]] = {}
            for node, facts in nodes.items():
                if facts.get(key):
                    values.setdefault(_text(facts[key]), []).append(node)
            name = ENGLISH(f"fact.{key}") + (f" of {workload}" if workload else "")
            lines += [_line(name, ", ".join(places), value) for value, places in values.items()]
            if not values and key in ("framework", "cuda", "nccl"):
                lines.append(_line(name, "", None))
    return lines


def _line(what: str, where: str, value: Any) -> Line:
    text = clean(_text(value)) if value not in (None, "") else NOT_RECORDED
    return {"what": clean(what), "where": clean(where), "value": text}


def _text(value: Any) -> str:
    if _is_message(value):
        return ENGLISH.tell(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(_text(each) for each in value)
    return str(value)


ALL = "all nodes"


def section(document: Results, wording: Wording) -> list[Block]:
    """Return the section of the environment: the hardware and software in a line each, and all facts."""
    _ = wording
    title, rows = _("title.environment"), facts(document, _)
    lines = machines(document["hardware"], _, document["rows"])
    lines += software(document["provenance"], _)
    lines += [_("report.bound")] if any("numa" in binding_of(row) for row in document["rows"]) else []
    columns = [Column("what"), Column("where", _("head.nodes")), Column("value", look="wrap")]
    table = [Table(columns, rows, title)] if rows else []
    return [Heading(2, title, "environment"), Items(lines), *table]


def facts(document: Results, wording: Wording = ENGLISH) -> list[Line]:
    """Return the rows of the environment, and the name of then of a campaign that has another one now."""
    name = clean(document["plan"].get("campaign") or "")
    renamed = document["kind"] != "import" and name and name != clean(document["campaign"])
    first = [{"what": wording("fact.campaign"), "where": "", "value": name}] if renamed else []
    return first + [
        {
            "what": _fact(row["what"], wording),
            "where": wording("report.all-nodes") if row["where"] == ALL else row["where"],
            "value": wording.fact(row["value"]),
        }
        for row in provenance_rows(document["provenance"] or {}, wording)
    ]


def _fact(what: str, wording: Wording) -> str:
    """Return what a dotted key of provenance.json is called, its workload before it."""
    for workload, key in (("", what), what.rpartition(".")[::2]):
        if f"fact.{key}" in MESSAGES:
            return f"{workload} {wording(f'fact.{key}')}".strip()
    return what


def provenance_rows(provenance: Mapping[str, Any], wording: Wording = ENGLISH) -> list[Line]:
    """Return `{"what", "where", "value"}` rows; nodes that agree share one.

    What is neither below `workloads` nor below `nodes` is the campaign's own.
    """
    common = {key: value for key, value in provenance.items() if key not in ("nodes", "workloads")}
    out = [{"what": what, "where": "", "value": value} for what, value in _flat(common, wording)]
    by_workload = _workloads(provenance)
    for workload, nodes in by_workload.items():
        prefix = f"{clean(workload)}." if len(by_workload) > 1 else ""
        out += [{**row, "what": prefix + row["what"]} for row in _node_rows(nodes, wording)]
    return out


def _node_rows(facts: Mapping[str, Any], wording: Wording) -> list[Line]:
    """Return the rows of {node: facts}."""
    nodes_of: dict[str, dict[str, list[str]]] = {}
    for node, values in facts.items():
        for what, value in _flat(values, wording):
            nodes_of.setdefault(what, {}).setdefault(value, []).append(clean(node))
    out = []
    for what, values in nodes_of.items():
        for value, where in values.items():
            everywhere = len(where) == len(facts)
            place = ALL if everywhere and len(facts) > 1 else ", ".join(where)
            out.append({"what": what, "where": place, "value": value})
    return out


def _flat(value: Any, wording: Wording, name: str = "") -> list[tuple[str, str]]:
    """Return (dotted name, text) of every leaf."""
    if isinstance(value, Mapping) and not _is_message(value):
        return [
            leaf
            for key, each in value.items()
            for leaf in _flat(each, wording, f"{name}.{key}" if name else str(key))
        ]
    if isinstance(value, (list, tuple)):
        separate = any(_is_message(each) for each in value)  # sentences have commas in them
        return [
            (
                clean(name),
                wording.join((_told(each, wording) for each in value), "list" if separate else "parts"),
            )
        ]
    return [(clean(name), "" if value is None else _told(value, wording))]


def _told(value: Any, wording: Wording) -> str:
    version = version_of(value)
    return clean(version) if isinstance(version, str) else wording.tell(version)


def _is_message(value: Any) -> bool:
    return isinstance(value, Mapping) and value.keys() == {"code", "values"}
