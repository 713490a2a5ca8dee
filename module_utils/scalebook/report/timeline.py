# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The course of one run of each case around its window: from the records, as data and as charts.

The run is the one whose rate is nearest to the median of its case, the node is its first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape

from ansible.module_utils.scalebook.contracts import CaseTimeline, Group, message
from ansible.module_utils.scalebook.pages import svg
from ansible.module_utils.scalebook.pages.wording import ENGLISH, Wording
from ansible.module_utils.scalebook.quantities import PANELS, Quantity
from ansible.module_utils.scalebook.text import clean

DRAWN = 24
"""Charts of a report at most: with its 5 KB each the page stays small. results.json has the others."""

PANEL, GAP = 64, 44  # pixels: height of a panel, room above it for heading and legend
LEFT, RIGHT, UP = 50, 8, 12


def rule(count: int, wording: Wording = ENGLISH) -> str:
    """Return what the charts of `count` timelines show, and how many of them are left out."""
    more = count - DRAWN
    about = wording("report.timelines")
    if more <= 0:
        return about
    rest = wording("report.more-timelines", cases=wording.count(more, "more case"))
    return wording.join([about, rest], "sentences")


def charts(
    timelines: Sequence[CaseTimeline],
    groups: Iterable[Group],
    standalone: bool = False,
    wording: Wording = ENGLISH,
) -> list[dict[str, str]]:
    """Return `{"name", "title", "svg"}` of the chart of each timeline, of DRAWN at most."""
    group_of = {case: clean(group["title"]) for group in groups for case in group["rows"]}
    out = []
    for index, line in enumerate(timelines[:DRAWN], 1):
        title = wording(
            "chart.run", label=clean(line["label"]), repeat=line["repeat"], node=clean(line["node"])
        )
        if line["gpus"] > 1:
            title += wording("chart.mean-of", gpus=wording.count(line["gpus"], "GPU"))
        name, group = f"timeline{index}", group_of[line["case"]]
        drawing = chart(line, title, group, name, standalone, wording)
        out.append({"name": name, "title": wording.about(title, group), "svg": drawing})
    return out


def chart(
    line: CaseTimeline, title: str, group: str, key: str, standalone: bool = False, wording: Wording = ENGLISH
) -> str:
    """Return the chart of a timeline: a panel for each kind of quantity, the window shaded."""
    drawing = {
        panel: [quantity for quantity in quantities if quantity.name in line["lines"]]
        for panel, quantities in PANELS.items()
    }
    panels = {panel: quantities for panel, quantities in drawing.items() if quantities}
    begin = line["begin"]
    end = begin + max(map(len, line["lines"].values()), default=0) * line["step"]
    right = svg.WIDTH - RIGHT

    def x_at(seconds: float) -> float:
        return LEFT + (seconds - begin) / (end - begin) * (right - LEFT)

    body, y = svg.head(title, group)
    y -= UP
    for panel, quantities in panels.items():
        heading = wording.tell(message(f"quantity.panel_{panel}"))
        body += _panel(line, heading, quantities, y + GAP, x_at, wording)
        y += GAP + PANEL
    for tick in _seconds(begin, end):
        x = x_at(tick)
        body.append(f'<path class="axis" d="M{x:.1f} {y:.0f}v4"/>')
        body.append(f'<text x="{x:.1f}" y="{y + 18:.0f}" text-anchor="middle">{svg.short(tick)}</text>')
    body.append(
        f'<text x="{(LEFT + right) / 2:.0f}" y="{y + 35:.0f}" text-anchor="middle">'
        f"{escape(wording('chart.seconds'))}</text>"
    )
    codes = [each.code for curves in panels.values() for each in curves]
    names = wording.join((wording.tell(message(code)) for code in codes), "comma")
    description = wording("chart.timeline", quantities=names, seconds=f"{line['window']:.4g}")
    return svg.framed(body, title, description, key, round(y + 42), standalone)


def _panel(
    line: CaseTimeline,
    heading: str,
    quantities: Sequence[Quantity],
    y: float,
    x_at: Callable[[float], float],
    wording: Wording,
) -> list[str]:
    """Return one panel whose upper edge is at `y`."""
    highest = max(value for each in quantities for value in line["lines"][each.name] if value is not None)
    top = 100.0 if quantities[0].unit == "%" else svg.nice(max(highest, 0.0) or 1.0)
    left, right = x_at(0), x_at(line["window"])
    body = [
        f'<text x="0" y="{y - 24:.0f}">{escape(heading)}</text>',
        f'<rect class="window" x="{left:.1f}" y="{y:.0f}" width="{right - left:.1f}" height="{PANEL}"/>',
    ]
    for share in (0.0, 0.5, 1.0):
        height = y + PANEL * (1 - share)
        body.append(f'<path class="grid" d="M{LEFT} {height:.0f}H{svg.WIDTH - RIGHT}"/>')
        body.append(
            f'<text x="{LEFT - 6}" y="{height + 4:.0f}" text-anchor="end">{svg.short(top * share)}</text>'
        )
    first, second = (x_at(line["begin"] + (index + 0.5) * line["step"]) for index in (0, 1))
    across, x = second - first, 0.0
    for index, quantity in enumerate(quantities):
        label = wording.tell(message(quantity.code))
        body.append(
            f'<g class="p{index}"><path class="line" d="M{x:.0f} {y - 10:.0f}h16"/>'
            f'<text class="legend" x="{x + 20:.0f}" y="{y - 6:.0f}">{escape(label)}</text>'
            f'<path class="line" transform="matrix({across:.3f} 0 0 .5 {first:.1f} {y:.0f})" '
            f'd="{_path(line, quantity.name, top)}"/></g>'
        )
        x += 32 + svg.width_of(label)
    return body


def _path(line: CaseTimeline, name: str, top: float) -> str:
    """Return the path of a quantity: broken where it was not read, without the middle of level stretches.

    It has a unit for each reading across and for each half pixel down, and only steps from point to point:
    they are short numbers.
    """
    levels = [
        None if value is None else round(2 * PANEL * (1 - min(max(value, 0.0), top) / top))
        for value in line["lines"][name]
    ]
    parts, x, y = "", 0, 0
    for index, (before, level, after) in enumerate(zip([None, *levels], levels, [*levels[1:], None])):  # noqa: B905
        if level is not None and not before == level == after:
            parts += f"{'m' if before is None else ' '}{index - x} {level - y}"
            x, y = index, level
    return parts.replace(" -", "-")


def _seconds(begin: float, end: float) -> list[float]:
    """Return the ticks of the axis of time, 0 among them."""
    step = svg.nice((end - begin) / 8)
    return [step * index for index in range(math.ceil(begin / step), math.floor(end / step) + 1)]
