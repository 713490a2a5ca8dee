# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The printed cells of comparisons: with an earlier campaign, and with published results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import GROUP_FIELDS, Results
from ansible.module_utils.scalebook.judge import headings
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.published import PublishedRow
from ansible.module_utils.scalebook.report import method
from ansible.module_utils.scalebook.text import clean


def with_earlier(document: Results, wording: Wording) -> dict[str, Any] | None:
    """Return the printed cells of the comparison with an earlier campaign, None without one."""
    made = document["baseline"]
    if not made:
        return None
    short = {case: clean(group["short"]) for group in document["groups"] for case in group["rows"]}
    several = len(document["groups"]) > 1
    return {
        "name": clean(made["name"]),
        "limit": wording.percent(made["limit"]),
        "regressions": made["regressions"],
        "other_hardware": wording.tell(made.get("other_hardware") or ""),
        "rule": method.baseline_rule(wording),
        "intervals": any(entry["interval"] for entry in made["rows"]),
        "rows": [
            {
                "label": clean(entry["label"]),
                "group": short[entry["case"]] if several else "",
                "now": wording.number(entry["now"]),
                "before": wording.number(entry["before"]),
                "ratio": wording("n/a") if entry["ratio"] is None else f"{entry['ratio']:.3f}",
                "range": _quotients(entry["range"], wording),
                "interval": _quotients(entry["interval"], wording),
                "margin": wording("n/a")
                if entry["margin"] is None
                else f"± {wording.percent(entry['margin'])}",
                "verdict": wording(entry["verdict"]),
                "regression": entry["regression"],
                "why": wording.tell(entry["why"] or ""),
            }
            for entry in made["rows"]
        ],
        "only_here": [place(entry) for entry in made["only_here"]],
        "only_there": [place(entry) for entry in made["only_there"]],
    }


def _quotients(pair: Sequence[float] | None, wording: Wording) -> str:
    return wording("n/a") if pair is None else f"{pair[0]:.3f} – {pair[1]:.3f}"


def place(entry: Mapping[str, Any]) -> str:
    """Return the name of a row that only one of two campaigns has."""
    names = (headings.word(entry, field) for field in GROUP_FIELDS if entry.get(field) is not None)
    return clean(" ".join(filter(None, [entry["label"], *names])))


def with_published(entry: Mapping[str, Any], wording: Wording) -> dict[str, Any]:
    """Return the printed cells of the comparison of one group with published results."""
    pairs = []
    for pair in entry["rows"]:
        ratio = pair["rate"] / pair["published_rate"] if pair["rate"] and pair["published_rate"] else None
        pairs.append(
            {
                "label": clean(pair["label"]),
                "devices": str(pair["devices"]),
                "rate": wording.number(pair["rate"]),
                "published_rate": wording.number(pair["published_rate"], "–"),
                "ratio": "–" if ratio is None else f"{ratio:.2f}",
                "speedup": wording.speedup(pair["speedup"]),
                "published_label": pair["published_label"] or "–",
                "published_speedup": wording.speedup(pair["published_speedup"], "–"),
                "efficiency": wording.percent(pair["efficiency"]),
                "published_efficiency": "–"
                if pair["published_efficiency"] is None
                else wording.percent(pair["published_efficiency"]),
            }
        )
    theirs = ""
    if entry["rows"]:
        theirs = _published_name(entry)
    return {
        "title": clean(entry["title"]),
        "theirs": theirs,
        "comparable": entry["comparable"],
        "why": wording.tell(entry["why"]),
        "warning": wording.sentence(entry.get("warning", "")),
        "sources": _sources((pair["source"] for pair in entry["rows"] if pair["source"]), wording),
        "rows": pairs,
    }


def _published_name(entry: Mapping[str, Any]) -> str:
    """Return the name of a published table: `TensorFlow 2.3.0 bert-base fp32 XLA b64`."""
    names = [
        entry["framework"],
        entry["model"],
        entry["dtype"],
        "XLA" if entry["xla"] else "",
        f"b{entry['bsz']}",
    ]
    return " ".join(filter(None, names)) + (f" ({entry['variant']})" if entry["variant"] else "")


def only_published(tables: Sequence[Mapping[str, Any]], wording: Wording) -> list[dict[str, Any]]:
    """Return the printed cells of published tables that nothing of ours stands beside, by family.

    A line is a table, its columns are the cases: `{"family", "labels", "lines": [{"name", "cells"}],
    "warnings", "sources"}`; a cell is the rate, with the speedup of several devices in brackets.
    """
    found = []
    for family in dict.fromkeys(table["family"] for table in tables):
        mine = [table for table in tables if table["family"] == family]
        order = {row["label"]: row["devices"] for table in mine for row in table["rows"]}
        labels = sorted(order, key=lambda label: (order[label], label))
        lines = []
        for table in mine:
            cells = {row["label"]: _published_cell(row, wording) for row in table["rows"]}
            name = clean(_published_name(table))
            lines.append({"name": name, "cells": [cells.get(label, "–") for label in labels]})
        found.append(
            {
                "family": clean(family),
                "labels": labels,
                "count": wording.count(sum(len(table["rows"]) for table in mine), "published result"),
                "lines": lines,
                "warnings": [
                    wording.sentence(each)
                    for each in dict.fromkeys(table["warning"] for table in mine if table["warning"])
                ],
                "sources": _sources((row["source"] for table in mine for row in table["rows"]), wording),
            }
        )
    return found


def _published_cell(row: PublishedRow, wording: Wording) -> str:
    rate = wording.number(row["rate"])
    return rate if row["devices"] == 1 else f"{rate} ({wording.speedup(row['speedup'])})"


def _sources(names: Iterable[str], wording: Wording) -> str:
    """Return `FILE:L1`, `FILE:L2` as `FILE, lines 1, 2`."""
    lines: dict[str, list[str]] = {}
    for name in names:
        file, _, line = name.rpartition(":L")
        lines.setdefault(file or name, []).append(line)
    return "; ".join(
        wording("{file}, lines {lines}", file=file, lines=", ".join(numbers))
        for file, numbers in lines.items()
    )
