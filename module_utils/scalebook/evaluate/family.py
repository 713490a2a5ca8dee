# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The section of a model family: frameworks, results, what switches gain, use, ranking, differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook import hardware
from ansible.module_utils.scalebook.contracts import Message, message
from ansible.module_utils.scalebook.evaluate import comparisons, drawing, ranking
from ansible.module_utils.scalebook.evaluate.front import USED
from ansible.module_utils.scalebook.evaluate.options import (
    FAMILIES,
    NOT_RECORDED,
    Option,
    devices,
    precision,
    values_of,
)
from ansible.module_utils.scalebook.evaluate.published import DLPERF, SOURCES
from ansible.module_utils.scalebook.evaluate.ranking import ModelFamily
from ansible.module_utils.scalebook.evaluate.sentences import conclusive, heading, term
from ansible.module_utils.scalebook.evaluate.writer import Writer
from ansible.module_utils.scalebook.grouping import grouped
from ansible.module_utils.scalebook.pages.blocks import NONE, Column, Figure, exact, figure
from ansible.module_utils.scalebook.pages.numbers import quotient, quotients
from ansible.module_utils.scalebook.published import warning

SCALES = 6
"""Columns of numbers of devices that a table has room for."""
CASES = 3
"""Cases that are named for a bottleneck."""
KEPT, VARYING = "workload, dtype, bsz count", "model, task, size, gpu, others, source text origin"
"""Columns of the table of rates: those that are always there, and those whose values differ."""
ROW = (
    "workload",
    *comparisons.TRAINING,
    "gpu",
    "dtype",
    "compiler",
    "bsz",
    "variant",
    "differing",
    "source",
    "group",
)
"""What the cells of a row of the table of rates have in common."""


def write(writer: Writer, family: ModelFamily) -> None:
    """Write the section of a family of evaluation.json."""
    name = FAMILIES.get(family["name"], family["name"])
    options = conclusive(family)
    writer.heading("results", family=name)
    _participants(writer, family, name)
    rates(writer, options, name)
    writer.charts(drawing.of_family(writer, options, name))
    _gains(writer, options, name)
    _utilisation(writer, options, name)
    _ranking(writer, family["ranking"])
    if len({option["workload"] for option in options}) > 1 and options[0]["rates"]:
        _differences(writer, family["differences"])
    writer.own(family["name"])


def _participants(writer: Writer, family: ModelFamily, name: str) -> None:
    measured = any(option["rates"] for option in family["options"])
    lines = [{"commit": NONE, **line} for line in family["frameworks"] if not measured or "title" in line]
    recorded = {line["workload"] for line in lines if line["framework"] != NOT_RECORDED}
    rows = [
        {**line, "commit": writer.wording.tell(line["commit"])}
        for line in lines
        if line["workload"] not in recorded or line["framework"] != NOT_RECORDED
    ]
    heads = "name text framework, framework text version, source text model-source, commit, features"
    columns = writer.columns("workload, " * measured + heads)
    writer.table(writer.text("participants-of", family=name), columns, writer.distinct(columns, rows))
    accumulated = dict.fromkeys(
        each["workload"]
        for each in family["options"]
        if each["source"] == SOURCES[DLPERF] and warning(str(each["variant"] or ""))
    )
    if accumulated:
        writer.say("accumulated", names=list(accumulated))


def rates(writer: Writer, options: Sequence[Option], name: str) -> None:
    """Write the rates of each setting, on several devices with the efficiency.

    Two campaigns with the same setting have a row each, with their names.
    """
    rows: dict[tuple[Any, ...], dict[Any, Any]] = {}
    for option in options:
        row = rows.setdefault(values_of(option, ROW), _of_row(writer, option))
        row[_scale(option)] = _rate(writer, option)
    heads = writer.varying(KEPT, VARYING, rows.values())
    unit = writer.value(term("unit", options[0]["unit"])) if options else ""
    _over_scales(writer, name, writer.text("throughput-in", unit=unit), heads, rows)


def _over_scales(
    writer: Writer, name: str, what: str, heads: Sequence[Column], rows: Mapping[Any, Mapping[Any, Any]]
) -> None:
    """Write rows with a column for each number of nodes and devices, in parts if these are many."""
    scales = sorted({key for row in rows.values() for key in row if isinstance(key, tuple)})
    parts = [scales[first : first + SCALES] for first in range(0, len(scales), SCALES)]
    for number, part in enumerate(parts, 1):
        columns = [Column(str(scale), _place(writer, scale), "figure", NONE) for scale in part]
        lines = [
            {**row, **{str(scale): row.get(scale, NONE) for scale in part}}
            for row in rows.values()
            if {*part} & {*row}
        ]
        title = writer.text("titled", name=name, title=what) + f" ({number}/{len(parts)})" * (len(parts) > 1)
        writer.table(title, [*heads, *columns], lines)


def _scale(option: Option) -> tuple[int, int, int]:
    return devices(option), option["nodes"], option["gpus"]


def _of_row(writer: Writer, option: Option) -> dict[Any, Any]:
    return {
        **option,
        "task": term("task", option["task"]),
        "gpu": option["gpu"] or "CPU",
        "dtype": precision(option),
        "others": ", ".join(
            writer.wording.tell(each) for each in (option["variant"], option["differing"]) if each
        )
        or NONE,
    }


def _place(writer: Writer, scale: tuple[int, int, int]) -> str:
    count, nodes, gpus = scale
    if nodes == 1 or not gpus:
        return writer.text("scale-one" if count == 1 else "scale-devices", devices=count)
    return writer.text("scale-nodes", nodes=nodes, devices=gpus)


def _rate(writer: Writer, option: Option) -> Figure:
    """Return the rate of an option, a published one with all its digits, and its efficiency."""
    rate = figure(option["rate"]) if option["rates"] else exact(option["rate"])
    text = rate.text  # type: ignore[union-attr]
    if devices(option) > 1 and option["efficiency"] is not None:
        text += writer.wording("page.aside", text=writer.wording.percent(option["efficiency"]))
    return Figure(option["rate"], text)


def _gains(writer: Writer, options: Sequence[Option], name: str) -> None:
    """Write how much faster the same case is with a compiler, and with 16 bits."""
    rows: dict[tuple[Any, ...], dict[Any, Any]] = {}
    for pair in comparisons.gains(options):
        row = _of_row(writer, pair.off)
        key = (pair.what, *(row[key] for key in ("source", "workload", "model", "dtype", "bsz", "others")))
        between = quotients(pair.least, pair.most)
        cell = Figure(pair.times, quotient(pair.times) + writer.wording("page.aside", text=between))
        rows.setdefault(key, {**row, "what": pair.what})[_scale(pair.off)] = cell
    heads = writer.columns("workload, what text switch, dtype text beside, bsz count, others")
    _over_scales(writer, name, writer.text("gains"), heads, rows)


def _utilisation(writer: Writer, options: Sequence[Option], name: str) -> None:
    """Write how busy the hardware was over the window, and what the cases were probably limited by."""
    measured = [option for option in options if option["usage"]]
    quantities = [each for each in USED if any(each.name in option["usage"] for option in measured)]
    rows = [
        {**{each.name: option["usage"].get(each.name) for each in quantities}, "name": option["name"]}
        for option in measured
    ]
    title = writer.text("titled", name=name, title=writer.text("utilisation"))
    writer.table(title, [*writer.columns("name text option"), *writer.quantities(quantities)], rows)
    limited = grouped(
        [option for option in measured if option["bottleneck"]],
        lambda option: str(writer.value(option["bottleneck"])),
    )
    rows = [
        {"bottleneck": what, "count": len(cases), "cases": _first(writer, [each["name"] for each in cases])}
        for what, cases in sorted(limited.items(), key=lambda each: -len(each[1]))
    ]
    heads = writer.columns("bottleneck, count count cases, cases text option")
    writer.table(writer.text("titled", name=name, title=writer.text("bottlenecks")), heads, rows)


def _first(writer: Writer, names: Sequence[str | Message]) -> str:
    more = [writer.text("evidence-more", count=len(names) - CASES)] if len(names) > CASES else []
    return writer.wording.join([*map(writer.wording.tell, names[:CASES]), *more], "list")


def _ranking(writer: Writer, leads: Sequence[ranking.Lead]) -> None:
    if not leads:
        return
    writer.heading("ranking", 3)
    rows = [
        {
            **lead,
            **{key: lead[key] - 1 for key in ("times", "least", "most")},
            "verdict": term("lead", lead["verdict"]),
        }
        for lead in leads
    ]
    heads = writer.columns("setting, case text scale, first, other, times percent faster")
    heads += writer.columns("least percent, most percent, verdict")
    writer.table(writer.text("ranking"), heads, rows)


def _differences(writer: Writer, unlike: Sequence[Mapping[str, Any]]) -> None:
    """Write what is not the same; the list of what is not measured has what no record says."""
    writer.heading("differences", 3)
    writer.say("differences-text" if unlike else "differences-none")
    rows = [
        {
            "what": message(heading(each["what"])),
            "value": _fact(writer, each["what"], entry["value"]),
            "workload": ", ".join(dict.fromkeys(name.partition(" ")[0] for name in entry["of"])),
        }
        for each in unlike
        for entry in each["values"]
        if entry["value"] != NOT_RECORDED
    ]
    columns = writer.columns("what, value, workload")
    writer.table(writer.text("differences"), columns, writer.distinct(columns, rows))


def _fact(writer: Writer, what: str, value: Any) -> Any:
    if isinstance(value, list):
        return "; ".join(
            dict.fromkeys(
                hardware.gpus(each, writer.wording) or hardware.processor(each, writer.wording)
                for each in value
            )
        )
    return term("task", value) if what == "task" else writer.wording.tell(value)
