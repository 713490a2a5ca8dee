# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The charts of an evaluation: the workloads of a family side by side, and cost against time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.evaluate.options import devices
from ansible.module_utils.scalebook.evaluate.ranking import Family
from ansible.module_utils.scalebook.pages import svg
from ansible.module_utils.scalebook.pages.bar_chart import Bar, bar_chart, ticks_to
from ansible.module_utils.scalebook.pages.line_chart import Axes, line_chart
from ansible.module_utils.scalebook.text import readable

ROWS = 16
"""Blocks of bars on one chart."""

Options = Sequence[Mapping[str, Any]]


def of_setting(
    columns: Mapping[str, Options], setting: str, unit: str, key: str, texts: Mapping[str, Any]
) -> list[tuple[str, str]]:
    """Return (caption, chart) of throughput and of speedup over devices, with all columns of a setting.

    A chart has as many columns as there are colours; there is none where a single number of devices was
    measured.
    """
    if len({devices(option) for found in columns.values() for option in found}) < 2:
        return []
    names = list(columns)
    charts = []
    for what, value, ideal in (("throughput", "rate", "own"), ("speedup", "speedup", "common")):
        for first in range(0, len(names), svg.SERIES):
            part = names[first : first + svg.SERIES]
            series = [{"label": name, "points": _points(columns[name], value)} for name in part]
            y = unit if what == "throughput" else texts["speedup"]
            axes = Axes(y, texts["devices"], texts["linear"], log=texts["log"])
            title = f"{setting}{texts['colon']}{texts[what]}"
            chart = line_chart(series, texts[what], title, axes, f"{key}-{what}-{first}", ideal)
            count = f" ({1 + first // svg.SERIES}/{-(-len(names) // svg.SERIES)})"
            charts.append((title + count * (len(names) > svg.SERIES), chart))
    return [(title, chart) for title, chart in charts if chart]


def of_family(family: Family, name: str, key: str, texts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (caption, chart) with bars of the measured throughput, where all have one number of devices."""
    options = [option for option in family["options"] if option["rates"]]
    if len({devices(option) for option in options}) != 1:
        return []
    title = f"{name}{texts['colon']}{texts['throughput']}"
    return [(title, chart) for chart in _bars(options, key, texts)]


def of_cost(cost: Mapping[str, Any], key: str, texts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (caption, chart) of cost against time of the offers, those of the Pareto front joined.

    There is none for a single offer.
    """
    if len(cost["offers"]) < 2:
        return []

    def points(offers: Options) -> list[dict[str, Any]]:
        note = "{}: {} h, {} {}"
        return [
            {
                "x": offer["hours"],
                "y": offer["cost"],
                "note": note.format(
                    offer["name"], readable(offer["hours"]), readable(offer["cost"]), cost["currency"]
                ),
            }
            for offer in offers
        ]

    others = [offer for offer in cost["offers"] if offer not in cost["front"]]
    series = [
        {"label": texts["front"], "points": points(cost["front"])},
        {"label": texts["other_offers"], "points": points(others), "joined": False},
    ]
    axes = Axes(f"{texts['columns']['cost']}, {cost['currency']}", texts["columns"]["hours"])
    title = texts["cost_chart"].format(cost["name"])
    return [(title, line_chart(series, texts["cost_by_time"], title, axes, key))]


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


def _names(options: Options) -> list[str]:
    return list(dict.fromkeys(map(_name, options)))


def _range(option: Mapping[str, Any]) -> tuple[float | None, float | None]:
    return (option["slowest"], option["fastest"]) if option["runs"] > 1 else (None, None)


def _note(option: Mapping[str, Any]) -> str:
    return f"{option['name']}: {readable(option['rate'])} {option['unit']}/s"


def _bars(options: Options, key: str, texts: Mapping[str, Any]) -> list[str]:
    if len(options) < 2:
        return []
    charts: list[str] = []
    names, settings = _names(options), list(dict.fromkeys(map(_setting, options)))
    ticks = [
        (tick, svg.short(tick))
        for tick in ticks_to(max(max(each["rate"], each["fastest"]) for each in options))
    ]
    for start in range(0, len(names), svg.SERIES):
        chosen = names[start : start + svg.SERIES]
        for first in range(0, len(settings), ROWS):
            rows = []
            for setting in settings[first : first + ROWS]:
                bars = [
                    Bar(
                        chosen.index(_name(each)),
                        each["rate"],
                        readable(each["rate"]),
                        _note(each),
                        *_range(each),
                    )
                    for each in options
                    if _setting(each) == setting and _name(each) in chosen
                ]
                if bars:
                    rows.append((setting, bars))
            title = texts["throughput"]
            unit = texts["units"].get(options[0]["unit"], options[0]["unit"])
            charts.append(bar_chart(rows, chosen, title, title, unit, f"{key}-{len(charts)}", ticks))
    return [chart for chart in charts if chart]
