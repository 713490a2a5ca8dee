# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What differs between the rows of a model family that the evaluation compares."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook import hardware
from ansible.module_utils.scalebook.contracts import Group, Hardware, Message, Results, message
from ansible.module_utils.scalebook.evaluate.options import NOT_RECORDED, size_of
from ansible.module_utils.scalebook.judge.versions import version_of
from ansible.module_utils.scalebook.workload import UNKNOWN, Workload, Workloads

OWN_DATA = ("own_data", "text", "data", "tfrecords", "data_dir")
"""Settings that name data of the user's own, where they are not empty; `corpus` is the default of `text`."""
STACK = ("framework", "cuda", "cudnn", "nccl", "mpi", "python")
"""Fields of the provenance that are compared."""


def of_family(campaigns: Sequence[Results], family: str, workloads: Workloads) -> list[dict[str, Any]]:
    """Return what is not the same in all groups of a family; `workloads` are the declarations.

    An entry is `{"what": str, "values": [{"value": Any, "of": [str]}]}`: each value, with the workloads and
    campaigns that have it.  A value that was not recorded is 'not recorded'; it differs from every other one.
    Hardware is a list of nodes.
    """
    values: dict[str, dict[str, dict[str, Any]]] = {}
    for results in campaigns:
        for group in results["groups"]:
            if group.get("family", "") != family:
                continue
            name = f"{group['workload']} ({results['campaign']})"
            facts: dict[str, Any] = _facts(results, group, workloads)
            nodes = facts["hardware"]
            alike = {
                **facts,
                "data": str(facts["data"]),
                "hardware": "; ".join(dict.fromkeys(map(hardware.node, nodes))),
            }
            facts["hardware"] = nodes or NOT_RECORDED
            for what, value in facts.items():
                entry = values.setdefault(what, {}).setdefault(str(alike[what]), {"value": value, "of": []})
                entry["of"] += [name] * (name not in entry["of"])
    return [
        {"what": what, "values": list(entries.values())}
        for what, entries in values.items()
        if len(entries) > 1
    ]


def window(group: Group) -> str:
    """Return the steps of the warm-up and of the window of a group; `–` where epochs are measured."""
    return "–" if group["window"] is None else f"{group['warmup']} + {group['window']}"


def _facts(results: Results, group: Group, workloads: Workloads) -> dict[str, Any]:
    """Return what a fair comparison has the same."""
    nodes = ((results.get("provenance") or {}).get("workloads") or {}).get(group["workload"]) or {}
    about: Mapping[str, Any] = next(iter(nodes.values()), {})
    declaration = workloads.get(group["workload"], UNKNOWN)
    return {
        "model": str(group["model"]),
        "task": declaration.task or NOT_RECORDED,
        "size": size_of(group.get("settings") or {}, declaration),
        "window": window(group),
        "unit": str(group["unit"]),
        "data": _data(group, about, declaration),
        "hardware": _hardware(results, group),
        **{name: version_of(about.get(name) or NOT_RECORDED) for name in STACK},
    }


def _data(group: Group, about: Mapping[str, Any], declaration: Workload) -> str | Message:
    """Return what a group trained on: the place of data of the user's own, or what its nodes recorded.

    Data of one place are taken for the same: workloads store them in formats, and so checksums, of their own.
    """
    settings = group.get("settings") or {}
    own = [str(settings[name]) for name in OWN_DATA if settings.get(name)]
    dataset: Mapping[str, str] = declaration.install.get("dataset") or {}
    recorded = str(about.get(dataset.get("note", "")) or about.get("data") or NOT_RECORDED)
    if own:
        return own[0]
    if re.fullmatch("[0-9a-f]{64}", recorded):
        return message("evaluation.data-files", checksum=recorded)
    if recorded == "none":
        return declaration.install.get("data") or message("evaluation.data-invented")
    return recorded


def _hardware(results: Results, group: Group) -> list[Hardware]:
    """Return the nodes that the rows of a group ran on, however many of their GPUs these used."""
    entries = results.get("hardware") or ()
    rows = [row for row in results["rows"] if row["case"] in group["rows"]]
    return hardware.hosts(entry for row in rows for entry in hardware.of_case(entries, row))
