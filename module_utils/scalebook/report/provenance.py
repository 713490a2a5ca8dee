# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""provenance.json -> the section of the environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ansible.module_utils.scalebook.contracts import Message
from ansible.module_utils.scalebook.judge.runs import binding_of
from ansible.module_utils.scalebook.pages.blocks import Block, Column, Heading, Items, Table
from ansible.module_utils.scalebook.pages.messages_en import MESSAGES
from ansible.module_utils.scalebook.pages.wording import ENGLISH, Wording
from ansible.module_utils.scalebook.report import environment
from ansible.module_utils.scalebook.report.view import View
from ansible.module_utils.scalebook.text import clean

ALL = "all nodes"


def section(view: View) -> list[Block]:
    """Return the section of the environment: the hardware and software in a line each, and all facts."""
    document, _ = view.document, view.wording
    title, rows = _("title.environment"), facts(view)
    lines = environment.machines(document["hardware"], _, document["rows"])
    lines += environment.software(document["provenance"], _)
    lines += [_("report.bound")] if any("numa" in binding_of(row) for row in document["rows"]) else []
    columns = [Column("what"), Column("where", _("head.nodes")), Column("value", look="wrap")]
    table = [Table("", columns, rows, title)] if rows else []
    return [Heading(2, title, "environment"), Items(lines), *table]


def facts(view: View) -> list[dict[str, str]]:
    """Return the rows of the environment, and the name of then of a campaign that has another one now."""
    document, wording = view.document, view.wording
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


def provenance_rows(provenance: Mapping[str, Any], wording: Wording = ENGLISH) -> list[dict[str, str]]:
    """Return `{"what", "where", "value"}` rows; nodes that agree share one.

    `provenance` maps nodes to their facts, below `workloads` for each workload, or below `nodes`, or at the
    top; anything else is the campaign's own.
    """
    workloads, nodes = provenance.get("workloads"), provenance.get("nodes")
    if isinstance(workloads, Mapping) and all(isinstance(facts, Mapping) for facts in workloads.values()):
        common = {key: value for key, value in provenance.items() if key not in ("nodes", "workloads")}
        places = {f"{name}." if len(workloads) > 1 else "": facts for name, facts in workloads.items()}
    elif isinstance(nodes, Mapping):
        common = {key: value for key, value in provenance.items() if key != "nodes"}
        places = {"": nodes}
    else:
        places = {"": {key: value for key, value in provenance.items() if isinstance(value, Mapping)}}
        common = {key: value for key, value in provenance.items() if key not in places[""]}
    out = [{"what": what, "where": "", "value": value} for what, value in _flat(common, wording)]
    for prefix, facts in places.items():
        out += [{**row, "what": clean(prefix) + row["what"]} for row in _node_rows(facts, wording)]
    return out


def _node_rows(facts: Mapping[str, Any], wording: Wording) -> list[dict[str, str]]:
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
                wording.join((_text(each, wording) for each in value), "list" if separate else "parts"),
            )
        ]
    return [(clean(name), "" if value is None else _text(value, wording))]


def _text(value: Any, wording: Wording) -> str:
    return wording.tell(cast(Message, value)) if _is_message(value) else clean(value)


def _is_message(value: Any) -> bool:
    return isinstance(value, Mapping) and value.keys() == {"code", "values"}
