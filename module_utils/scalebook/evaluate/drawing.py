# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The charts of an evaluation: the workloads of a family side by side, and cost against time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook import svg
from ansible.module_utils.scalebook.bar_chart import Bar, bar_chart, ticks_to
from ansible.module_utils.scalebook.line_chart import Axes, line_chart
from ansible.module_utils.scalebook.text import readable

ROWS = 16
"""Blocks of bars on one chart."""

Options = Sequence[Mapping[str, Any]]


def of_family(family: Mapping[str, Any], key: str, texts: Mapping[str, Any]) -> list[str]:
    """Return the charts of throughput of a family: curves over devices, bars where there is one number.

    A chart of curves has the workloads of one batch, precision and compiler; a result alone is not drawn.
    """
    options = family["options"]
    if len({_devices(option) for option in options}) < 2:
        return _bars(options, key, texts)
    charts: list[str] = []
    for place in dict.fromkeys(map(_setting, options)):
        same = [option for option in options if _setting(option) == place]
        for first in range(0, len(_names(same)), svg.SERIES):
            number = f"{key}-{len(charts)}"
            charts.append(_curves(same, _names(same)[first : first + svg.SERIES], place, number, texts))
    return [chart for chart in charts if chart]


def of_cost(cost: Mapping[str, Any], key: str, texts: Mapping[str, Any]) -> str:
    """Return cost against time of the offers, those of the Pareto front joined; '' for a single offer."""
    if len(cost["offers"]) < 2:
        return ""

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
    return line_chart(series, title, title, axes, key)


def _devices(option: Mapping[str, Any]) -> int:
    return int(option["nodes"] * option["gpus"] or option["nodes"])


def _setting(option: Mapping[str, Any]) -> str:
    words = [option["model"], f"b{option['bsz']}", option["dtype"]]
    return " ".join(words + ["XLA"] * bool(option["xla"]))


def _name(option: Mapping[str, Any]) -> str:
    return f"{option['workload']}, {option['gpu'] or 'CPU'}, {option['source']}"


def _names(options: Options) -> list[str]:
    return list(dict.fromkeys(map(_name, options)))


def _range(option: Mapping[str, Any]) -> tuple[float | None, float | None]:
    return (option["slowest"], option["fastest"]) if option["runs"] > 1 else (None, None)


def _note(option: Mapping[str, Any]) -> str:
    return f"{option['name']}: {readable(option['rate'])} {option['unit']}/s"


def _curves(options: Options, names: Sequence[str], setting: str, key: str, texts: Mapping[str, Any]) -> str:
    series = []
    for name in names:
        points = []
        for option in (each for each in options if _name(each) == name):
            low, high = _range(option)
            point = {"x": _devices(option), "y": option["rate"], "low": low, "high": high}
            points.append({**point, "note": _note(option)})
        series.append({"label": name, "points": points})
    title = texts["rate_chart"].format(setting)
    axes = Axes(f"{options[0]['unit']}/s", texts["devices"], texts["linear"], log=texts["log"])
    return line_chart(series, title, title, axes, key, "own")


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
            title = texts["rate_chart"].format(options[0]["family"])
            unit = f"{options[0]['unit']}/s"
            charts.append(bar_chart(rows, chosen, title, title, unit, f"{key}-{len(charts)}", ticks))
    return [chart for chart in charts if chart]
