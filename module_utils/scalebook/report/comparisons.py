# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The printed cells of comparisons: with an earlier campaign, and with published results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import GROUP_FIELDS, Results
from ansible.module_utils.scalebook.report import method, weak_scaling
from ansible.module_utils.scalebook.report.wording import Wording
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
                "why": wording.sentence(clean(entry["why"] or "")),
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
    names = (weak_scaling.word(entry, field) for field in GROUP_FIELDS if entry.get(field) is not None)
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
        names = [
            entry["framework"],
            entry["model"],
            entry["dtype"],
            "XLA" if entry["xla"] else "",
            f"b{entry['bsz']}",
        ]
        theirs = " ".join(filter(None, names)) + (f" ({entry['variant']})" if entry["variant"] else "")
    return {
        "title": clean(entry["title"]),
        "theirs": theirs,
        "comparable": entry["comparable"],
        "why": wording.sentence(clean(entry["why"])),
        "warning": wording.sentence(entry.get("warning", "")),
        "sources": _sources((pair["source"] for pair in entry["rows"] if pair["source"]), wording),
        "rows": pairs,
    }


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
