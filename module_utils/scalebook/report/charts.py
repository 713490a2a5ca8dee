# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The document -> its charts as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import Group, Results
from ansible.module_utils.scalebook.report import dlperf_format, svg
from ansible.module_utils.scalebook.report.page import between, rate_range
from ansible.module_utils.scalebook.text import clean


def charts(document: Results, standalone: bool = False) -> list[dict[str, str]]:
    """Return `{"name", "svg"}` of the throughput and speedup charts, at most svg.SERIES groups on each.

    Groups with different units, such as samples and images, are never on one chart.
    """
    rows = {row["case"]: row for row in document["rows"]}
    chunks = _chunks(document["groups"])
    out = []
    for index, chunk in enumerate(chunks, 1):
        part = f" ({index} of {len(chunks)})" if len(chunks) > 1 else ""
        suffix = f"_{index}" if len(chunks) > 1 else ""
        for name, title, field, y_label, ideal, unit in (
            ("throughput", "Throughput", "median", f"{chunk[0]['unit']}/s, median", "own", ""),
            ("speedup", "Speedup", "speedup", "over 1n1g", "common", " ×"),
        ):
            series = [
                {"label": clean(group["short"]), "points": _points(group, rows, field)} for group in chunk
            ]
            drawing = svg.chart(
                series,
                title + part,
                f"{title} against number of devices, one line per group, with the range of the runs: "
                + "; ".join(clean(group["title"]) for group in chunk)
                + ". The numbers are in the tables.",
                y_label,
                f"{name}{index}",
                ideal=ideal,
                unit=unit,
                standalone=standalone,
            )
            if drawing:
                out.append({"name": name + suffix, "svg": drawing})
    return out + _strong_charts(document, standalone)


def _chunks(groups: Sequence[Group]) -> list[list[Group]]:
    """Return the groups of each chart."""
    chunks = []
    for unit in dict.fromkeys(group["unit"] for group in groups):
        same = [group for group in groups if group["unit"] == unit]
        chunks += [same[i : i + svg.SERIES] for i in range(0, len(same), svg.SERIES)]
    return chunks


def _strong_charts(document: Results, standalone: bool) -> list[dict[str, str]]:
    """Return the charts of strong scaling, apart from the others: their speedups are of another kind."""
    tables = [table for table in document["strong"] if any(row["speedup"] for row in table["rows"])]
    out = []
    for index, first in enumerate(range(0, len(tables), svg.SERIES), 1):
        chunk = tables[first : first + svg.SERIES]
        series = []
        for table in chunk:
            rows = {row["case"]: row for row in table["rows"]}
            points = _points({"rows": list(rows)}, rows, "speedup")
            series.append({"label": clean(table["title"]), "points": points})
        drawing = svg.chart(
            series,
            "Strong scaling" + (f" ({index})" if len(tables) > svg.SERIES else ""),
            "Speedup at a fixed global batch against number of devices: "
            + "; ".join(clean(table["title"]) for table in chunk)
            + ". The numbers are in the tables.",
            "speedup over 1n1g, same global batch",
            f"strong{index}",
            ideal="common",
            unit=" ×",
            standalone=standalone,
        )
        if drawing:
            suffix = f"_{index}" if len(tables) > svg.SERIES else ""
            out.append({"name": "strong" + suffix, "svg": drawing})
    return out


def _points(
    group: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]], field: str
) -> list[dict[str, Any]]:
    points = []
    for case in group["rows"]:
        row = rows[case]
        if row[field] is None:
            continue
        limits = rate_range(row) if field == "median" else row["speedup_range"]
        low, high = limits or (None, None)
        points.append(
            {
                "x": row["devices"],
                "y": row[field],
                "low": low,
                "high": high,
                "hollow": row["status"] == "provisional",
                "note": f"{row['label']}: {dlperf_format.number(row[field])}, range {between(limits)}, "
                f"{row['good']}/{row['planned']} runs",
            }
        )
    return points
