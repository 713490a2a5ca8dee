# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What all charts share: SVG text without a plotting library.

A chart is used twice: inside the page, which contains style() itself, and as a file of its own.  Colours
are classes, so that light and dark mode follow the reader; series differ in their dashes and markers too.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from html import escape

WIDTH = 350
"""Pixels of every chart: what a page has on a phone of 390 px, so that nothing is scrolled to there."""
TOP = 52  # of a plot below a title and a note of one line each
PADDING = 16  # around a chart that is a file of its own
LINE = 15  # from one line of a label to the next
LEGEND_ROW = 18
SWATCH = 28  # of a legend, before its text
TITLE = 1.32  # of the width of a label: 14 px and bold
BOLD = 1.13

# Pixels of a character of the 12 px labels, in DejaVu Sans: the widest of the usual fonts.
NARROW, USUAL, CAPITAL, BROAD, CHINESE = 4.7, 7.6, 8.8, 11.2, 12.0
NARROW_ONES = frozenset("fijlrtI.,:;|!/'()[]-· ")
BROAD_ONES = frozenset("mwMW%@=+×<>±−&…→")

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
        ".chart .line{stroke:var(--c);stroke-width:2;fill:none;stroke-linejoin:round;"
        "vector-effect:non-scaling-stroke}"
        ".chart .strip{stroke:var(--c);stroke-width:1.25;fill:none;vector-effect:non-scaling-stroke}"
        ".chart .bar{stroke:var(--c);stroke-width:1.25;fill:none}"
        ".chart .limits{stroke:var(--ink);stroke-width:1.25;fill:none}"
        ".chart .aside{stroke:var(--c);stroke-width:2;fill:none}.chart .aside.other{stroke:var(--soft)}"
        ".chart .fill{fill:var(--c)}.chart .window{fill:var(--grid);opacity:.6}"
        ".chart .dot{fill:var(--c);stroke:var(--paper);stroke-width:1}"
        ".chart .dot.hollow{fill:var(--paper);stroke:var(--c);stroke-width:1.75}"
        ".chart .dot.hollow.other{stroke:var(--soft)}"
        + dashes
        + colours(LIGHT)
        + "@media screen and (prefers-color-scheme:dark)"
        + "{.chart{--ink:#e8eaed;--soft:#a3abb5;--grid:#2c3238;--paper:#14171a}"
        + colours(DARK)
        + "}"
    )


def framed(
    body: Sequence[str], title: str, description: str, key: str, height: int, kind: str = "plain"
) -> str:
    """Return the SVG of a chart, as pages have it; `key` makes its ids unique there.

    `kind` is a class: the script of a page shows all points of `curves` that lie above each other.
    """
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart {kind}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="{key}-title {key}-desc">'
        f'<title id="{key}-title">{escape(title)}</title><desc id="{key}-desc">{escape(description)}</desc>'
        f"{''.join(body)}</svg>"
    )


def as_file(chart: str) -> str:
    """Return a chart as a file of its own: with padding, its size, its style, and a background.

    A viewer's own background may be white in dark mode too.
    """
    head, end, body = chart.partition("</desc>")
    height = int(head.partition(f'viewBox="0 0 {WIDTH} ')[2].partition('"')[0])
    wide, tall = WIDTH + 2 * PADDING, height + 2 * PADDING
    sheet = f'<rect class="paper" x="-{PADDING}" y="-{PADDING}" width="{wide}" height="{tall}"/>'
    head = head.replace(f"0 0 {WIDTH} {height}", f"-{PADDING} -{PADDING} {wide} {tall}", 1)
    head = head.replace("><title", f' width="{2 * WIDTH}" height="{2 * height}"><title', 1)
    return f"{head}{end}<style>{style()}</style>{sheet}{body}"


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
    return sum(map(_advance, text))


@functools.lru_cache(maxsize=1024)
def _advance(character: str) -> float:
    if ord(character) > 0x2E80:
        return CHINESE
    if character in NARROW_ONES:
        return NARROW
    return BROAD if character in BROAD_ONES else (CAPITAL if character.isupper() else USUAL)


def wrapped(label: str, width: float) -> list[str]:
    """Return a label in lines of at most `width` pixels: at spaces, within words that are longer."""
    lines = [""]
    for word in re.findall(r"[\u2e80-\uffff]\s*|[^\s\u2e80-\uffff]+\s*", label):
        fits = width_of((lines[-1] + word).rstrip()) <= width
        if not fits and lines[-1]:
            lines.append("")
            fits = width_of(word.rstrip()) <= width
        if fits:
            lines[-1] += word
            continue
        for character in word:
            if not character.isspace() and width_of(lines[-1] + character) > width:
                lines.append("")
            lines[-1] += character
    return lines


def text(lines: Sequence[str], x: float, y: float, look: str = "", step: int = LINE) -> str:
    """Return lines as one text that begins at (x, y); `look` is its class."""
    css = f' class="{look}"' if look else ""
    first, *others = map(escape, lines)
    rest = "".join(f'<tspan x="{x:.0f}" dy="{step}">{each}</tspan>' for each in others)
    return f'<text{css} x="{x:.0f}" y="{y:.0f}">{first}{rest}</text>'


def row_head(label: str, note: str, y: float, gap: float) -> tuple[list[str], float]:
    """Return the label of a row at `y` with a note at the other end of its line, and where they end."""
    lines = wrapped(label, WIDTH - width_of(note) - gap)
    at_end = f'<text x="{WIDTH}" y="{y + 12:.0f}" text-anchor="end">{escape(note)}</text>'
    return [text(lines, 0, y + 12, "legend"), at_end], y + LINE * len(lines)


def head(title: str, note: str) -> tuple[list[str], float]:
    """Return the title of a chart with a note below it, in lines that fit, and where its plot begins."""
    titles, notes = wrapped(title, WIDTH / TITLE), wrapped(note, WIDTH)
    below = 34 + 18 * (len(titles) - 1)
    body = [text(titles, 0, 14, "name", 18), text(notes, 0, below)]
    return body, below + LINE * (len(notes) - 1) + TOP - 34


def legend(entries: Sequence[tuple[int | str, str]], top: float) -> tuple[list[str], float]:
    """Return the legend from `top` on and its height.

    An entry is the index of a series or a class of marks: `ideal`, `aside` or `hollow`.
    """
    out: list[str] = []
    x, y = 0.0, top
    bottom = y
    for index, label in entries:
        lines = wrapped(label, WIDTH - SWATCH)
        width = SWATCH + max(map(width_of, lines))
        if x and x + width > WIDTH:
            x, y = 0.0, bottom
        out.append(_swatch(index, x, y - 4) + text(lines, x + SWATCH, y, "legend") + "</g>")
        bottom = max(bottom, y + LEGEND_ROW + LINE * (len(lines) - 1))
        x += width + SWATCH / 2
    return out, bottom - top


def _swatch(index: int | str, x: float, y: float) -> str:
    """Return the beginning of an entry of the legend: its line and its marker."""
    if index == "aside":
        return f"<g>{aside(x + 11, y, 'aside other')}"
    if index == "hollow":
        return f"<g>{marker(0, x + 11, y, 'dot hollow other')}"
    if isinstance(index, str):
        return f'<g><path class="{index}" d="M{x:.0f} {y:.0f}h22"/>'
    return f'<g class="p{index}"><path class="line" d="M{x:.0f} {y:.0f}h22"/>{marker(index, x + 11, y)}'


def aside(x: float, y: float, look: str = "aside") -> str:
    """Return the marker of a point beside the line of its series."""
    return f'<path class="{look}" d="M{x - 4:.1f} {y - 4:.1f}l8 8m0-8l-8 8"/>'
