# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Sections 1 and 2: the conclusion, and what was measured with what, where and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.evaluate.sentences import conclusion
from ansible.module_utils.scalebook.evaluate.writer import Writer
from ansible.module_utils.scalebook.pages.blocks import NONE, Cell

KEYS = ("framework", "cuda", "cudnn", "nccl", "mpi", "python", "compiler", "campaign")


def write(writer: Writer) -> None:
    """Write both sections."""
    e, t = writer.e, writer.t
    writer.heading(t["introduction"])
    writer.say(t["about"])
    writer.heading(t["conclusion"], 3)
    writer.items(conclusion(e, t))
    writer.own("introduction")
    writer.heading(t["background"])
    writer.heading(t["platform"], 3)
    writer.say(e["platform"] or t["not_recorded"])
    writer.own("platform")
    _frameworks(writer)
    _models(writer)
    _environment(writer)
    writer.heading(t["configuration"], 3)
    for name in ("batch", "compiler", "amp"):
        writer.heading(t[f"{name}_title"], 4)
        writer.say(t[f"{name}_text"])
    writer.own("configuration")
    _rules(writer)
    writer.heading(t["metrics"], 3)
    for name in ("throughput", "speedup", "latency", "utilisation"):
        writer.heading(t[name], 4)
        writer.say(t[f"{name}_text"])
    writer.own("metrics")


def _frameworks(writer: Writer) -> None:
    writer.heading(writer.t["frameworks"], 3)
    heads = ("workload", "software", "CUDA", "cuDNN", "NCCL", "MPI", "Python", "compiler", "campaign")
    rows = [
        [writer.translate(line["title"]), *(writer.translate(writer.recorded(line[key])) for key in KEYS)]
        for line in writer.e["frameworks"]
    ]
    writer.table(writer.t["frameworks"], heads, rows)
    names = list(
        dict.fromkeys(
            f"{line['name']} {line['framework']}".removesuffix(f" {NONE}")
            for family in writer.e["families"]
            for line in family["frameworks"]
            if "title" not in line
        )
    )
    if names:
        writer.say(writer.t["published_frameworks"].format(writer.t["comma"].join(names)))
    writer.own("frameworks")


def _models(writer: Writer) -> None:
    t = writer.t
    writer.heading(t["models"], 3)
    rows = []
    for family in writer.e["families"]:
        kinds = dict.fromkeys(
            (option["model"], option["task"], option["size"], option["unit"]) for option in family["options"]
        )
        for model, task, size, unit in kinds:
            name = t["families"].get(family["name"], family["name"])
            shown = t["tasks"].get(task, task) or NONE
            rows.append([name, model, shown, writer.recorded(size), t["units"].get(unit, unit)])
    writer.table(t["models"], ("family", "model", "task", "size", "unit"), rows)
    writer.own("models")


def _environment(writer: Writer) -> None:
    t = writer.t
    writer.heading(t["environment"], 3)
    found = []
    for campaign in writer.e["campaigns"]:
        texts = [writer.translate(text) for text in campaign["hardware"]] or [t["not_recorded"]]
        if shared := campaign["simulated"]:
            texts.append(t["containers" if shared.get("containers") else "simulated"].format(**shared))
        found.append([campaign["name"], t["semicolon"].join(texts)])
    writer.table(t["environment"], ("campaign", "hardware"), found)
    for campaign in writer.e["campaigns"]:
        for text in campaign["topology"]:
            writer.code(f"nvidia-smi topo -m, {campaign['name']}", text)
    writer.own("environment")


def _rules(writer: Writer) -> None:
    t = writer.t
    writer.heading(t["rules"], 3)
    writer.say(t["rules_text"])
    heads = ("campaign", "machines", "gpus", "bsz", "dtype", "compiled", "repeats", "window")
    axes = ("nodes", "gpus", "bsz", "dtype", "xla", "repeats", "window")
    rows = [
        [campaign["name"], *(_listed(campaign["matrix"][axis], t) for axis in axes)]
        for campaign in writer.e["campaigns"]
    ]
    writer.table(t["matrix"], heads, rows)
    writer.own("rules")


def _listed(values: Sequence[Any], texts: Mapping[str, Any]) -> Cell:
    return ", ".join(
        texts["switch"][str(value).lower()] if isinstance(value, bool) else str(value) for value in values
    )
