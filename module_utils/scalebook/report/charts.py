# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The document -> its charts as SVG: curves over the number of devices, bars where there is only one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import Group, Results, Row
from ansible.module_utils.scalebook.pages import svg
from ansible.module_utils.scalebook.pages.bar_chart import Bar, bar_chart, ticks_to
from ansible.module_utils.scalebook.pages.line_chart import Axes, line_chart
from ansible.module_utils.scalebook.pages.wording import ENGLISH, Wording
from ansible.module_utils.scalebook.text import clean

BARS = 16  # on one chart

Rows = Mapping[str, Row]


def charts(document: Results, standalone: bool = False, wording: Wording = ENGLISH) -> list[dict[str, str]]:
    """Return `{"name", "svg"}` of the charts: efficiency, throughput and speedup of the groups of each unit.

    Where a workload declares its latency, there is a chart of that too.

    At most svg.SERIES groups are on one of them.  Groups that were all measured on one number of devices
    are bars of throughput; a result alone is not drawn.
    """
    rows: Rows = {row["case"]: row for row in document["rows"]}
    chunks = _chunks(document["groups"], rows)
    out = []
    for index, chunk in enumerate(chunks, 1):
        part = f" ({index}/{len(chunks)})" if len(chunks) > 1 else ""
        suffix = f"_{index}" if len(chunks) > 1 else ""
        if len(_devices(chunk, rows)) < 2:
            drawn = [("throughput", _bars(chunk, rows, part, index, standalone, wording))]
        else:
            drawn = _curves(chunk, rows, part, index, standalone, wording)
        out += [{"name": name + suffix, "svg": drawing} for name, drawing in drawn if drawing]
    return out + _strong_charts(document, standalone, wording)


def _chunks(groups: Sequence[Group], rows: Rows) -> list[list[Group]]:
    """Return the groups with a result, those of one unit together, as many as fit on a chart."""
    by_unit: dict[str, list[Group]] = {}
    for group in groups:
        if any(rows[case]["good"] for case in group["rows"]):
            by_unit.setdefault(group["unit"], []).append(group)
    out = []
    for same in by_unit.values():
        size = BARS if len(_devices(same, rows)) < 2 else svg.SERIES
        out += [same[first : first + size] for first in range(0, len(same), size)]
    return out


def _devices(groups: Sequence[Group], rows: Rows) -> set[int]:
    return {rows[case]["devices"] for group in groups for case in group["rows"] if rows[case]["good"]}


def _curves(
    groups: Sequence[Group], rows: Rows, part: str, index: int, standalone: bool, wording: Wording
) -> list[tuple[str, str]]:
    _ = wording
    on_gpus = all(group["device"] == "gpu" for group in groups)
    x, ideal, log = _("head.GPUs" if on_gpus else "head.devices"), _("chart.linear"), _("chart.log")
    full = _("chart.full")
    of = "; ".join(clean(group["title"]) for group in groups)
    rate = _("chart.median", unit=_.name("unit", groups[0]["unit"]))
    drawn = []
    kinds: list[tuple[str, str, str, str, Axes]] = [
        (
            "efficiency",
            _("chart.efficiency"),
            "efficiency",
            "full",
            Axes(_("chart.percent"), x, full, " %", log),
        ),
        ("throughput", _("chart.throughput"), "median", "own", Axes(rate, x, ideal, "", log)),
        ("speedup", _("chart.speedup"), "speedup", "common", Axes(_("chart.over-one"), x, ideal, " ×", log)),
    ]
    if any(rows[case]["latency_ms"] for group in groups for case in group["rows"]):
        kinds.append(("latency", _("chart.latency"), "latency_ms", "", Axes(_("chart.ms"), x, "", "", log)))
    for name, title, field, kind, axes in kinds:
        series: list[dict[str, Any]] = [
            {"label": clean(group["short"]), "points": _points(group["rows"], rows, field, wording)}
            for group in groups
        ]
        if field != "median":
            # A group of one number of devices has nothing to compare; its colour stays its own.
            for each in series:
                each["points"] = each["points"] if len({point["x"] for point in each["points"]}) > 1 else []
        description = _("chart.curves", title=title, groups=of)
        key = f"{name}{index}"
        drawn.append((name, line_chart(series, title + part, description, axes, key, kind, standalone)))
    return drawn


def _bars(
    groups: Sequence[Group], rows: Rows, part: str, index: int, standalone: bool, wording: Wording
) -> str:
    """Return the rates of groups that have one number of devices; '' for a single result."""
    _ = wording
    bars = []
    for group in groups:
        for case in group["rows"]:
            row = rows[case]
            if row["median"] is None:
                continue
            several = sum(1 for other in group["rows"] if rows[other]["good"]) > 1
            label = clean(group["short"]) + (_("join.parts") + clean(row["label"]) if several else "")
            low, high = (row["min"], row["max"]) if row["good"] > 1 else (None, None)
            text = wording.number(row["median"])
            bars.append((label, [Bar(0, row["median"], text, _note(row, "median", wording), low, high)]))
    if len(bars) < 2:
        return ""
    ticks = ticks_to(max(bar.high or bar.value for _label, (bar,) in bars))
    (devices,) = _devices(groups, rows)
    noun = "GPU" if all(group["device"] == "gpu" for group in groups) else "device"
    unit = _.name("unit", groups[0]["unit"])
    return bar_chart(
        bars,
        [],
        _("chart.throughput") + part,
        _("chart.bars", devices=wording.count(devices, noun)),
        _("chart.median", unit=unit) + _("join.parts") + wording.count(devices, noun),
        f"throughput{index}",
        [(tick, svg.short(tick)) for tick in ticks],
        standalone,
    )


def _strong_charts(document: Results, standalone: bool, wording: Wording) -> list[dict[str, str]]:
    """Return the charts of strong scaling, apart from the others: their speedups are of another kind."""
    _ = wording
    tables = [table for table in document["strong"] if any(row["speedup"] for row in table["rows"])]
    out = []
    for index, first in enumerate(range(0, len(tables), svg.SERIES), 1):
        chunk = tables[first : first + svg.SERIES]
        series = []
        for table in chunk:
            rows = {row["case"]: row for row in table["rows"]}
            series.append(
                {"label": clean(table["title"]), "points": _points(list(rows), rows, "speedup", wording)}
            )
        several = len(tables) > svg.SERIES
        drawing = line_chart(
            series,
            _("title.strong") + (f" ({index})" if several else ""),
            _("chart.strong", tables="; ".join(clean(table["title"]) for table in chunk)),
            Axes(_("chart.over-one-of-batch"), _("head.devices"), _("chart.linear"), " ×", _("chart.log")),
            f"strong{index}",
            "common",
            standalone,
        )
        if drawing:
            out.append({"name": "strong" + (f"_{index}" if several else ""), "svg": drawing})
    return out


def _points(cases: Sequence[str], rows: Rows, field: str, wording: Wording) -> list[dict[str, Any]]:
    """Return the points of a curve; `field` is a number of a row, of which efficiency is in per cent."""
    points = []
    for case in cases:
        row = rows[case]
        values: Mapping[str, Any] = row
        if values[field] is None:
            continue
        scale = 100 / row["devices"] if field == "efficiency" else 1.0
        value = values[field] * (100 if field == "efficiency" else 1)
        low, high = _limits(row, field) or (None, None)
        points.append(
            {
                "x": row["devices"],
                "y": value,
                "low": None if low is None else low * scale,
                "high": None if high is None else high * scale,
                "hollow": row["status"] == "provisional",
                "note": _note(row, field, wording),
            }
        )
    return points


def _limits(row: Row, field: str) -> list[float] | None:
    """Return the range of the rates, latencies or speedups; the last is that of efficiency too."""
    if field not in ("median", "latency_ms"):
        return row["speedup_range"]
    low, high, median, latency = row["min"], row["max"], row["median"], row["latency_ms"]
    if low is None or high is None or median is None or row["good"] < 2:
        return None
    if field == "median" or latency is None:
        return [low, high]
    # The slowest run has the longest steps.
    return [latency * median / high, latency * median / low]


def _note(row: Row, field: str, wording: Wording) -> str:
    """Return the text of a point: its value, the range of the runs and how many they are."""
    if field == "efficiency":
        return f"{clean(row['label'])}: {wording.percent(row['efficiency'])}"
    values: Mapping[str, Any] = row
    value = wording.speedup(values[field]) if field == "speedup" else wording.number(values[field])
    return wording(
        "chart.note",
        label=clean(row["label"]),
        value=value,
        range=wording.between(_limits(row, field), rates=field != "speedup"),
        good=row["good"],
        planned=row["planned"],
    )
