# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The charts of an evaluation: the workloads of a family side by side, and cost against time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.evaluate.options import devices
from ansible.module_utils.scalebook.evaluate.sentences import term
from ansible.module_utils.scalebook.evaluate.writer import Writer
from ansible.module_utils.scalebook.pages import svg
from ansible.module_utils.scalebook.pages.bar_chart import Bar, bar_chart, ticks_to
from ansible.module_utils.scalebook.pages.line_chart import Axes, line_chart
from ansible.module_utils.scalebook.text import readable

ROWS = 16
"""Blocks of bars on one chart."""

Options = Sequence[Mapping[str, Any]]


def of_setting(
    writer: Writer, columns: Mapping[str, Options], setting: str, unit: str, key: str
) -> list[tuple[str, str]]:
    """Return (caption, chart) of throughput and of speedup over devices, with all columns of a setting.

    A chart has as many columns as there are colours; there is none where a single number of devices was
    measured.
    """
    if len({devices(option) for options in columns.values() for option in options}) < 2:
        return []
    names = list(columns)
    parts = range(0, len(names), svg.SERIES)
    charts = []
    for what, value, ideal in (("throughput", "rate", "own"), ("speedup", "speedup", "common")):
        y = unit if what == "throughput" else writer.text("speedup")
        axes = Axes(y, writer.text("devices"), writer.text("linear"), log=writer.text("log"))
        title = writer.text("titled", name=setting, title=writer.text(what))
        for number, first in enumerate(parts, 1):
            part = names[first : first + svg.SERIES]
            series = [{"label": name, "points": _points(columns[name], value)} for name in part]
            chart = line_chart(series, writer.text(what), title, axes, f"{key}-{what}-{first}", ideal)
            charts.append((title + f" ({number}/{len(parts)})" * (len(parts) > 1), chart))
    return [(title, chart) for title, chart in charts if chart]


def of_family(writer: Writer, options: Options, name: str, key: str) -> list[tuple[str, str]]:
    """Return (caption, chart) with bars of the measured throughput, where all have one number of devices."""
    if len({devices(option) for option in options}) != 1:
        return []
    title = writer.text("titled", name=name, title=writer.text("throughput"))
    return [(title, chart) for chart in _bars(writer, options, key)]


def of_cost(writer: Writer, cost: Mapping[str, Any], key: str) -> list[tuple[str, str]]:
    """Return (caption, chart) of cost against time of the offers, those of the Pareto front joined.

    There is none for a single offer.
    """
    if len(cost["offers"]) < 2:
        return []
    currency = cost["currency"]

    def note(offer: Mapping[str, Any]) -> str:
        return f"{offer['name']}: {readable(offer['hours'])} h, {readable(offer['cost'])} {currency}"

    def points(offers: Options) -> list[dict[str, Any]]:
        return [{"x": offer["hours"], "y": offer["cost"], "note": note(offer)} for offer in offers]

    others = [offer for offer in cost["offers"] if offer not in cost["front"]]
    series: list[dict[str, Any]] = [
        {"label": writer.text("front"), "points": points(cost["front"])},
        {"label": writer.text("other-offers"), "points": points(others), "joined": False},
    ]
    axes = Axes(writer.column("cost", unit=currency).head, writer.text("head-hours"))
    title = writer.text("cost-chart", training=cost["name"])
    return [(title, line_chart(series, writer.text("cost-by-time"), title, axes, key))]


def _points(options: Options, value: str) -> list[dict[str, Any]]:
    points = []
    for option in options:
        if option[value] is not None:
            low, high = _range(option) if value == "rate" else (None, None)
            point = {"x": devices(option), "y": option[value], "low": low, "high": high}
            points.append({**point, "note": _note(option)})
    return points


def _setting(option: Mapping[str, Any]) -> str:
    words = [option["model"], f"b{option['bsz']}", option["dtype"]]
    words += [option[name] for name in ("compiler", "variant", "differing")]
    return " ".join(filter(None, words))


def _name(option: Mapping[str, Any]) -> str:
    return f"{option['workload']}, {option['gpu'] or 'CPU'}, {option['source']}"


def _range(option: Mapping[str, Any]) -> tuple[float | None, float | None]:
    return (option["slowest"], option["fastest"]) if option["runs"] > 1 else (None, None)


def _note(option: Mapping[str, Any]) -> str:
    return f"{option['name']}: {readable(option['rate'])} {option['unit']}/s"


def _bars(writer: Writer, options: Options, key: str) -> list[str]:
    if len(options) < 2:
        return []
    names, settings = (list(dict.fromkeys(map(of, options))) for of in (_name, _setting))
    highest = max(max(each["rate"], each["fastest"]) for each in options)
    ticks = [(tick, svg.short(tick)) for tick in ticks_to(highest)]
    title, unit = writer.text("throughput"), writer.value(term("unit", options[0]["unit"]))
    charts: list[str] = []
    for start in range(0, len(names), svg.SERIES):
        chosen = names[start : start + svg.SERIES]
        for first in range(0, len(settings), ROWS):
            bars = {name: _bars_of(options, name, chosen) for name in settings[first : first + ROWS]}
            rows = [(name, each) for name, each in bars.items() if each]
            charts.append(bar_chart(rows, chosen, title, title, unit, f"{key}-{len(charts)}", ticks))
    return [chart for chart in charts if chart]


def _bars_of(options: Options, setting: str, names: Sequence[str]) -> list[Bar]:
    return [
        Bar(names.index(_name(each)), each["rate"], readable(each["rate"]), _note(each), *_range(each))
        for each in options
        if _setting(each) == setting and _name(each) in names
    ]
