# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The section of a model family: frameworks, results side by side, utilisation, ranking, differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook import hardware
from ansible.module_utils.scalebook.contracts import message
from ansible.module_utils.scalebook.evaluate import drawing, ranking
from ansible.module_utils.scalebook.evaluate.options import (
    FAMILIES,
    columns,
    devices,
    setting,
    setting_name,
)
from ansible.module_utils.scalebook.evaluate.published import DLPERF, INSIGHTFACE, SOURCES
from ansible.module_utils.scalebook.evaluate.ranking import ModelFamily
from ansible.module_utils.scalebook.evaluate.sentences import ranked, term
from ansible.module_utils.scalebook.evaluate.writer import Writer
from ansible.module_utils.scalebook.pages import svg
from ansible.module_utils.scalebook.pages.blocks import NONE, Cell, Column, Figure, exact, figure, times
from ansible.module_utils.scalebook.published import warning
from ansible.module_utils.scalebook.quantities import TABLE
from ansible.module_utils.scalebook.text import readable

USED = sorted((quantity for quantity in TABLE if quantity.column), key=lambda quantity: quantity.column)
"""Quantities of the table of utilisation."""
MILLI = 1000

Option = Mapping[str, Any]


def write(writer: Writer, family: ModelFamily) -> None:
    """Write the section of a family of evaluation.json."""
    name = FAMILIES.get(family["name"], family["name"])
    writer.heading("results", family=name)
    _participants(writer, family, name)
    settings: dict[tuple[Any, ...], list[Option]] = {}
    for option in family["options"]:
        settings.setdefault(setting(option), []).append(option)
    for number, options in enumerate(settings.values()):
        _setting(writer, options, f"family{writer.section}-{number}")
    measured = [option for option in family["options"] if option["rates"]]
    if measured:
        _all(writer, measured, name)
        _utilisation(writer, measured)
    _ranking(writer, family["ranking"])
    _differences(writer, family["differences"])
    writer.own(family["name"])


def _participants(writer: Writer, family: ModelFamily, name: str) -> None:
    writer.heading("participants", 3)
    rows = [{"commit": NONE, **line} for line in family["frameworks"]]
    rows = [{**row, "commit": writer.wording.tell(row["commit"])} for row in rows]
    heads = {
        "name": "framework",
        "framework": "version",
        "source": "model-source",
        "commit": "commit",
        "features": "features",
        "campaign": "origin",
    }
    columns = [writer.column(key, head=head) for key, head in heads.items()]
    writer.table(writer.text("participants-of", family=name), columns, rows)
    accumulated = dict.fromkeys(
        each["workload"]
        for each in family["options"]
        if each["source"] == SOURCES[DLPERF] and warning(each["variant"])
    )
    if accumulated:
        writer.say("accumulated", names=list(accumulated))
    if any(each["source"] == SOURCES[INSIGHTFACE] for each in family["options"]):
        writer.say("only-published")


def _setting(writer: Writer, options: Sequence[Option], key: str) -> None:
    """Write the tables and charts of what stands side by side: throughput, speedup and latency."""
    name = writer.text(setting_name(options[0]))
    writer.heading(setting_name(options[0]), 3)
    beside = columns(options, writer.value)
    unit = writer.value(term("unit", options[0]["unit"]))
    _beside(writer, name, writer.text("throughput-in", unit=unit), beside, _rate)
    if any(devices(option) > 1 for option in options):
        _beside(writer, name, writer.text("speedup"), beside, lambda option: times(option["speedup"]))
    _beside(writer, name, writer.text("latency-ms"), beside, _latency)
    writer.charts(drawing.of_setting(writer, beside, name, unit, key))


def _rate(option: Option) -> Cell:
    """Return the rate of an option: a published one with all its digits."""
    return figure(option["rate"]) if option["rates"] else exact(option["rate"])


def _latency(option: Option) -> Cell:
    if option["step_p50"] is None:
        return NONE
    half, most = (MILLI * option[name] for name in ("step_p50", "step_p95"))
    return Figure(half, f"{readable(half)} / {readable(most)}")


def _beside(
    writer: Writer,
    setting: str,
    title: str,
    beside: Mapping[str, Sequence[Option]],
    shown: Callable[[Option], Cell],
) -> None:
    """Write a table with a column per framework, in parts of as many as a chart has; none without figures."""
    names = [name for name, options in beside.items() if any(shown(each) != NONE for each in options)]
    parts = [names[first : first + svg.SERIES] for first in range(0, len(names), svg.SERIES)]
    for number, part in enumerate(parts, 1):
        rows: dict[tuple[int, int, int], dict[str, Any]] = {}
        for name in part:
            for option in beside[name]:
                place = (devices(option), option["nodes"], option["gpus"])
                row = {"machines": place[1], "devices": place[0], **dict.fromkeys(part, NONE)}
                rows.setdefault(place, row)[name] = shown(option)
        count = f" ({number}/{len(parts)})" if len(parts) > 1 else ""
        heads = [writer.column(key, "count") for key in ("machines", "devices")]
        heads += [Column(name, name, "figure") for name in part]
        caption = writer.text("titled", name=setting, title=title) + count
        writer.table(caption, heads, [row for _, row in sorted(rows.items())])


def _all(writer: Writer, options: Sequence[Option], name: str) -> None:
    """Write every result with its range; published rows have none and stand in the tables above."""
    writer.heading("all-results", 3)
    unit = writer.value(term("unit", options[0]["unit"]))
    heads = [
        writer.column("name", head="option"),
        writer.column("gpu", head="hardware"),
        writer.column("rate", "readable", unit=unit),
        *(writer.column(key, "readable") for key in ("slowest", "fastest")),
        writer.column("speedup", "ratio"),
        *(writer.column(key, "percent") for key in ("efficiency", "mfu")),
        writer.column("runs", "count"),
        writer.column("source", head="origin"),
    ]
    title = writer.text("titled", name=name, title=writer.text("all-results"))
    writer.table(title, heads, [{**option, "gpu": option["gpu"] or "CPU"} for option in options])
    writer.charts(drawing.of_family(writer, options, name, f"family{writer.section}"))


def _utilisation(writer: Writer, options: Sequence[Option]) -> None:
    """Write how busy the hardware was over the window, and what each case was probably limited by."""
    writer.heading("utilisation", 3)
    measured = [option for option in options if option["usage"]]
    if not measured:
        writer.say("none-measured")
        return
    used = [each for each in USED if any(each.name in option["usage"] for option in measured)]
    option_head, origin = writer.column("name", head="option"), writer.column("source", head="origin")
    heads = [
        Column(each.name, writer.wording(each.code), "percent", NONE)
        if each.unit == "%"
        else Column(
            each.name,
            writer.text("in-unit", name=message(each.code), unit=each.unit),
            "readable",
            NONE,
        )
        for each in used
    ]
    rows = []
    for option in measured:
        means = {each.name: option["usage"].get(each.name) for each in used}
        shares = {
            each.name: means[each.name] / 100
            for each in used
            if each.unit == "%" and means[each.name] is not None
        }
        rows.append({"name": option["name"], **means, **shares, "source": option["source"]})
    writer.table(writer.text("utilisation"), [option_head, *heads, origin], rows)
    limited = [option for option in measured if option["bottleneck"]]
    writer.table(writer.text("bottlenecks"), [option_head, writer.column("bottleneck"), origin], limited)


def _ranking(writer: Writer, leads: Sequence[ranking.Lead]) -> None:
    writer.heading("ranking", 3)
    writer.items([ranked(lead) for lead in ranking.foremost(leads)] or ["no-ranking"])
    rows = [
        {
            **lead,
            **{key: lead[key] - 1 for key in ("times", "least", "most")},
            "verdict": term("lead", lead["verdict"]),
        }
        for lead in leads
    ]
    heads = [
        writer.column("setting"),
        writer.column("case", head="scale"),
        *writer.columns("first", "other"),
        writer.column("times", "percent", "faster"),
        *(writer.column(key, "percent") for key in ("least", "most")),
        writer.column("verdict"),
    ]
    writer.table(writer.text("ranking"), heads, rows)


def _differences(writer: Writer, found: Sequence[Mapping[str, Any]]) -> None:
    writer.heading("differences", 3)
    writer.say("differences-text" if found else "differences-none")
    rows = [
        {
            "what": term("head", each["what"]),
            "value": _fact(writer, each["what"], entry["value"]),
            "workload": ", ".join(entry["of"]),
        }
        for each in found
        for entry in each["values"]
    ]
    writer.table(writer.text("differences"), writer.columns("what", "value", "workload"), rows)


def _fact(writer: Writer, what: str, value: Any) -> Any:
    if isinstance(value, list):
        nodes = dict.fromkeys(hardware.node(entry, writer.wording) for entry in value)
        return message("evaluation.all", parts=list(nodes))
    return term("task", value) if what == "task" else writer.wording.tell(value)
