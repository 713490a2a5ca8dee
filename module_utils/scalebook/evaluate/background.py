# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Section 2: what was measured with what, where and how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ansible.module_utils.scalebook import hardware
from ansible.module_utils.scalebook.evaluate.options import FAMILIES, NOT_RECORDED
from ansible.module_utils.scalebook.evaluate.sentences import term
from ansible.module_utils.scalebook.evaluate.writer import Writer
from ansible.module_utils.scalebook.pages.blocks import NONE, Paragraph

SOFTWARE = "title text workload, framework text software, cuda, cudnn, nccl, mpi, python, compiler"
FEATURES = (
    "workload, several-nodes, nccl, mixed-precision, compiled text compiler-there, accumulation, "
    "checkpointing, own-data, others text other-features"
)
CONFIGURATION = ("batch", "compiler", "amp")
METRICS = ("throughput", "speedup", "latency", "utilisation")


def write(writer: Writer) -> None:
    """Write the section."""
    writer.heading("background")
    writer.heading("platform", 3)
    writer.blocks.append(Paragraph(writer.evaluation["platform"] or writer.wording("report.not-recorded")))
    writer.own("platform")
    _frameworks(writer)
    _features(writer)
    _models(writer)
    _environment(writer)
    _definitions(writer, "configuration", {name: f"{name}-title" for name in CONFIGURATION})
    _rules(writer)
    _definitions(writer, "metrics", {name: name for name in METRICS})


def _definitions(writer: Writer, section: str, titles: dict[str, str]) -> None:
    writer.heading(section, 3)
    for name, title in titles.items():
        lead = writer.wording.about(writer.text(title), "").rstrip()
        writer.blocks.append(Paragraph(writer.text(f"{name}-text"), lead=lead))
    writer.own(section)


def _frameworks(writer: Writer) -> None:
    writer.heading("frameworks", 3)
    lines = writer.evaluation["frameworks"]
    recorded = [line for line in lines if line["framework"] != NOT_RECORDED]
    columns = writer.columns(SOFTWARE)
    rows = [{each.key: writer.wording.tell(line[each.key]) for each in columns} for line in recorded or lines]
    writer.table(writer.text("frameworks"), columns, writer.distinct(columns, rows))
    writer.own("frameworks")


def _features(writer: Writer) -> None:
    """Write which features each workload has."""
    columns = writer.columns(FEATURES)
    lines = writer.evaluation["features"]
    rows = [{each.key: _answer(writer, line[each.key]) for each in columns} for line in lines]
    writer.table(writer.text("features"), columns, rows)


def _answer(writer: Writer, value: bool | str) -> str:
    return value if isinstance(value, str) else writer.text("yes" if value else "no")


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
    writer.table(writer.text("models"), writer.columns("family, model, task, size, unit"), rows)
    writer.own("models")


def _environment(writer: Writer) -> None:
    """Write each kind of host once, with its topology and the campaigns that it was measured in."""
    campaigns = writer.evaluation["campaigns"]
    writer.heading("environment", 3)
    hosts = hardware.hosts(entry for campaign in campaigns for entry in campaign["hardware"])
    rows = []
    for host in hosts:
        names = [each["name"] for each in campaigns if hardware.visible(each["hardware"], host)]
        rows.append({"hardware": hardware.sentence(host, writer.wording), "campaigns": ", ".join(names)})
    for campaign in campaigns:
        if shared := campaign["simulated"]:
            text = writer.text("containers" if shared.get("containers") else "simulated", **shared)
            rows.append({"hardware": text, "campaigns": campaign["name"]})
    silent = [campaign["name"] for campaign in campaigns if not campaign["hardware"]]
    rows += [{"hardware": NOT_RECORDED, "campaigns": ", ".join(silent)}] if silent else []
    for source, nodes in writer.evaluation["published_nodes"].items():
        rows += [{"hardware": hardware.sentence(node, writer.wording), "campaigns": source} for node in nodes]
    writer.table(writer.text("environment"), writer.columns("hardware, campaigns"), rows)
    several = [host for host in hosts if len(host.get("gpus") or ()) > 1]
    maps = dict.fromkeys(host["gpu_topology"] for host in several if host.get("gpu_topology"))
    for topology in maps:
        writer.code("nvidia-smi topo -m", topology)
    writer.own("environment")


def _rules(writer: Writer) -> None:
    writer.heading("rules", 3)
    writer.say("rules-text")
    axes = ("nodes", "gpus", "bsz", "dtype", "xla", "repeats", "window")
    rows = [
        {
            "campaign": campaign["name"],
            "started": writer.wording.moment(campaign["started"] or "") or NOT_RECORDED,
            **{axis: _listed(writer, campaign["matrix"][axis]) for axis in axes},
            "good": f"{campaign['runs']['good']} / {campaign['runs']['planned']}",
        }
        for campaign in writer.evaluation["campaigns"]
    ]
    heads = (
        "campaign, started, nodes text machines, gpus, bsz, dtype, xla text compiled, repeats, window, good"
    )
    writer.table(writer.text("matrix"), writer.columns(heads), rows)
    writer.own("rules")


def _listed(writer: Writer, values: Sequence[Any]) -> str:
    texts = (
        writer.text("on" if value else "off") if isinstance(value, bool) else str(value) for value in values
    )
    return writer.wording.join(texts, "comma")
