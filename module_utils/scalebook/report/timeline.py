# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The course of one run of each case around its window: from the records, as data and as charts.

The run is the one whose rate is nearest to the median of its case, the node is its first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ansible.module_utils.scalebook.contracts import CaseTimeline, Group, message
from ansible.module_utils.scalebook.pages.panel_chart import Curve, Panel, Time, panel_chart
from ansible.module_utils.scalebook.pages.wording import ENGLISH, Wording
from ansible.module_utils.scalebook.quantities import PANELS
from ansible.module_utils.scalebook.text import clean

DRAWN = 24
"""Charts of a report at most: with its 5 KB each the page stays small. results.json has the others."""


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
    wording: Wording = ENGLISH,
) -> list[dict[str, str]]:
    """Return `{"name", "title", "svg"}` of the chart of each timeline, of DRAWN at most."""
    group_of = {case: wording.tell(group["title"]) for group in groups for case in group["rows"]}
    out = []
    for index, line in enumerate(timelines[:DRAWN], 1):
        title = wording(
            "chart.run", label=clean(line["label"]), repeat=line["repeat"], node=clean(line["node"])
        )
        if line["gpus"] > 1:
            title += wording("chart.mean-of", gpus=wording.count(line["gpus"], "GPU"))
        name, group = f"timeline{index}", group_of[line["case"]]
        drawing = chart(line, title, group, name, wording)
        out.append({"name": name, "title": wording.about(title, group), "svg": drawing})
    return out


def chart(line: CaseTimeline, title: str, group: str, key: str, wording: Wording = ENGLISH) -> str:
    """Return the chart of a timeline: a panel for each kind of quantity, the window shaded."""
    quantities_of = {
        panel: [quantity for quantity in quantities if quantity.name in line["lines"]]
        for panel, quantities in PANELS.items()
    }
    panels = [
        Panel(
            wording.tell(message(f"quantity.panel_{name}")),
            [Curve(wording.tell(message(each.code)), line["lines"][each.name]) for each in quantities],
            quantities[0].unit == "%",
        )
        for name, quantities in quantities_of.items()
        if quantities
    ]
    names = wording.join((curve.label for panel in panels for curve in panel.curves), "comma")
    description = wording("chart.timeline", quantities=names, seconds=line["window"])
    time = Time(line["begin"], line["step"], line["window"], wording("chart.seconds"))
    return panel_chart(panels, time, title, group, description, key)
