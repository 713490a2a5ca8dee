# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Panels above each other over one axis of time: what quantities did before, in and after a window."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

from ansible.module_utils.scalebook.pages import svg

PANEL, GAP = 64, 44  # pixels: height of a panel, room above it for heading and legend
LEFT, RIGHT, UP = 50, 8, 12


class Curve(NamedTuple):
    """The values of a quantity at each step of the axis, None where it was not read."""

    label: str
    values: Sequence[float | None]


class Panel(NamedTuple):
    """Curves that share a scale: to 100 for shares, to above the highest value for others."""

    heading: str
    curves: Sequence[Curve]
    shares: bool


class Time(NamedTuple):
    """The axis of time: its first second, the seconds of a step and of the window, which begins at 0."""

    begin: float
    step: float
    window: float
    label: str


def panel_chart(
    panels: Sequence[Panel],
    time: Time,
    title: str,
    note: str,
    description: str,
    key: str,
) -> str:
    """Return the chart of panels as SVG, their window shaded."""
    steps = max((len(curve.values) for panel in panels for curve in panel.curves), default=0)
    end = time.begin + steps * time.step
    right = svg.WIDTH - RIGHT

    def x_at(seconds: float) -> float:
        return LEFT + (seconds - time.begin) / (end - time.begin) * (right - LEFT)

    body, y = svg.head(title, note)
    y -= UP
    for panel in panels:
        body += _panel(panel, time, y + GAP, x_at)
        y += GAP + PANEL
    for tick in _ticks(time.begin, end):
        x = x_at(tick)
        body.append(f'<path class="axis" d="M{x:.1f} {y:.0f}v4"/>')
        body.append(f'<text x="{x:.1f}" y="{y + 18:.0f}" text-anchor="middle">{svg.short(tick)}</text>')
    middle = f'x="{(LEFT + right) / 2:.0f}" y="{y + 35:.0f}" text-anchor="middle"'
    body.append(f"<text {middle}>{escape(time.label)}</text>")
    return svg.framed(body, title, description, key, round(y + 42))


def _panel(panel: Panel, time: Time, y: float, x_at: Callable[[float], float]) -> list[str]:
    """Return one panel whose upper edge is at `y`."""
    highest = max(value for curve in panel.curves for value in curve.values if value is not None)
    top = 100.0 if panel.shares else svg.nice(max(highest, 0.0) or 1.0)
    left, right = x_at(0), x_at(time.window)
    body = [
        f'<text x="0" y="{y - 24:.0f}">{escape(panel.heading)}</text>',
        f'<rect class="window" x="{left:.1f}" y="{y:.0f}" width="{right - left:.1f}" height="{PANEL}"/>',
    ]
    for share in (0.0, 0.5, 1.0):
        height = y + PANEL * (1 - share)
        body.append(f'<path class="grid" d="M{LEFT} {height:.0f}H{svg.WIDTH - RIGHT}"/>')
        body.append(
            f'<text x="{LEFT - 6}" y="{height + 4:.0f}" text-anchor="end">{svg.short(top * share)}</text>'
        )
    first, second = (x_at(time.begin + (index + 0.5) * time.step) for index in (0, 1))
    across, x = second - first, 0.0
    for index, curve in enumerate(panel.curves):
        body.append(
            f'<g class="p{index}"><path class="line" d="M{x:.0f} {y - 10:.0f}h16"/>'
            f'<text class="legend" x="{x + 20:.0f}" y="{y - 6:.0f}">{escape(curve.label)}</text>'
            f'<path class="line" transform="matrix({across:.3f} 0 0 .5 {first:.1f} {y:.0f})" '
            f'd="{_path(curve.values, top)}"/></g>'
        )
        x += 32 + svg.width_of(curve.label)
    return body


def _path(values: Sequence[float | None], top: float) -> str:
    """Return the path of a curve: broken where it was not read, without the middle of level stretches.

    It has a unit for each reading across and for each half pixel down, and only steps from point to point:
    they are short numbers.
    """
    levels = [
        None if value is None else round(2 * PANEL * (1 - min(max(value, 0.0), top) / top))
        for value in values
    ]
    parts, x, y = "", 0, 0
    for index, (before, level, after) in enumerate(zip([None, *levels], levels, [*levels[1:], None])):  # noqa: B905
        if level is not None and not before == level == after:
            parts += f"{'m' if before is None else ' '}{index - x} {level - y}"
            x, y = index, level
    return parts.replace(" -", "-")


def _ticks(begin: float, end: float) -> list[float]:
    """Return the ticks of the axis of time, 0 among them."""
    step = svg.nice((end - begin) / 8)
    return [step * index for index in range(math.ceil(begin / step), math.floor(end / step) + 1)]
