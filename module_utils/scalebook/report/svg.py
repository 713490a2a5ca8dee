# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Scaling curves as SVG text, without a plotting library.

A chart is used twice: inside the page, which contains style() itself, and as a file of its own.  Colours
are classes, so that light and dark mode follow the reader; series differ in their markers too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Any, NamedTuple

WIDTH = 420
PLOT_HEIGHT = 220
LEFT, RIGHT, TOP, BOTTOM = 52, 56, 52, 46
PADDING = 16  # around a chart that is a file of its own
LEGEND_ROW = 18
TICK_ROOM = 34  # pixels between numbers below the axis
OWN_IDEALS = 3  # more lines of their own would hide the measured ones
BARS_WIDTH, LABEL, BAR_ROOM, BAR, BAR_GAP = 760, 270, 130, 9, 14  # of bar_chart
CHARACTER = 6.6  # width of an average character of the 12 px labels, for wrapping the legend

LIGHT = ("#1b64a5", "#c2410c", "#17805c", "#7c3aed", "#a16207", "#b4235f", "#4d6b14", "#475569")
DARK = ("#74b8f0", "#ff9e6b", "#63d2a4", "#c3a5ff", "#e6c15c", "#f78fb8", "#b7d76f", "#a8b5c7")
SERIES = len(LIGHT)  # one colour for each series of a chart

Point = Mapping[str, Any]
Series = Mapping[str, Any]


def style() -> str:
    """Return the CSS of every chart; colours follow prefers-color-scheme."""

    def colours(values: Sequence[str]) -> str:
        return "".join(f".p{i}{{--c:{value}}}" for i, value in enumerate(values))

    return (
        ".chart{font:12px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;--ink:#1c2126;--soft:#5d6670;"
        "--grid:#e3e6ea;--paper:#fff;--c:#1b64a5}"
        ".chart text{fill:var(--soft)}.chart .name{fill:var(--ink);font-size:14px;font-weight:600}"
        ".chart .value{fill:var(--c);font-weight:600;paint-order:stroke;stroke:var(--paper);stroke-width:3px}"
        ".chart .legend{fill:var(--ink)}.chart .paper{fill:var(--paper)}"
        ".chart .grid{stroke:var(--grid);fill:none}.chart .axis{stroke:var(--soft);fill:none}"
        ".chart .ideal{stroke:var(--soft);stroke-dasharray:4 4;fill:none}"
        ".chart .own.ideal{stroke:var(--c);opacity:.55}"
        ".chart .line{stroke:var(--c);stroke-width:2;fill:none;stroke-linejoin:round}"
        ".chart .bar{stroke:var(--c);stroke-width:1.25;fill:none}"
        ".chart .fill{fill:var(--c)}.chart .window{fill:var(--grid);opacity:.6}"
        ".chart .dot{fill:var(--c);stroke:var(--paper);stroke-width:1}"
        ".chart .dot.hollow{fill:var(--paper);stroke:var(--c);stroke-width:1.75}"
        + colours(LIGHT)
        + "@media (prefers-color-scheme:dark)"
        + "{.chart{--ink:#e8eaed;--soft:#a3abb5;--grid:#2c3238;--paper:#14171a}"
        + colours(DARK)
        + "}"
    )


def powers_of_two(values: Sequence[float]) -> bool:
    """Return whether `values` are two or more different powers of two."""
    return len(set(values)) > 1 and all(value >= 1 and math.log2(value).is_integer() for value in values)


def chart(
    series: Sequence[Series],
    title: str,
    description: str,
    y_label: str,
    key: str,
    ideal: str = "",
    unit: str = "",
    standalone: bool = False,
) -> str:
    """Return one chart as SVG, '' when no series has a point.

    `series`: `[{"label": str, "points": [{"x": devices, "y": value, "low": v|None, "high": v|None,
    "hollow": bool, "note": str}]}]`, at most SERIES of them.  `ideal` is "common" for the line y = x,
    "own" for one line per series through its point at 1 device, '' for none.  `unit` follows printed
    values.  `key` makes ids unique within a page.  A series without a point keeps its colour for
    itself, so that two charts of the same groups agree.
    """
    if len(series) > SERIES:
        raise ValueError(f"{len(series)} series on one chart, at most {SERIES} are distinguishable")
    series = [{**each, "index": index} for index, each in enumerate(series) if each["points"]]
    if not series:
        return ""
    devices = sorted({point["x"] for each in series for point in each["points"]})
    logarithmic = powers_of_two(devices)
    ideals = _ideals(series, devices, ideal)
    heights = [value for each in series for point in each["points"] for value in _extent(point)]
    heights += [y for _, line in ideals for _, y in line]
    low, high, ticks = _y_axis(heights, logarithmic, ideal == "common")

    right = WIDTH - RIGHT
    x_at = _scale(
        devices[0] if len(devices) > 1 else devices[0] - 1,
        devices[-1] if len(devices) > 1 else devices[0] + 1,
        LEFT + 8,
        right - 8,
        logarithmic,
    )
    y_at = _scale(low, high, TOP + PLOT_HEIGHT, TOP, logarithmic)

    body = [
        f'<text class="name" x="0" y="14">{escape(title)}</text>',
        f'<text x="0" y="{TOP - 18}">{escape(y_label)}</text>',
    ]
    for tick in ticks:
        y = y_at(tick)
        body.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{right}"/>')
        body.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{short(tick)}</text>')
    floor = TOP + PLOT_HEIGHT
    body.append(f'<path class="axis" d="M{LEFT} {floor}H{right}"/>')
    for tick in _x_ticks(devices, x_at):
        x = x_at(tick)
        body.append(f'<path class="axis" d="M{x:.1f} {floor}v4"/>')
        body.append(f'<text x="{x:.1f}" y="{floor + 18}" text-anchor="middle">{short(tick)}</text>')
    scale = ", log scale" if logarithmic else ""
    body.append(
        f'<text x="{(LEFT + right) / 2:.0f}" y="{floor + 35}" text-anchor="middle">devices{scale}</text>'
    )

    for owner, line in ideals:
        kind = "ideal" if owner is None else f"own ideal p{owner}"
        body.append(f'<path class="{kind}" d="{_path(line, x_at, y_at)}"/>')
    for each in series:
        body += _draw(each["index"], each, x_at, y_at)
    body += _values(series, x_at, y_at, unit)
    legend, rows = _legend(series, bool(ideals), floor + BOTTOM + 12)
    body += legend

    height = floor + BOTTOM + rows * LEGEND_ROW + 4
    return framed(body, title, description, key, WIDTH, height, standalone)


def framed(
    body: Sequence[str],
    title: str,
    description: str,
    key: str,
    width: float,
    height: float,
    standalone: bool,
) -> str:
    """Return the SVG of a chart; one that is a file of its own gets padding, its style and its size."""
    pad = PADDING if standalone else 0
    x, y, wide, tall = -pad, -pad, width + 2 * pad, height + 2 * pad
    sheet = ""
    if standalone:
        # A viewer's own background may be white in dark mode too, so the file has a background.
        sheet = (
            f'<style>{style()}</style><rect class="paper" x="{x}" y="{y}" width="{wide}" height="{tall}"/>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="{x} {y} {wide} {tall}" role="img" '
        f'aria-labelledby="{key}-title {key}-desc"'
        + (f' width="{2 * width:g}" height="{2 * height:g}"' if standalone else "")
        + f'><title id="{key}-title">{escape(title)}</title>'
        + f'<desc id="{key}-desc">{escape(description)}</desc>'
        + sheet
        + "".join(body)
        + "</svg>"
    )


class Bar(NamedTuple):
    """One bar: the index of its series, its share of the axis (1 is the end), and its two texts."""

    series: int
    share: float
    text: str
    note: str


def bar_chart(
    rows: Sequence[tuple[str, Sequence[Bar]]],
    names: Sequence[str],
    title: str,
    description: str,
    key: str,
) -> str:
    """Return horizontal bars in per cent as a file of its own: a block per row, a bar per series."""
    right = BARS_WIDTH - BAR_ROOM
    y = 70.0
    body = [f'<text class="name" x="0" y="14">{escape(title)}</text>']
    x = 0.0
    for index, name in enumerate(names):
        body.append(
            f'<g class="p{index}"><rect class="fill" x="{x:.0f}" y="30" width="12" height="12"/></g>'
            f'<text class="legend" x="{x + 17:.0f}" y="40">{escape(name)}</text>'
        )
        x += 40 + CHARACTER * len(name)
    top = y
    for label, bars in rows:
        middle = y + len(bars) * (BAR + 2) / 2 + 3
        body.append(
            f'<text class="legend" x="{LABEL - 10}" y="{middle:.0f}" text-anchor="end">{escape(label)}</text>'
        )
        for bar in bars:
            width = min(bar.share, 1.05) * (right - LABEL)
            body.append(
                f'<g class="p{bar.series}"><title>{escape(bar.note)}</title>'
                f'<rect class="fill" x="{LABEL}" y="{y:.0f}" width="{width:.1f}" height="{BAR}"/></g>'
                f'<text x="{LABEL + width + 5:.1f}" y="{y + BAR:.0f}" font-size="10">'
                f"{escape(bar.text)}</text>"
            )
            y += BAR + 2
        y += BAR_GAP
    for tick in range(0, 101, 25):
        at = LABEL + tick / 100 * (right - LABEL)
        body.insert(1, f'<path class="grid" d="M{at:.1f} {top - 8:.0f}V{y:.0f}"/>')
        body.append(f'<text x="{at:.1f}" y="{y + 14:.0f}" text-anchor="middle">{tick} %</text>')
    return framed(body, title, description, key, max(BARS_WIDTH, round(x)), round(y + 24), True)


def _extent(point: Point) -> list[float]:
    return [value for value in (point["y"], point.get("low"), point.get("high")) if value is not None]


def _ideals(
    series: Sequence[Series], devices: Sequence[float], ideal: str
) -> list[tuple[int | None, list[tuple[float, float]]]]:
    """Return (series index or None, line) of each ideal line; linear scaling from 1 device."""
    if not ideal or len(devices) < 2 or (ideal == "own" and len(series) > OWN_IDEALS):
        return []
    # On linear axes two points do; on logarithmic ones a proportional line is straight as well.
    if ideal == "common":
        return [(None, [(devices[0], devices[0]), (devices[-1], devices[-1])])]
    lines: list[tuple[int | None, list[tuple[float, float]]]] = []
    for each in series:
        start = next((point["y"] for point in each["points"] if point["x"] == 1), None)
        last = max(point["x"] for point in each["points"])
        if start and last > 1:
            lines.append((each["index"], [(1, start), (last, start * last)]))
    return lines


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
        step = _nice(top / 5 or 1.0)
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
    low, high = ticks[0], ticks[-1]
    while len(ticks) > 7:
        ticks = ticks[::2]
    return low, high, ticks


def _nice(step: float) -> float:
    """Return the next of 1, 2, 5 x 10^n at or above `step`."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step * 0.9999)


def _x_ticks(devices: Sequence[float], x_at: Callable[[float], float]) -> list[float]:
    """Return the device counts that have room for a number below the axis, the last always among them."""
    kept = [devices[-1]]
    for value in reversed(devices[:-1]):
        if x_at(kept[-1]) - x_at(value) >= TICK_ROOM:
            kept.append(value)
    return kept[::-1]


def short(value: float) -> str:
    """Return a number on an axis: 1, 0.5, 12500 as 12.5k."""
    if value >= 10000:
        return f"{value / 1000:.4g}k"
    return f"{value:.4g}"


def _path(
    line: Sequence[tuple[float, float]], x_at: Callable[[float], float], y_at: Callable[[float], float]
) -> str:
    return "M" + "L".join(f"{x_at(x):.1f} {y_at(y):.1f}" for x, y in line)


def _marker(index: int, x: float, y: float, kind: str) -> str:
    """Return the marker of series `index`: circle, square, triangle, diamond in turn."""
    shape = index % 4
    if shape == 0:
        return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
    outline = {
        1: f"M{x - 3.6:.1f} {y - 3.6:.1f}h7.2v7.2h-7.2z",
        2: f"M{x:.1f} {y - 4.8:.1f}l4.6 8.2h-9.2z",
        3: f"M{x:.1f} {y - 5:.1f}l4.8 5-4.8 5-4.8-5z",
    }[shape]
    return f'<path class="{kind}" d="{outline}"/>'


def _draw(
    index: int, each: Series, x_at: Callable[[float], float], y_at: Callable[[float], float]
) -> list[str]:
    points = sorted(each["points"], key=lambda point: (point["x"], point["y"]))
    line = [(point["x"], point["y"]) for point in points]
    out = [f'<g class="p{index}">']
    if len(line) > 1:
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
        out.append(f"<g><title>{escape(point.get('note', ''))}</title>{_marker(index, x, y, kind)}</g>")
    out.append("</g>")
    return out


def _values(
    series: Sequence[Series], x_at: Callable[[float], float], y_at: Callable[[float], float], unit: str
) -> list[str]:
    """Return the figures written into the chart: the last of each series, moved apart where they meet."""
    ends: list[list[Any]] = []
    for each in series:
        last = max(each["points"], key=lambda point: (point["x"], point["y"]))
        ends.append([y_at(last["y"]) + 4, x_at(last["x"]) + 8, each["index"], _figure(last["y"]) + unit])
    ends.sort()
    for above, below in pairwise(ends):
        below[0] = max(below[0], above[0] + 12)
    return [
        f'<text class="value p{i}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>' for y, x, i, text in ends
    ]


def _figure(value: float) -> str:
    """Return a value with three or four digits, never in exponents."""
    if value >= 1000:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 100 else f"{value:.2f}"


def _legend(series: Sequence[Series], ideal: bool, top: float) -> tuple[list[str], int]:
    """Return the legend below the chart and how many rows it takes."""
    entries = [(f"p{each['index']}", each["index"], str(each["label"])) for each in series]
    if ideal:
        entries.append(("", -1, "linear scaling"))
    out, x, row = [], 0.0, 0
    for colour, index, label in entries:
        label = label if len(label) <= 58 else label[:57] + "…"
        width = 30 + CHARACTER * len(label) + 14
        if x and x + width > WIDTH:
            x, row = 0.0, row + 1
        y = top + row * LEGEND_ROW
        line = "ideal" if index < 0 else "line"
        out.append(f'<g class="{colour}"><path class="{line}" d="M{x:.0f} {y - 4:.0f}h22"/>')
        if index >= 0:
            out.append(_marker(index, x + 11, y - 4, "dot"))
        out.append(f'<text class="legend" x="{x + 28:.0f}" y="{y:.0f}">{escape(label)}</text></g>')
        x += width
    return out, row + 1
