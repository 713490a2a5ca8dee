# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The document -> what the terminal shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import Results
from ansible.module_utils.scalebook.report.page import page
from ansible.module_utils.scalebook.text import aligned, clean

SHOWN = 10  # lines of one section; the page has them all
WIDEST = 300  # characters of one of them

_HEADS = {"label": "case", "margin": "smallest significant change"}


def table(document: Results) -> str:
    """Return DLPerf's tables as aligned text, flags below each; strong scaling after weak."""
    shown = page(document)
    columns = ("node_num", "gpu_num", "rate", "speedup", "efficiency", "runs")
    blocks = []
    for family in shown["families"]:
        blocks += [_family_table(family)] if family["columns"] else []
        for group in family["groups"]:
            latency = ("latency",) if group["latency"] else ()
            blocks.append(_text_table(group, (*columns[:3], *latency, *columns[3:], "spread")))
    for each in shown["strong"]:
        strong_table = {**each, "title": f"Strong scaling: {each['title']}"}
        blocks.append(_text_table(strong_table, ("node_num", "gpu_num", "bsz", *columns[2:])))
    return "\n\n".join(blocks)


def _text_table(shown: Mapping[str, Any], columns: Sequence[str]) -> str:
    heads = {"rate": f"{shown['unit']}/s", "latency": "latency, ms"}
    head = [heads.get(column, column) for column in columns]
    flags = [f"  {row['label']}: {flag['text']}" for row in shown["rows"] for flag in row["flags"]]
    rows = [[row[column] for column in columns] for row in shown["rows"]]
    return "\n".join([shown["title"], *_lines(head, rows), *flags])


def _family_table(shown: Mapping[str, Any]) -> str:
    """Return the workloads of a family side by side."""
    head = ["case", ""]
    for column in shown["columns"]:
        head += [f"{column['name']} {column['unit']}/s", "speedup", "efficiency"]
    rows = [
        [line["label"], line["title"]]
        + [cell[key] for cell in line["cells"] for key in ("rate", "speedup", "efficiency")]
        for line in shown["lines"]
    ]
    return "\n".join([f"Family {shown['name']}, workloads side by side", *_lines(head, rows)])


def _lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return aligned([head, *rows], separator=" | ", rule="-|-")


def display(document: Results, report: str) -> str:
    """Return what the terminal shows at the end: tables, excluded runs, and the path of the page."""
    shown = page(document)
    blocks = [shown["simulated"]] if shown["simulated"] else []
    blocks.append(table(document) or "No case was measured.")
    blocks += _some("Largest batch", [_largest_batch(entry) for entry in shown["largest_batches"]])
    blocks += _some(
        "Excluded runs",
        [
            f"{u['group']} {u['label']} repeat {u['repeats']}: {u['status']}, {u['reason']}".strip()
            for u in shown["uncounted"]
        ],
        shown["uncounted_fix"],
    )
    blocks += _comparison(shown["baseline"])
    blocks += _some("Skipped cases", [f"{s['label']}: {s['reason']}" for s in shown["skipped"]])
    blocks += _some("Notes", [*shown["notes"], *_unnamed_machines(document)])
    published = []
    for entry in shown["compare"]:
        names = [entry["title"], f"compared with {entry['theirs']}" if entry["rows"] else ""]
        published.append(" ".join(filter(None, names)) + f": {entry['why']}")
        published += [f"warning: {entry['warning']}"] if entry["warning"] else []
    published += [
        f"{family['family']}: {family['count']} more, published only" for family in shown["only_published"]
    ]
    blocks += _some("Comparison with DLPerf", published)
    blocks.append(f"Report: {report}")
    return "\n\n".join(blocks)


def _unnamed_machines(document: Results) -> list[str]:
    """Return what to know of a campaign whose plan names no machines, as those of earlier versions."""
    named = any((document["plan"].get("machines") or {}).values())
    if named or document["kind"] == "import" or not document["counts"]["good"]:
        return []
    return ["its machines are not recorded: it was planned by an earlier version of scalebook"]


def _largest_batch(entry: Mapping[str, str]) -> str:
    reason = f"; {entry['reason']}" if entry["reason"] else ""
    return (
        f"{entry['title']}, {entry['points']}: {entry['largest']} per device "
        f"(out of memory with: {entry['failed']}; search runs: {entry['runs']}){reason}"
    )


def _comparison(made: Mapping[str, Any] | None) -> list[str]:
    """Return the comparison with an earlier campaign."""
    if not made:
        return []
    columns = ["label", "now", "before", "ratio", "range", "margin", "verdict"]
    if any(row["group"] for row in made["rows"]):
        columns.insert(0, "group")
    rows = [[row[column] for column in columns] for row in made["rows"]]
    lines = [f"Comparison with {made['name']}:", *_lines([_HEADS.get(c, c) for c in columns], rows)]
    lines += [f"  other hardware: {made['other_hardware']}"] if made["other_hardware"] else []
    lines += [f"  {row['label']}: {row['why']}" for row in made["rows"] if row["why"]]
    lines += [f"  only in this one: {place}" for place in made["only_here"]]
    lines += [f"  only in {made['name']}: {place}" for place in made["only_there"]]
    if made["regressions"]:
        lines.append(f"  {made['regressions']} slower by more than {made['limit']}")
    return ["\n".join(lines)]


def _some(title: str, lines: Sequence[str], fix: str = "") -> list[str]:
    if not lines:
        return []
    # Names and reasons come from records and logs of other machines: one line each, whatever they hold.
    shown = [line if len(line) <= WIDEST else line[: WIDEST - 1] + "…" for line in map(clean, lines[:SHOWN])]
    more = [f"  … and {len(lines) - SHOWN} more, all in the report"] if len(lines) > SHOWN else []
    last = [f"  {fix}"] if fix else []
    return ["\n".join([f"{title}:", *(f"  {line}" for line in shown), *more, *last])]
