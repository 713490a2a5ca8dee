# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Horizontal bars: results of one number of devices, and shares of a peak."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from ansible.module_utils.scalebook.pages import svg
from ansible.module_utils.scalebook.pages.svg import TOP, WIDTH

THICK, THIN = 14, 11  # of a bar that is alone in its row, of one among others
LABEL = 16  # above the bars of a row
GAP = 10  # below them
AFTER = 8  # between a bar and its number
END = 1.05  # of the axis: where a bar ends that would leave it


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
    ticks: Sequence[tuple[float, str]],
    standalone: bool = False,
) -> str:
    """Return a chart with a labelled block per row and a bar per series, as SVG; '' without a row.

    `names` are those of the series, for the legend and in the order of their index; none for a single
    series.  `ticks` are values and texts of the axis, which begins at 0 and ends at the last of them.
    """
    if not rows:
        return ""
    if len(names) > svg.SERIES:
        raise ValueError(f"{len(names)} series on one chart, at most {svg.SERIES} are distinguishable")
    end = ticks[-1][0]
    widest = max(svg.width_of(bar.text) for _label, bars in rows for bar in bars)
    right = (WIDTH - widest - 2 * AFTER) / END
    body = [
        f'<text class="name" x="0" y="14">{escape(title)}</text>',
        f'<text x="0" y="{TOP - 18}">{escape(axis)}</text>',
    ]
    top = float(TOP)
    if names:
        drawn, lines = svg.legend(list(enumerate(names)), top)
        body += drawn
        top += lines * svg.LEGEND_ROW
    blocks, y = _blocks(rows, top, right, end, bool(names))
    for value, text in ticks:
        x = value / end * right
        body.append(f'<path class="grid" d="M{x:.1f} {top:.0f}V{y:.0f}"/>')
        anchor = "middle" if value else "start"
        body.append(f'<text x="{x:.1f}" y="{y + 16:.0f}" text-anchor="{anchor}">{escape(text)}</text>')
    return svg.framed([*body, *blocks], title, description, key, WIDTH, round(y + 24), standalone)


def _blocks(
    rows: Sequence[tuple[str, Sequence[Bar]]], y: float, right: float, end: float, several: bool
) -> tuple[list[str], float]:
    """Return the rows from `y` on, each below its label, and where they end."""
    drawn: list[str] = []
    height = THIN if several else THICK
    for label, bars in rows:
        drawn.append(f'<text class="legend" x="0" y="{y + 12:.0f}">{escape(svg.shortened(label))}</text>')
        y += LABEL
        for bar in bars:
            drawn += _bar(bar, y, height, right, end, several)
            y += height + 2
        y += GAP
    return drawn, y


def _bar(bar: Bar, y: float, height: int, right: float, end: float, marked: bool) -> list[str]:
    """Return a bar with its range and its number, `marked` at its end with the marker of its series."""
    scale = right / end
    width = min(bar.value * scale, END * right)
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
