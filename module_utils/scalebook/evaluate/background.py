# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Sections 1 and 2: the conclusion, and what was measured with what, where and how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ansible.module_utils.scalebook import hardware
from ansible.module_utils.scalebook.contracts import message
from ansible.module_utils.scalebook.evaluate.options import FAMILIES
from ansible.module_utils.scalebook.evaluate.sentences import term
from ansible.module_utils.scalebook.evaluate.writer import Writer
from ansible.module_utils.scalebook.pages.blocks import NONE, Paragraph

SOFTWARE = ("framework", "cuda", "cudnn", "nccl", "mpi", "python", "compiler", "campaign")
CONFIGURATION = ("batch", "compiler", "amp")
METRICS = ("throughput", "speedup", "latency", "utilisation")


def write(writer: Writer) -> None:
    """Write both sections."""
    writer.heading("introduction")
    writer.say("about")
    writer.heading("conclusion", 3)
    writer.items(writer.evaluation["conclusion"])
    writer.own("introduction")
    writer.heading("background")
    writer.heading("platform", 3)
    writer.blocks.append(Paragraph(writer.evaluation["platform"] or writer.text("not-recorded")))
    writer.own("platform")
    _frameworks(writer)
    _models(writer)
    _environment(writer)
    _definitions(writer, "configuration", {name: f"{name}-title" for name in CONFIGURATION})
    _rules(writer)
    _definitions(writer, "metrics", {name: name for name in METRICS})


def _definitions(writer: Writer, section: str, titles: dict[str, str]) -> None:
    writer.heading(section, 3)
    for name, title in titles.items():
        writer.heading(title, 4)
        writer.say(f"{name}-text")
    writer.own(section)


def _frameworks(writer: Writer) -> None:
    writer.heading("frameworks", 3)
    lines = writer.evaluation["frameworks"]
    rows = [{key: writer.wording.tell(line[key]) for key in ("title", *SOFTWARE)} for line in lines]
    heads = {"title": "workload", "framework": "software"}
    columns = [writer.column(key, head=heads.get(key, key)) for key in ("title", *SOFTWARE)]
    writer.table(writer.text("frameworks"), columns, rows)
    names = [
        f"{line['name']} {line['framework']}".removesuffix(f" {NONE}")
        for family in writer.evaluation["families"]
        for line in family["frameworks"]
        if "title" not in line
    ]
    if names:
        writer.say("published-frameworks", names=list(dict.fromkeys(names)))
    writer.own("frameworks")


def _models(writer: Writer) -> None:
    writer.heading("models", 3)
    kinds = dict.fromkeys(
        (family["name"], *(option[key] for key in ("model", "task", "size", "unit")))
        for family in writer.evaluation["families"]
        for option in family["options"]
    )
    rows = [
        {
            "family": FAMILIES.get(family, family),
            "model": model,
            "task": term("task", task) or NONE,
            "size": size,
            "unit": term("unit", unit),
        }
        for family, model, task, size, unit in kinds
    ]
    writer.table(writer.text("models"), writer.columns("family", "model", "task", "size", "unit"), rows)
    writer.own("models")


def _environment(writer: Writer) -> None:
    campaigns = writer.evaluation["campaigns"]
    writer.heading("environment", 3)
    rows = []
    for campaign in campaigns:
        texts = [hardware.sentence(entry, writer.wording) for entry in campaign["hardware"]]
        texts = texts or [writer.text("not-recorded")]
        if shared := campaign["simulated"]:
            texts.append(writer.text("containers" if shared.get("containers") else "simulated", **shared))
        rows.append({"campaign": campaign["name"], "hardware": message("evaluation.all", parts=texts)})
    writer.table(writer.text("environment"), writer.columns("campaign", "hardware"), rows)
    for campaign in campaigns:
        for entry in campaign["hardware"]:
            if entry.get("gpu_topology"):
                writer.code(f"nvidia-smi topo -m, {campaign['name']}", entry["gpu_topology"])
    writer.own("environment")


def _rules(writer: Writer) -> None:
    writer.heading("rules", 3)
    writer.say("rules-text")
    heads = {"nodes": "machines", "xla": "compiled"}
    axes = ("nodes", "gpus", "bsz", "dtype", "xla", "repeats", "window")
    rows = [
        {"campaign": campaign["name"], **{axis: _listed(writer, campaign["matrix"][axis]) for axis in axes}}
        for campaign in writer.evaluation["campaigns"]
    ]
    columns = [writer.column(key, head=heads.get(key, key)) for key in ("campaign", *axes)]
    writer.table(writer.text("matrix"), columns, rows)
    writer.own("rules")


def _listed(writer: Writer, values: Sequence[Any]) -> str:
    return ", ".join(
        writer.text("on" if value else "off") if isinstance(value, bool) else str(value) for value in values
    )
