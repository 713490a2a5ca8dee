# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A square of cells, the darker the less: what each of several parts reaches with each other one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from ansible.module_utils.scalebook.pages import svg
from ansible.module_utils.scalebook.pages.svg import WIDTH

LEAST = 0.5  # a share that is as dark as any below it
TEXT_FROM = 30  # pixels of a cell that has room for its number
NAMED = 12  # pixels of a row that has room for its name


def heat_map(
    names: Sequence[str], shares: Mapping[tuple[str, str], float], title: str, note: str, key: str
) -> str:
    """Return a chart with a row for each source and a column for each target; '' without a cell."""
    if not shares:
        return ""
    body, top = svg.head(title, note)
    size = WIDTH / (len(names) + 1)
    for row, source in enumerate(names):
        y = top + row * size
        if size >= NAMED:
            body.append(
                f'<text class="legend" x="{size - 4:.1f}" y="{y + size / 2 + 4:.1f}" text-anchor="end">'
                f"{escape(source.removeprefix('NODE'))}</text>"
            )
        for column, target in enumerate(names):
            share = shares.get((source, target))
            if share is not None:
                body.append(_cell(size * (column + 1), y, size, share, f"{source} → {target}"))
    return svg.framed(body, title, note, key, round(top + size * len(names)))


def _cell(x: float, y: float, size: float, share: float, name: str) -> str:
    """Return a cell with what it says to the mouse, and its number where there is room."""
    dark = min(1.0, max(0.0, (1 - share) / (1 - LEAST)))
    text = ""
    if size >= TEXT_FROM:
        middle = f'x="{x + size / 2:.1f}" y="{y + size / 2 + 4:.1f}" text-anchor="middle"'
        text = f'<text class="legend" {middle}>{share:.0%}</text>'.replace("%", "")
    return (
        f'<g class="p1"><title>{escape(name)}: {share:.1%}</title>'
        f'<rect class="grid" x="{x:.1f}" y="{y:.1f}" width="{size:.1f}" height="{size:.1f}"/>'
        f'<rect class="fill" x="{x:.1f}" y="{y:.1f}" width="{size:.1f}" height="{size:.1f}" '
        f'fill-opacity="{dark * 0.85:.2f}"/>{text}</g>'
    )
