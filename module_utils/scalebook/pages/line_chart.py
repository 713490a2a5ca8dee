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
from ansible.module_utils.scalebook.pages.svg import WIDTH

PLOT_HEIGHT = 200
LEFT, BOTTOM = 46, 46
AFTER = 8  # pixels between the last point of a series and its number
TICK_ROOM = 34  # pixels between numbers below the axis
OWN_IDEALS = 3  # more lines of their own would hide the measured ones
FULL = 100.0  # per cent: the ideal line of an axis in per cent
EDGE = 1.12  # of a logarithmic axis beyond the least and the greatest value
NEAR_ZERO = 40.0  # per cent: an axis that would begin below begins at 0
FINER = ((1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9))
"""The ticks of a decade: the second ones where the first are too few."""
FEW = 4

Point = Mapping[str, Any]
"""`x`, the devices, `y`, and `low`, `high`, `hollow` and `note` of it."""
Series = Mapping[str, Any]
"""Its `label` and its `points`; at most svg.SERIES of them are on a chart."""
Ideal = tuple["int | None", "list[tuple[float, float]]"]
Axis = tuple[float, float, list[float]]
Scale = Callable[[float], float]


def powers_of_two(values: Sequence[float]) -> bool:
    """Return whether `values` are two or more different powers of two."""
    return len(set(values)) > 1 and all(value >= 1 and math.log2(value).is_integer() for value in values)


class Axes(NamedTuple):
    """The labels of the axes, and what follows a value that is printed.

    `ideal` is that of the ideal line, `aside` that of further points at the x of a series' line, `hollow`
    that of hollow points; `cut` follows the label of an axis that does not begin at 0.
    """

    y: str
    x: str = "devices"
    ideal: str = "linear scaling"
    unit: str = ""
    log: str = ", log scale"
    aside: str = "another case of as many devices"
    cut: str = ""
    hollow: str = "provisional"


class _Plot(NamedTuple):
    """Where a plot is, and where values are in it."""

    top: float
    floor: float
    east: float
    x_at: Scale
    y_at: Scale


def line_chart(
    series: Sequence[Series],
    title: str,
    description: str,
    axes: Axes,
    key: str,
    ideal: str = "",
) -> str:
    """Return one chart as SVG, '' when no series has a point; a series without one keeps its colour.

    Of several points at one x the line of a series has the first, the others lie beside it.  `ideal` is
    "own" for one line per series through its point at 1 device, "full" for one at 100 per cent, or ''.
    """
    if len(series) > svg.SERIES:
        raise ValueError(f"{len(series)} series on one chart, at most {svg.SERIES} are distinguishable")
    series = [
        {**each, "index": index, **_beside(each)} for index, each in enumerate(series) if each["points"]
    ]
    if not series:
        return ""
    devices = sorted({point["x"] for each in series for point in each["points"]})
    logarithmic, full = powers_of_two(devices), ideal == "full"
    ideals = _ideals(series, devices, ideal)
    axis = _axis(series, ideals, logarithmic, full)

    def printed(value: float) -> str:
        return (f"{value:.1f}" if full else svg.figure(value)) + axes.unit

    log = axes.log if logarithmic else ""
    cut = full and axis[0] > 0
    body, top = svg.head(title, axes.y + (axes.cut if cut else "" if full else log))
    room = max(svg.BOLD * svg.width_of(printed(each["line"][-1]["y"])) for each in series)
    plot = _plot(devices, axis, top, WIDTH - AFTER - room, logarithmic, logarithmic and not full)
    body += [*_grid(axis[2], plot, cut), *_floor(_x_ticks(devices, plot.x_at), plot, escape(axes.x + log))]
    body += [_ideal(*each, plot) for each in ideals]
    body += [part for each in series for part in _draw(each, plot)] + _values(series, plot, printed)
    legend, below = svg.legend(_entries(series, axes, bool(ideals)), plot.floor + BOTTOM + 14)
    height = round(plot.floor + BOTTOM + below + 2)
    return svg.framed([*body, *legend], title, description, key, height, "curves")


def _axis(series: Sequence[Series], ideals: Sequence[Ideal], logarithmic: bool, full: bool) -> Axis:
    """Return the vertical axis, in per cent if it is `full`, with room for all points and ideal lines."""
    heights = [value for each in series for point in each["points"] for value in _extent(point)]
    heights += [y for _, line in ideals for _, y in line]
    return _percent_axis(heights) if full else _y_axis(heights, logarithmic)


def _plot(devices: Sequence[float], axis: Axis, top: float, east: float, log_x: bool, log_y: bool) -> _Plot:
    """Return the plot from `top` on and up to `east`."""
    floor = top + PLOT_HEIGHT
    least, most = (devices[0], devices[-1]) if devices[1:] else (devices[0] - 1, devices[0] + 1)
    x_at = _scale(least, most, LEFT + 8, east - 8, log_x)
    return _Plot(top, floor, east, x_at, _scale(axis[0], axis[1], floor, top, log_y))


def _beside(each: Series) -> dict[str, list[Point]]:
    """Return the points of the line of a series, and those that lie beside it."""
    line: dict[float, Point] = {}
    beside = []
    for point in sorted(each["points"], key=lambda point: point["x"]):
        if line.setdefault(point["x"], point) is not point:
            beside.append(point)
    return {"line": list(line.values()), "beside": beside}


def _entries(series: Sequence[Series], axes: Axes, ideal: bool) -> list[tuple[int | str, str]]:
    """Return the entries of the legend; a series alone that has no name needs none."""
    entries: list[tuple[int | str, str]] = [
        (each["index"], str(each["label"])) for each in series if each["label"]
    ]
    entries += [("aside", axes.aside)] if any(each["beside"] for each in series) else []
    hollow = any(point.get("hollow") for each in series for point in each["line"])
    entries += [("hollow", axes.hollow)] if hollow else []
    return [*entries, *([("ideal", axes.ideal)] if ideal else [])]


def _grid(ticks: Sequence[float], plot: _Plot, cut: bool) -> list[str]:
    """Return a line across the chart for each tick of the vertical axis, and its number.

    A break in the axis shows that it is `cut`: it does not begin at 0.
    """
    elements = []
    for tick in ticks:
        y = plot.y_at(tick)
        elements.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{plot.east:.0f}"/>')
        elements.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{svg.short(tick)}</text>')
    zigzag = f'<path class="axis" d="M{LEFT} {plot.floor:.0f}v-4l-4-2 8-4-4-2v-6"/>'
    return [*elements, *([zigzag] if cut else [])]


def _floor(ticks: Sequence[float], plot: _Plot, label: str) -> list[str]:
    """Return the horizontal axis with its ticks and its label."""
    elements = [f'<path class="axis" d="M{LEFT} {plot.floor:.0f}H{plot.east:.0f}"/>']
    for tick in ticks:
        x = plot.x_at(tick)
        elements.append(f'<path class="axis" d="M{x:.1f} {plot.floor:.0f}v4"/>')
        elements.append(
            f'<text x="{x:.1f}" y="{plot.floor + 18:.0f}" text-anchor="middle">{svg.short(tick)}</text>'
        )
    middle = f'x="{(LEFT + plot.east) / 2:.0f}" y="{plot.floor + 35:.0f}" text-anchor="middle"'
    return [*elements, f"<text {middle}>{label}</text>"]


def _extent(point: Point) -> list[float]:
    return [value for value in (point["y"], point.get("low"), point.get("high")) if value is not None]


def _ideals(series: Sequence[Series], devices: Sequence[float], ideal: str) -> list[Ideal]:
    """Return (series index or None, line) of each ideal line; linear scaling from 1 device."""
    if not ideal or len(devices) < 2 or (ideal == "own" and len(series) > OWN_IDEALS):
        return []
    if ideal == "full":
        return [(None, [(devices[0], FULL), (devices[-1], FULL)])]
    # On linear axes two points do; on logarithmic ones a proportional line is straight as well.
    lines: list[Ideal] = []
    for each in series:
        start = next((point["y"] for point in each["points"] if point["x"] == 1), None)
        last = max(point["x"] for point in each["points"])
        if start and last > 1:
            lines.append((each["index"], [(1, start), (last, start * last)]))
    return lines


def _ideal(owner: int | None, line: Sequence[tuple[float, float]], plot: _Plot) -> str:
    """Return an ideal line: that of all series, or of one in its colour."""
    kind = "ideal" if owner is None else f"own ideal p{owner}"
    return f'<path class="{kind}" d="{_path(line, plot)}"/>'


def _percent_axis(values: Sequence[float]) -> Axis:
    """Return lowest and highest value and ticks of an axis in per cent: that of the data, with 100."""
    least, most = min(values), max(*values, FULL)
    step = max(1.0, svg.nice((most - least) / 5 or 1.0))
    low = math.floor((least - step / 3) / step) * step
    if low < NEAR_ZERO:
        low, step = 0.0, max(20.0, svg.nice(most / 6))
    count = math.ceil((most - low) / step - 1e-9)
    return low, low + count * step, [low + tick * step for tick in range(count + 1)]


def _scale(low: float, high: float, start: float, end: float, logarithmic: bool) -> Callable[[float], float]:
    if logarithmic:
        span = math.log(high / low) or 1.0
        return lambda value: start + (end - start) * math.log(value / low) / span
    width = (high - low) or 1.0
    return lambda value: start + (end - start) * (value - low) / width


def _y_axis(values: Sequence[float], logarithmic: bool) -> Axis:
    """Return lowest and highest value of the axis and its ticks."""
    top = max(values)
    if not logarithmic:
        step = svg.nice(top / 5 or 1.0)
        count = max(1, math.ceil(top / step))
        return 0.0, step * count, [step * i for i in range(count + 1)]
    bottom = min(value for value in values if value > 0)
    # The axis ends near the data: the next tick may be twice as far.
    low, high = bottom / EDGE, top * EDGE
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in FINER:
        every = [factor * 10.0**decade for decade in decades for factor in factors]
        ticks = [tick for tick in every if low <= tick <= high]
        if len(ticks) >= FEW:
            return low, high, ticks[:: len(ticks) // 8 + 1]
    step = svg.nice((high - low) / (FEW + 1))
    return low, high, [step * tick for tick in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _x_ticks(devices: Sequence[float], x_at: Callable[[float], float]) -> list[float]:
    """Return the device counts that have room for a number below the axis, the last always among them."""
    ticks = [devices[-1]]
    for value in reversed(devices[:-1]):
        if x_at(ticks[-1]) - x_at(value) >= TICK_ROOM:
            ticks.append(value)
    return ticks[::-1]


def _path(line: Sequence[tuple[float, float]], plot: _Plot) -> str:
    return "M" + "L".join(f"{plot.x_at(x):.1f} {plot.y_at(y):.1f}" for x, y in line)


def _draw(each: Series, plot: _Plot) -> list[str]:
    """Return the line of a series, the ranges of its points, and the points with what they say."""
    index = each["index"]
    line = [(point["x"], point["y"]) for point in each["line"]]
    out = [f'<g class="p{index}">']
    if len(line) > 1:
        out.append(f'<path class="line" d="{_path(line, plot)}"/>')
    marked = [*((point, False) for point in each["line"]), *((point, True) for point in each["beside"])]
    for point, beside in marked:
        x, y = plot.x_at(point["x"]), plot.y_at(point["y"])
        if point.get("low") is not None and point.get("high") is not None:
            top, bottom = plot.y_at(point["high"]), plot.y_at(point["low"])
            out.append(
                f'<path class="bar" d="M{x:.1f} {bottom:.1f}V{top:.1f}'
                f'M{x - 4:.1f} {bottom:.1f}h8M{x - 4:.1f} {top:.1f}h8"/>'
            )
        kind = "dot hollow" if point.get("hollow") else "dot"
        mark = svg.aside(x, y) if beside else svg.marker(index, x, y, kind)
        out.append(f"<g><title>{escape(point.get('note', ''))}</title>{mark}</g>")
    out.append("</g>")
    return out


def _values(series: Sequence[Series], plot: _Plot, printed: Callable[[float], str]) -> list[str]:
    """Return the figures written into the chart: the last of each line, moved apart where they meet."""
    ends: list[list[Any]] = []
    for each in series:
        last = each["line"][-1]
        x = plot.x_at(last["x"]) + AFTER
        ends.append([plot.y_at(last["y"]) + 4, x, each["index"], printed(last["y"])])
    ends.sort()
    for above, below in pairwise(ends):
        below[0] = max(below[0], above[0] + 12)
    for end, limit in zip(reversed(ends), range(len(ends)), strict=True):
        end[0] = min(end[0], plot.floor - 12 * limit)
    return [
        f'<text class="value p{i}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>' for y, x, i, text in ends
    ]
