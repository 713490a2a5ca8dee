# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Horizontal bars: results of one number of devices, and shares of a peak."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from ansible.module_utils.scalebook.pages import svg
from ansible.module_utils.scalebook.pages.svg import WIDTH

THICK, THIN = 14, 11  # of a bar that is alone in its row, of one among others
GAP = 10  # below the bars of a row
AFTER = 8  # between a bar and its number
END = 1.05  # of the axis: where a bar ends that would leave it
TICK_ROOM = 20  # pixels of half a number at the end of an axis

Ticks = Sequence[tuple[float, str]]


class Bar(NamedTuple):
    """One bar: the index of its series, its value, the text at its end, its tooltip, and its range."""

    series: int
    value: float
    text: str
    note: str
    low: float | None = None
    high: float | None = None


def ticks_to(highest: float) -> list[float]:
    """Return ticks from 0 to at or above `highest`, at most six."""
    step = svg.nice(highest / 5 or 1.0)
    return [step * index for index in range(max(1, math.ceil(highest / step - 1e-9)) + 1)]


def bar_chart(
    rows: Sequence[tuple[str, Sequence[Bar]]],
    names: Sequence[str],
    title: str,
    description: str,
    axis: str,
    key: str,
    ticks: Ticks,
) -> str:
    """Return a chart with a labelled block per row and a bar per series, as SVG; '' without a row.

    `names` are those of the series, for the legend and in the order of their index; none for a single
    series.  `ticks` are values and texts of the axis, which begins at 0 and ends at the last of them.
    """
    if not rows:
        return ""
    if len(names) > svg.SERIES:
        raise ValueError(f"{len(names)} series on one chart, at most {svg.SERIES} are distinguishable")
    widest = max(svg.width_of(bar.text) for _label, bars in rows for bar in bars)
    right = (WIDTH - widest - 2 * AFTER) / END
    body, top = svg.head(title, axis)
    if names:
        elements, below = svg.legend(list(enumerate(names)), top)
        body += elements
        top += below
    blocks, y = _blocks(rows, top, (right / ticks[-1][0], END * right), bool(names))
    grid, y = _grid(ticks, right, top, y)
    return svg.framed([*body, *grid, *blocks], title, description, key, round(y))


def stacked_chart(
    rows: Sequence[tuple[str, str, Sequence[Bar]]],
    names: Mapping[int, str],
    title: str,
    description: str,
    axis: str,
    key: str,
    ticks: Ticks,
) -> str:
    """Return a chart with a bar per row whose parts stand end to end, as SVG; '' without a row.

    A row has a label, a text at the other end of its line, and parts that end at the last tick together;
    `names` are those of the parts by their index.
    """
    if not rows:
        return ""
    right = WIDTH - TICK_ROOM
    body, top = svg.head(title, axis)
    for index, name in names.items():
        body.append(
            f'<g class="p{index}"><rect class="fill" x="0" y="{top - 10:.0f}" width="22" height="11"/>'
        )
        body.append(svg.text([name], svg.SWATCH, top, "legend") + "</g>")
        top += svg.LEGEND_ROW
    y = top
    blocks: list[str] = []
    for label, text, parts in rows:
        above, y = svg.row_head(label, text, y, 2 * AFTER)
        blocks += above + _stack(parts, y + 2, right / ticks[-1][0])
        y += THICK + GAP + 2
    grid, y = _grid(ticks, right, top, y)
    return svg.framed([*body, *grid, *blocks], title, description, key, round(y))


def _stack(parts: Sequence[Bar], y: float, scale: float) -> list[str]:
    """Return the parts of a bar end to end; the note of the first says all of them."""
    elements, x = [f"<g><title>{escape(parts[0].note)}</title>"], 0.0
    for part in parts:
        elements.append(
            f'<rect class="fill p{part.series}" x="{x:.1f}" y="{y:.1f}" '
            f'width="{part.value * scale:.1f}" height="{THICK}"/>'
        )
        x += part.value * scale
    return [*elements, "</g>"]


def _grid(ticks: Ticks, right: float, top: float, y: float) -> tuple[list[str], float]:
    """Return the lines and numbers of an axis whose plot is from `top` to `y`, and where they end."""
    elements = []
    for value, text in ticks:
        x = value / ticks[-1][0] * right
        elements.append(f'<path class="grid" d="M{x:.1f} {top:.0f}V{y:.0f}"/>')
        anchor = "middle" if value else "start"
        elements.append(f'<text x="{x:.1f}" y="{y + 16:.0f}" text-anchor="{anchor}">{escape(text)}</text>')
    return elements, y + 24


def _blocks(
    rows: Sequence[tuple[str, Sequence[Bar]]], y: float, axis: tuple[float, float], several: bool
) -> tuple[list[str], float]:
    """Return the rows from `y` on, each below its label, and where they end.

    `axis` are the pixels of a value of 1, and those of the longest bar.
    """
    elements: list[str] = []
    height = THIN if several else THICK
    for label, bars in rows:
        lines = svg.wrapped(label, WIDTH)
        elements.append(svg.text(lines, 0, y + 12, "legend"))
        y += svg.LINE * len(lines) + 2
        for bar in bars:
            elements += _bar(bar, y, height, axis, several)
            y += height + 2
        y += GAP
    return elements, y


def _bar(bar: Bar, y: float, height: int, axis: tuple[float, float], marked: bool) -> list[str]:
    """Return a bar with its range and its number, `marked` at its end with the marker of its series."""
    scale, longest = axis
    width = min(bar.value * scale, longest)
    middle = y + height / 2
    reach = width
    out = [
        f'<g class="p{bar.series}"><title>{escape(bar.note)}</title>'
        f'<rect class="fill" x="0" y="{y:.1f}" width="{width:.1f}" height="{height}"/>'
        + (svg.marker(bar.series, width, middle) if marked else "")
        + "</g>"
    ]
    if bar.low is not None and bar.high is not None:
        low, high = bar.low * scale, bar.high * scale
        reach = max(reach, high)
        out.append(
            f'<path class="limits" d="M{low:.1f} {middle:.1f}H{high:.1f}'
            f'M{low:.1f} {middle - 4:.1f}v8M{high:.1f} {middle - 4:.1f}v8"/>'
        )
    return [*out, f'<text x="{reach + AFTER:.1f}" y="{middle + 4:.1f}">{escape(bar.text)}</text>']
