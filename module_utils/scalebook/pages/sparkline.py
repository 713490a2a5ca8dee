# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A line in a cell: how a value changed from one time to the next."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

from ansible.module_utils.scalebook.pages.html_page import markup

WIDTH, HEIGHT, MARGIN = 120, 28, 3


class Spot(NamedTuple):
    """A value above 0, and whether it is marked."""

    value: float
    marked: bool


def sparkline(spots: Sequence[Spot], label: str) -> Any:
    """Return values from the oldest to the newest as a line, SVG that a page takes as it is.

    The lowest is 0 or less than half of the highest, never closer: small scatter must not look big.
    """
    values = [spot.value for spot in spots]
    top, bottom = max(values), min(min(values), max(values) / 2)
    step = (WIDTH - 2 * MARGIN) / max(len(values) - 1, 1)
    placed = [
        (
            round(MARGIN + index * step, 1),
            round(MARGIN + (top - value) / (top - bottom) * (HEIGHT - 2 * MARGIN), 1),
        )
        for index, value in enumerate(values)
    ]
    marks = [place for place, spot in zip(placed, spots, strict=True) if spot.marked]
    circles = [("last", *placed[-1], 2), *(("mark", x, y, 3) for x, y in marks)]
    return markup(
        f'<svg class="sparkline" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">'
        f'<polyline points="{" ".join(f"{x},{y}" for x, y in placed)}"/>'
        + "".join(f'<circle class="{name}" cx="{x}" cy="{y}" r="{r}"/>' for name, x, y, r in circles)
        + "</svg>"
    )
