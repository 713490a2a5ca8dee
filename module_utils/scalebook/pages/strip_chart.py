# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Small strips side by side: the course of many runs."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from ansible.module_utils.scalebook import stats
from ansible.module_utils.scalebook.pages import svg
from ansible.module_utils.scalebook.pages.svg import WIDTH

COLUMNS, HEIGHT, BETWEEN, GAP = 5, 24, 8, 12
LEVELS = 2 * HEIGHT  # to which a value is rounded: half a pixel
POINTS = 60  # of a strip: one for each pixel of the narrowest


class Strip(NamedTuple):
    """The values of one run in their order, and what is said of them."""

    values: Sequence[float]
    note: str


def strip_chart(
    rows: Sequence[tuple[str, str, Sequence[Strip]]],
    title: str,
    description: str,
    note: str,
    key: str,
) -> str:
    """Return a chart with a block per row: a label, a text at the other end of its line, and its strips.

    The strips of a row have one scale, from the least of its values to the greatest.  '' without a row.
    """
    if not rows:
        return ""
    columns = min(COLUMNS, max(len(strips) for _label, _text, strips in rows))
    width = (WIDTH - BETWEEN * (columns - 1)) / columns
    body, y = svg.head(title, note)
    y -= BETWEEN
    for label, text, strips in rows:
        above, y = svg.row_head(label, text, y, BETWEEN)
        body += above
        y += 3
        values = [value for strip in strips for value in strip.values]
        for index, strip in enumerate(strips):
            line, column = divmod(index, columns)
            corner = column * (width + BETWEEN), y + line * (HEIGHT + BETWEEN)
            body.append(_strip(strip, *corner, width, min(values), max(values)))
        y += (HEIGHT + BETWEEN) * ((len(strips) - 1) // columns + 1) + GAP - BETWEEN
    return svg.framed(body, title, description, key, round(y))


def _strip(strip: Strip, x: float, y: float, width: float, least: float, most: float) -> str:
    """Return a strip at (x, y), in steps of its own coordinates."""
    values = stats.thinned(strip.values, POINTS)
    span = (most - least) or 1.0
    heights = [round(LEVELS * (most - value) / span) for value in values]
    steps = "".join(f" 1{after - before:+d}" for before, after in zip(heights, heights[1:], strict=False))
    path = f"M0 {heights[0]}l{steps.replace('+', ' ').strip()}" if steps else f"M0 {heights[0]}h1"
    across = width / max(1, len(values) - 1)
    return (
        f'<g class="p0"><title>{escape(strip.note)}</title>'
        f'<rect class="window" x="{x:.1f}" y="{y:.0f}" width="{width:.1f}" height="{HEIGHT}"/>'
        f'<path class="strip" transform="matrix({across:.3f} 0 0 {HEIGHT / LEVELS:g} {x:.1f} {y:.0f})" '
        f'd="{path}"/></g>'
    )
