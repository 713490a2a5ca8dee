# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The chart of a family: the workloads of a family side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ansible.module_utils.scalebook.evaluate import comparisons
from ansible.module_utils.scalebook.evaluate.options import Option, devices, values_of
from ansible.module_utils.scalebook.evaluate.sentences import term, training_words
from ansible.module_utils.scalebook.evaluate.writer import Writer
from ansible.module_utils.scalebook.grouping import grouped
from ansible.module_utils.scalebook.pages import svg
from ansible.module_utils.scalebook.pages.line_chart import Axes, line_chart
from ansible.module_utils.scalebook.pages.numbers import readable

CURVE = ("source", "group", "workload", "dtype", "compiler", "bsz", "variant", "differing", "gpu")
"""What the points of one curve have in common."""


def of_family(writer: Writer, options: Sequence[Option], name: str) -> list[tuple[str, str]]:
    """Return (caption, chart) of the throughput of a family over the devices, a curve for each workload.

    Drawn is the training that most workloads have; the curve of one is that of its best option on the most
    devices.  A curve has two points or more.
    """
    own = max(
        grouped(options, comparisons.training).values(),
        key=lambda each: len(_curves(each)),
    )
    title = writer.text("names", parts=[name, *training_words(own[0])])
    title = writer.text("titled", name=title, title=writer.text("throughput"))
    unit = writer.value(term("unit", own[0]["unit"]))
    axes = Axes(unit, writer.wording("head.devices"), writer.text("linear"), log=writer.text("log"))
    curves = list(_curves(own).values())[: svg.SERIES]
    series = [
        {"label": curve[0]["workload"], "points": [_point(writer, each) for each in curve]}
        for curve in curves
    ]
    chart = line_chart(series, writer.text("throughput"), title, axes, f"family{writer.section}", "own")
    return [(title, chart)] if chart else []


def _curves(options: Sequence[Option]) -> dict[str, list[Option]]:
    """Return the points of the best curve of each workload, the fastest workload first."""
    best: dict[str, list[Option]] = {}
    for curve in grouped(options, lambda each: values_of(each, CURVE)).values():
        points = list(grouped(sorted(curve, key=lambda each: -each["nodes"]), devices).values())
        # On as many devices, the one on fewer nodes is drawn.
        line = sorted((point[-1] for point in points), key=devices)
        own = best.get(line[0]["workload"])
        if len(line) > 1 and (own is None or _place(line) > _place(own)):
            best[line[0]["workload"]] = line
    return dict(sorted(best.items(), key=lambda each: -each[1][-1]["rate"]))


def _place(line: Sequence[Option]) -> tuple[int, float]:
    return devices(line[-1]), line[-1]["rate"]


def _point(writer: Writer, option: Option) -> dict[str, Any]:
    low, high = (option["slowest"], option["fastest"]) if option["runs"] > 1 else (None, None)
    note = f"{writer.wording.tell(option['name'])}: {readable(option['rate'])} {option['unit']}/s"
    return {"x": devices(option), "y": option["rate"], "low": low, "high": high, "note": note}
