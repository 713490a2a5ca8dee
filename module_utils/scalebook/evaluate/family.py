# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The section of a model family: frameworks, results side by side, utilisation, ranking, differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.evaluate import drawing, ranking
from ansible.module_utils.scalebook.evaluate.options import columns, devices, setting, setting_name
from ansible.module_utils.scalebook.evaluate.published import DLPERF, INSIGHTFACE, SOURCES
from ansible.module_utils.scalebook.evaluate.ranking import Family
from ansible.module_utils.scalebook.evaluate.sentences import gain, ranked, rate
from ansible.module_utils.scalebook.evaluate.writer import Writer
from ansible.module_utils.scalebook.pages import svg
from ansible.module_utils.scalebook.pages.blocks import NONE, Cell, Figure, figure, percent, times, whole
from ansible.module_utils.scalebook.published import warning
from ansible.module_utils.scalebook.quantities import TABLE, Quantity
from ansible.module_utils.scalebook.text import readable

USED = sorted((quantity for quantity in TABLE if quantity.column), key=lambda quantity: quantity.column)
"""Quantities of the table of utilisation."""
MILLI = 1000

Option = Mapping[str, Any]


def write(writer: Writer, family: Family) -> None:
    """Write the section of a family of evaluation.json."""
    t = writer.t
    name = t["families"].get(family["name"], family["name"])
    writer.heading(t["results"].format(name))
    writer.heading(t["participants"], 3)
    rows = [
        [
            line["name"],
            writer.recorded(line["framework"]),
            writer.recorded(line["source"]),
            writer.translate(writer.recorded(line.get("commit", NONE))),
            line["features"],
            line["campaign"],
        ]
        for line in family["frameworks"]
    ]
    heads = ("framework", "version", "model_source", "commit", "features", "origin")
    writer.table(t["participants_of"].format(name), heads, rows)
    accumulated = dict.fromkeys(
        each["workload"]
        for each in family["options"]
        if each["source"] == SOURCES[DLPERF] and warning(each["variant"])
    )
    if accumulated:
        writer.say(t["accumulated"].format(t["comma"].join(accumulated)))
    if any(each["source"] == SOURCES[INSIGHTFACE] for each in family["options"]):
        writer.say(t["only_published"])
    settings: dict[tuple[Any, ...], list[Option]] = {}
    for option in family["options"]:
        settings.setdefault(setting(option), []).append(option)
    for number, options in enumerate(settings.values()):
        _setting(writer, options, f"family{writer.section}-{number}")
    _all(writer, family, name)
    _utilisation(writer, family)
    _ranking(writer, family)
    _differences(writer, family)
    writer.own(family["name"])


def _setting(writer: Writer, options: Sequence[Option], key: str) -> None:
    """Write the tables and charts of what stands side by side: throughput, speedup and latency."""
    t = writer.t
    writer.heading(setting_name(options[0]), 3)
    unit = t["units"].get(options[0]["unit"], options[0]["unit"])
    _beside(writer, f"{t['throughput']} ({unit})", options, rate)
    if any(devices(option) > 1 for option in options):
        _beside(writer, t["speedup"], options, lambda option: times(option["speedup"]))
    _beside(writer, t["latency_ms"], options, _latency)
    charts = drawing.of_setting(columns(options), setting_name(options[0]), unit, key, t)
    writer.charts(charts)


def _latency(option: Option) -> Cell:
    if option["step_p50"] is None:
        return NONE
    half, most = (MILLI * option[name] for name in ("step_p50", "step_p95"))
    return Figure(half, f"{readable(half)} / {readable(most)}")


def _beside(writer: Writer, title: str, options: Sequence[Option], shown: Callable[[Option], Cell]) -> None:
    """Write a table with a column per framework, in parts of as many as a chart has; none without figures."""
    names = columns(options)
    names = {name: found for name, found in names.items() if any(shown(option) != NONE for option in found)}
    parts = [list(names)[first : first + svg.SERIES] for first in range(0, len(names), svg.SERIES)]
    for number, part in enumerate(parts, 1):
        cells = {(name, _place(option)): shown(option) for name in part for option in names[name]}
        places = sorted({place for _, place in cells}, key=lambda place: (place[2], place))
        rows = [
            [*map(whole, (place[0], place[2])), *(cells.get((name, place), NONE) for name in part)]
            for place in places
        ]
        count = f" ({number}/{len(parts)})" if len(parts) > 1 else ""
        heads = ("machines", "devices", *part)
        writer.table(f"{setting_name(options[0])}{writer.t['colon']}{title}{count}", heads, rows)


def _place(option: Option) -> tuple[int, int, int]:
    return option["nodes"], option["gpus"], devices(option)


def _all(writer: Writer, family: Family, name: str) -> None:
    """Write every result with its range; published rows have none and stand in the tables above."""
    t = writer.t
    options = [option for option in family["options"] if option["rates"]]
    if not options:
        return
    writer.heading(t["all_results"], 3)
    rows: list[list[Cell]] = [
        [
            option["name"],
            writer.recorded(option["gpu"] or "CPU"),
            figure(option["rate"]),
            figure(option["slowest"]),
            figure(option["fastest"]),
            times(option["speedup"]),
            percent(option["efficiency"]),
            percent(option["mfu"]),
            whole(option["runs"]),
            option["source"],
        ]
        for option in options
    ]
    unit = t["units"].get(options[0]["unit"], options[0]["unit"])
    throughput = f"{writer.t['columns']['rate']}, {unit}"
    heads = ("option", "hardware", throughput, "slowest", "fastest", "speedup", "efficiency", "mfu", "runs")
    writer.table(f"{name}{t['colon']}{t['all_results']}", (*heads, "origin"), rows)
    writer.charts(drawing.of_family(family, name, f"family{writer.section}", t))


def _utilisation(writer: Writer, family: Family) -> None:
    """Write how busy the hardware was over the window, and what each case was probably limited by."""
    t = writer.t
    measured = [option for option in family["options"] if option["usage"]]
    if not any(option["rates"] for option in family["options"]):
        return
    writer.heading(t["utilisation"], 3)
    if not measured:
        writer.say(t["none_measured"])
        return
    used = [each for each in USED if any(each.name in option["usage"] for option in measured)]
    rows = [
        [option["name"], *(_used(option["usage"].get(each.name), each) for each in used), option["source"]]
        for option in measured
    ]
    writer.table(t["utilisation"], ("option", *(each.name for each in used), "origin"), rows)
    limited = [
        [option["name"], writer.translate(option["bottleneck"]), option["source"]]
        for option in measured
        if option["bottleneck"]
    ]
    writer.table(t["bottlenecks"], ("option", "bottleneck", "origin"), limited)


def _used(value: float | None, quantity: Quantity) -> Cell:
    return percent(value / 100) if quantity.unit == "%" and value is not None else figure(value)


def _ranking(writer: Writer, family: Family) -> None:
    t, leads = writer.t, family["ranking"]
    writer.heading(t["ranking"], 3)
    writer.items([ranked(lead, t) for lead in ranking.foremost(leads)] or [t["no_ranking"]])
    rows = [
        [
            lead["setting"],
            lead["case"],
            lead["first"],
            lead["other"],
            *(gain(lead[key]) for key in ("times", "least", "most")),
            t["rankings"][lead["verdict"]],
        ]
        for lead in leads
    ]
    heads = ("setting", "scale", "first", "other", "faster", "least", "most", "verdict")
    writer.table(t["ranking"], heads, rows)


def _differences(writer: Writer, family: Family) -> None:
    t, found = writer.t, family["differences"]
    writer.heading(t["differences"], 3)
    writer.say(t["differences_text" if found else "differences_none"])
    rows = [
        [t["facts"][each["what"]], _fact(writer, entry["value"]), ", ".join(entry["of"])]
        for each in found
        for entry in each["values"]
    ]
    writer.table(t["differences"], ("what", "value", "workload"), rows)


def _fact(writer: Writer, value: str) -> str:
    return str(writer.t["tasks"].get(value) or writer.translate(writer.recorded(value)))
