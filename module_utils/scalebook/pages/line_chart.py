# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Curves over the number of devices."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Any, NamedTuple

from ansible.module_utils.scalebook.pages import svg
from ansible.module_utils.scalebook.pages.svg import TOP, WIDTH

PLOT_HEIGHT = 220
LEFT, RIGHT, BOTTOM = 52, 56, 46
EAST, FLOOR = WIDTH - RIGHT, TOP + PLOT_HEIGHT  # where the plot ends
TICK_ROOM = 34  # pixels between numbers below the axis
OWN_IDEALS = 3  # more lines of their own would hide the measured ones
FULL = 100.0  # per cent: the ideal line of an axis in per cent
EDGE = 1.12  # of a logarithmic axis beyond the least and the greatest value
HALF = 50.0  # where that axis begins if all points lie well above

Point = Mapping[str, Any]
Series = Mapping[str, Any]
Ideal = tuple["int | None", "list[tuple[float, float]]"]
Axis = tuple[float, float, list[float]]


def powers_of_two(values: Sequence[float]) -> bool:
    """Return whether `values` are two or more different powers of two."""
    return len(set(values)) > 1 and all(value >= 1 and math.log2(value).is_integer() for value in values)


class Axes(NamedTuple):
    """The labels of the axes and of the ideal line, and what follows a value that is printed."""

    y: str
    x: str = "devices"
    ideal: str = "linear scaling"
    unit: str = ""
    log: str = ", log scale"


def line_chart(
    series: Sequence[Series],
    title: str,
    description: str,
    axes: Axes,
    key: str,
    ideal: str = "",
    standalone: bool = False,
) -> str:
    """Return one chart as SVG, '' when no series has a point.

    `series`: `[{"label": str, "points": [{"x": devices, "y": value, "low": v|None, "high": v|None,
    "hollow": bool, "note": str}], "joined": bool}]`, at most svg.SERIES of them; points are joined by a line
    unless `joined` is false.  `ideal` is "common" for the line y = x,
    "own" for one line per series through its point at 1 device, "full" for 100 per cent on a linear axis
    in per cent, '' for none.  `key` makes ids unique within a page.  A series without a point keeps its
    colour for itself, so that two charts of the same groups agree.
    """
    if len(series) > svg.SERIES:
        raise ValueError(f"{len(series)} series on one chart, at most {svg.SERIES} are distinguishable")
    series = [{**each, "index": index} for index, each in enumerate(series) if each["points"]]
    if not series:
        return ""
    devices = sorted({point["x"] for each in series for point in each["points"]})
    logarithmic = powers_of_two(devices)
    ideals = _ideals(series, devices, ideal)
    heights = [value for each in series for point in each["points"] for value in _extent(point)]
    heights += [y for _, line in ideals for _, y in line]
    full = ideal == "full"
    low, high, ticks = _percent_axis(heights) if full else _y_axis(heights, logarithmic, ideal == "common")
    least, most = (devices[0], devices[-1]) if devices[1:] else (devices[0] - 1, devices[0] + 1)
    x_at = _scale(least, most, LEFT + 8, EAST - 8, logarithmic)
    y_at = _scale(low, high, FLOOR, TOP, logarithmic and not full)
    body = [
        f'<text class="name" x="0" y="14">{escape(title)}</text>',
        f'<text x="0" y="{TOP - 18}">{escape(axes.y)}</text>',
        *_grid(ticks, y_at),
        *_floor(_x_ticks(devices, x_at), x_at, escape(axes.x) + (escape(axes.log) if logarithmic else "")),
    ]
    for owner, line in ideals:
        kind = "ideal" if owner is None else f"own ideal p{owner}"
        body.append(f'<path class="{kind}" d="{_path(line, x_at, y_at)}"/>')
    body += [part for each in series for part in _draw(each["index"], each, x_at, y_at)]
    body += _values(
        series, x_at, y_at, lambda value: (f"{value:.1f}" if full else svg.figure(value)) + axes.unit
    )
    entries: list[tuple[int | None, str]] = [(each["index"], str(each["label"])) for each in series]
    entries += [(None, axes.ideal)] if ideals else []
    legend, rows = svg.legend(entries, FLOOR + BOTTOM + 12)
    height = FLOOR + BOTTOM + rows * svg.LEGEND_ROW + 4
    return svg.framed([*body, *legend], title, description, key, WIDTH, height, standalone)


def _grid(ticks: Sequence[float], y_at: Callable[[float], float]) -> list[str]:
    """Return a line across the chart for each tick of the vertical axis, and its number."""
    drawn = []
    for tick in ticks:
        y = y_at(tick)
        drawn.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{EAST}"/>')
        drawn.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{svg.short(tick)}</text>')
    return drawn


def _floor(ticks: Sequence[float], x_at: Callable[[float], float], label: str) -> list[str]:
    """Return the horizontal axis with its ticks and its label."""
    drawn = [f'<path class="axis" d="M{LEFT} {FLOOR}H{EAST}"/>']
    for tick in ticks:
        x = x_at(tick)
        drawn.append(f'<path class="axis" d="M{x:.1f} {FLOOR}v4"/>')
        drawn.append(f'<text x="{x:.1f}" y="{FLOOR + 18}" text-anchor="middle">{svg.short(tick)}</text>')
    middle = f'x="{(LEFT + EAST) / 2:.0f}" y="{FLOOR + 35}" text-anchor="middle"'
    return [*drawn, f"<text {middle}>{label}</text>"]


def _extent(point: Point) -> list[float]:
    return [value for value in (point["y"], point.get("low"), point.get("high")) if value is not None]


def _ideals(series: Sequence[Series], devices: Sequence[float], ideal: str) -> list[Ideal]:
    """Return (series index or None, line) of each ideal line; linear scaling from 1 device."""
    if not ideal or len(devices) < 2 or (ideal == "own" and len(series) > OWN_IDEALS):
        return []
    if ideal == "full":
        return [(None, [(devices[0], FULL), (devices[-1], FULL)])]
    # On linear axes two points do; on logarithmic ones a proportional line is straight as well.
    if ideal == "common":
        return [(None, [(devices[0], devices[0]), (devices[-1], devices[-1])])]
    lines: list[Ideal] = []
    for each in series:
        start = next((point["y"] for point in each["points"] if point["x"] == 1), None)
        last = max(point["x"] for point in each["points"])
        if start and last > 1:
            lines.append((each["index"], [(1, start), (last, start * last)]))
    return lines


def _percent_axis(values: Sequence[float]) -> Axis:
    """Return lowest and highest value and ticks of an axis in per cent: from 0 or 50 to above 100."""
    low = HALF if min(values) >= HALF + 5 else 0.0
    step = 10.0 if low else 20.0
    if max(values) > FULL + step:
        step = svg.nice((max(values) - low) / 6)
    count = max(math.ceil(max(values) / step - 1e-9), math.ceil((FULL + step / 2) / step))
    return low, count * step, [tick * step for tick in range(math.ceil(low / step), count + 1)]


def _scale(low: float, high: float, start: float, end: float, logarithmic: bool) -> Callable[[float], float]:
    if logarithmic:
        span = math.log(high / low) or 1.0
        return lambda value: start + (end - start) * math.log(value / low) / span
    width = (high - low) or 1.0
    return lambda value: start + (end - start) * (value - low) / width


def _y_axis(values: Sequence[float], logarithmic: bool, binary: bool) -> tuple[float, float, list[float]]:
    """Return lowest and highest value of the axis and its ticks."""
    top = max(values)
    if not logarithmic:
        step = svg.nice(top / 5 or 1.0)
        count = max(1, math.ceil(top / step))
        return 0.0, step * count, [step * i for i in range(count + 1)]
    bottom = min(value for value in values if value > 0)
    if binary:
        first, last = math.floor(math.log2(bottom)), math.ceil(math.log2(top))
        ticks = [2.0**i for i in range(first, max(last, first + 1) + 1)]
    else:
        decades = range(math.floor(math.log10(bottom)), math.ceil(math.log10(top)) + 1)
        every = [factor * 10.0**decade for decade in decades for factor in (1, 2, 5)]
        first = max(i for i, tick in enumerate(every) if tick <= bottom * 1.0001)
        last = next(i for i, tick in enumerate(every) if tick >= top / 1.0001 and i > first)
        ticks = every[first : last + 1]
        within = [tick for tick in ticks if bottom / EDGE <= tick <= top * EDGE]
        if len(within) > 1:
            # The axis ends near the data: the next tick may be twice as far.
            return min(within[0], bottom / EDGE), max(within[-1], top * EDGE), within[:: len(within) // 8 + 1]
    low, high = ticks[0], ticks[-1]
    while len(ticks) > 7:
        ticks = ticks[::2]
    return low, high, ticks


def _x_ticks(devices: Sequence[float], x_at: Callable[[float], float]) -> list[float]:
    """Return the device counts that have room for a number below the axis, the last always among them."""
    kept = [devices[-1]]
    for value in reversed(devices[:-1]):
        if x_at(kept[-1]) - x_at(value) >= TICK_ROOM:
            kept.append(value)
    return kept[::-1]


def _path(
    line: Sequence[tuple[float, float]], x_at: Callable[[float], float], y_at: Callable[[float], float]
) -> str:
    return "M" + "L".join(f"{x_at(x):.1f} {y_at(y):.1f}" for x, y in line)


def _draw(
    index: int, each: Series, x_at: Callable[[float], float], y_at: Callable[[float], float]
) -> list[str]:
    points = sorted(each["points"], key=lambda point: (point["x"], point["y"]))
    line = [(point["x"], point["y"]) for point in points]
    out = [f'<g class="p{index}">']
    if len(line) > 1 and each.get("joined", True):
        out.append(f'<path class="line" d="{_path(line, x_at, y_at)}"/>')
    for point in points:
        x, y = x_at(point["x"]), y_at(point["y"])
        if point.get("low") is not None and point.get("high") is not None:
            top, bottom = y_at(point["high"]), y_at(point["low"])
            out.append(
                f'<path class="bar" d="M{x:.1f} {bottom:.1f}V{top:.1f}'
                f'M{x - 4:.1f} {bottom:.1f}h8M{x - 4:.1f} {top:.1f}h8"/>'
            )
        kind = "dot hollow" if point.get("hollow") else "dot"
        out.append(f"<g><title>{escape(point.get('note', ''))}</title>{svg.marker(index, x, y, kind)}</g>")
    out.append("</g>")
    return out


def _values(
    series: Sequence[Series],
    x_at: Callable[[float], float],
    y_at: Callable[[float], float],
    printed: Callable[[float], str],
) -> list[str]:
    """Return the figures written into the chart: the last of each series, moved apart where they meet."""
    ends: list[list[Any]] = []
    for each in series:
        last = max(each["points"], key=lambda point: (point["x"], point["y"]))
        ends.append([y_at(last["y"]) + 4, x_at(last["x"]) + 8, each["index"], printed(last["y"])])
    ends.sort()
    for above, below in pairwise(ends):
        below[0] = max(below[0], above[0] + 12)
    return [
        f'<text class="value p{i}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>' for y, x, i, text in ends
    ]
