# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What all charts share: SVG text without a plotting library.

A chart is used twice: inside the page, which contains style() itself, and as a file of its own.  Colours
are classes, so that light and dark mode follow the reader; series differ in their dashes and markers too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

WIDTH = 420
TOP = 52
PADDING = 16  # around a chart that is a file of its own
LEGEND_ROW = 18
CHARACTER = 6.6  # width of an average character of the 12 px labels, for wrapping the legend
WIDE = 12.0  # of a Chinese character
LONGEST = 58  # characters of a label

LIGHT = ("#1b64a5", "#c2410c", "#17805c", "#7c3aed", "#a16207", "#b4235f", "#4d6b14", "#475569")
DARK = ("#74b8f0", "#ff9e6b", "#63d2a4", "#c3a5ff", "#e6c15c", "#f78fb8", "#b7d76f", "#a8b5c7")
DASHES = ("", "9 3", "3 2.5", "9 3 2.5 3", "14 4", "5 5", "9 3 2.5 3 2.5 3", "14 4 5 4")
SERIES = len(LIGHT)  # one colour, one dash pattern and one marker for each series of a chart


def style() -> str:
    """Return the CSS of every chart; colours follow prefers-color-scheme, paper is white."""

    def colours(values: Sequence[str]) -> str:
        return "".join(f".p{i}{{--c:{value}}}" for i, value in enumerate(values))

    dashes = "".join(
        f".chart .p{i} .line{{stroke-dasharray:{value}}}" for i, value in enumerate(DASHES) if value
    )
    return (
        ".chart{font:12px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;--ink:#1c2126;--soft:#5d6670;"
        "--grid:#e3e6ea;--paper:#fff;--c:#1b64a5}"
        ".chart text{fill:var(--soft)}.chart .name{fill:var(--ink);font-size:14px;font-weight:600}"
        ".chart .value{fill:var(--c);font-weight:600;paint-order:stroke;stroke:var(--paper);stroke-width:3px}"
        ".chart .legend{fill:var(--ink)}.chart .paper{fill:var(--paper)}"
        ".chart .grid{stroke:var(--grid);fill:none}.chart .axis{stroke:var(--soft);fill:none}"
        ".chart .ideal{stroke:var(--soft);stroke-dasharray:1 3;fill:none}"
        ".chart .own.ideal{stroke:var(--c);opacity:.7}"
        ".chart .line{stroke:var(--c);stroke-width:2;fill:none;stroke-linejoin:round}"
        ".chart .bar{stroke:var(--c);stroke-width:1.25;fill:none}"
        ".chart .limits{stroke:var(--ink);stroke-width:1.25;fill:none}"
        ".chart .fill{fill:var(--c)}.chart .window{fill:var(--grid);opacity:.6}"
        ".chart .dot{fill:var(--c);stroke:var(--paper);stroke-width:1}"
        ".chart .dot.hollow{fill:var(--paper);stroke:var(--c);stroke-width:1.75}"
        + dashes
        + colours(LIGHT)
        + "@media screen and (prefers-color-scheme:dark)"
        + "{.chart{--ink:#e8eaed;--soft:#a3abb5;--grid:#2c3238;--paper:#14171a}"
        + colours(DARK)
        + "}"
    )


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


def nice(step: float) -> float:
    """Return the next of 1, 2, 5 x 10^n at or above `step`."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step * 0.9999)


def short(value: float) -> str:
    """Return a number on an axis: 1, 0.5, 12500 as 12.5k."""
    if value >= 10000:
        return f"{value / 1000:.4g}k"
    return f"{value:.4g}"


def figure(value: float) -> str:
    """Return a value with three or four digits, never in exponents."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 100 else f"{value:.2f}"


def marker(index: int, x: float, y: float, kind: str = "dot") -> str:
    """Return the marker of series `index`; all of them differ in their shape."""
    if index == 0:
        return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
    outline = {
        1: f"M{x - 3.6:.1f} {y - 3.6:.1f}h7.2v7.2h-7.2z",
        2: f"M{x:.1f} {y - 4.8:.1f}l4.6 8.2h-9.2z",
        3: f"M{x:.1f} {y - 5:.1f}l4.8 5-4.8 5-4.8-5z",
        4: f"M{x:.1f} {y + 4.8:.1f}l4.6-8.2h-9.2z",
        5: f"M{x - 1.6:.1f} {y - 4.8:.1f}h3.2v3.2h3.2v3.2h-3.2v3.2h-3.2v-3.2h-3.2v-3.2h3.2z",
        6: f"M{x - 4.8:.1f} {y - 4:.1f}l9.6 8v-8l-9.6 8z",
        7: f"M{x - 5.5:.1f} {y - 2.2:.1f}h11v4.4h-11z",
    }[index]
    return f'<path class="{kind}" d="{outline}"/>'


def width_of(text: str) -> float:
    """Return about how many pixels a label takes."""
    return sum(WIDE if ord(character) > 0x2E80 else CHARACTER for character in text)


def shortened(label: str) -> str:
    """Return a label that fits into a chart."""
    return label if len(label) <= LONGEST else label[: LONGEST - 1] + "…"


def legend(entries: Sequence[tuple[int | None, str]], top: float) -> tuple[list[str], int]:
    """Return the legend and how many rows it takes; a series is its index, None the ideal line."""
    out, x, row = [], 0.0, 0
    for index, label in entries:
        label = shortened(label)
        width = 30 + width_of(label) + 14
        if x and x + width > WIDTH:
            x, row = 0.0, row + 1
        y = top + row * LEGEND_ROW
        colour, line = ("", "ideal") if index is None else (f"p{index}", "line")
        out.append(f'<g class="{colour}"><path class="{line}" d="M{x:.0f} {y - 4:.0f}h22"/>')
        if index is not None:
            out.append(marker(index, x + 11, y - 4))
        out.append(f'<text class="legend" x="{x + 28:.0f}" y="{y:.0f}">{escape(label)}</text></g>')
        x += width
    return out, row + 1
