# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The results -> what the terminal shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import Results, Row
from ansible.module_utils.scalebook.pages import terminal
from ansible.module_utils.scalebook.pages.wording import ENGLISH
from ansible.module_utils.scalebook.report import (
    environment,
    published_tables,
    runs,
    scaling,
)
from ansible.module_utils.scalebook.report.view import View, flag_sentence
from ansible.module_utils.scalebook.text import clean


def table(document: Results) -> str:
    """Return DLPerf's tables as aligned text, flags below each; strong scaling after weak."""
    view = View(document)
    groups = {group["id"]: group for group in document["groups"]}
    blocks = []
    for family in document["families"]:
        if scaling.has_compared(family):
            title = f"Family {clean(family['family'])}, workloads side by side"
            blocks.append(terminal.table(title, scaling.family_table(view, family)))
        for group in (groups[name] for name in family["groups"]):
            flags = _flags(view.rows_of(group))
            blocks.append(terminal.table(clean(group["title"]), scaling.group_table(view, group), flags))
    for each in document["strong"]:
        title = f"Strong scaling: {clean(each['title'])}"
        blocks.append(terminal.table(title, scaling.strong_table(view, each), _flags(each["rows"])))
    return "\n\n".join(blocks)


def _flags(rows: Sequence[Row]) -> list[str]:
    return [f"{clean(row['label'])}: {flag_sentence(flag, ENGLISH)}" for row in rows for flag in row["flags"]]


def display(document: Results, report: str) -> str:
    """Return what the terminal shows at the end: tables, excluded runs, and the path of the page."""
    view = View(document)
    simulated = environment.shared(document["simulated"], ENGLISH)
    blocks = [simulated] if simulated else []
    blocks.append(table(document) or "No case was measured.")
    blocks += terminal.some(
        "Conclusions", [ENGLISH.tell(each["message"]) for each in document["conclusions"]]
    )
    blocks.append(trust(document))
    searches = map(_largest_batch, scaling.searches(document["largest_batches"], ENGLISH))
    blocks += terminal.some("Largest batch", [*searches])
    uncounted = [
        f"{run['group']} {run['label']} repeat {run['repeats']}: {run['status']}, {run['reason']}".strip()
        for run in runs.excluded_rows(view)
    ]
    blocks += terminal.some("Excluded runs", uncounted, runs.fix_of_import(view))
    blocks += _comparison(view)
    skipped = [f"{clean(each['label'])}: {ENGLISH.tell(each['reason'])}" for each in document["skipped"]]
    blocks += terminal.some("Skipped cases", skipped)
    notes = [ENGLISH.tell(note) for note in document["notes"]]
    blocks += terminal.some("Notes", [*notes, *_unnamed_machines(document)])
    blocks += terminal.some("Comparison with DLPerf", _published(document))
    published = published_tables.rate_lines(document.get("published") or [])
    blocks += terminal.some("Comparison with published rates of language models", published)
    blocks.append(f"Report: {report}")
    return "\n\n".join(blocks)


def trust(document: Results) -> str:
    """Return how far to trust the rows, and why."""
    word, reasons = document["trust"]["level"], document["trust"]["reasons"]
    because = f" ({ENGLISH.join(map(ENGLISH.tell, reasons), 'list')})" if reasons else ""
    return ENGLISH("report.trust", word=ENGLISH(f"trust.{word}")) + because


def _unnamed_machines(document: Results) -> list[str]:
    """Return what to know of a campaign whose plan names no machines, as those of earlier versions."""
    named = any((document["plan"].get("machines") or {}).values())
    if named or document["kind"] == "import" or not document["counts"]["good"]:
        return []
    return ["its machines are not recorded: it was planned by an earlier version of scalebook"]


def _largest_batch(entry: Mapping[str, str]) -> str:
    reason = f"; {entry['note']}" if entry["note"] else ""
    return (
        f"{entry['title']}, {entry['points']}: {entry['largest']} per device "
        f"(out of memory with: {entry['failed']}; search runs: {entry['searches']}){reason}"
    )


def _comparison(view: View) -> list[str]:
    """Return the comparison with an earlier campaign."""
    compared: Mapping[str, Any] | None = view.document["baseline"]
    if not compared:
        return []
    name, table = clean(compared["name"]), scaling.earlier_table(view)
    other = ENGLISH.tell(compared.get("other_hardware") or "")
    lines = [f"other hardware: {other}"] if other else []
    lines += [ENGLISH.tell(compared["other_binding"])] if compared.get("other_binding") else []
    lines += [f"{row['label']}: {row['why']}" for row in table.rows if row["why"]]
    lines += [f"only in this one: {scaling.place(each)}" for each in compared["only_here"]]
    lines += [f"only in {name}: {scaling.place(each)}" for each in compared["only_there"]]
    if compared["regressions"]:
        lines.append(f"{compared['regressions']} slower by more than {ENGLISH.percent(compared['limit'])}")
    return [terminal.table(f"Comparison with {name}:", table, lines)]


def _published(document: Results) -> list[str]:
    """Return what became of the comparison of each group with published results."""
    lines = []
    for entry in document["compare"]:
        theirs = f"compared with {published_tables.name_of(entry)}" if entry["rows"] else ""
        lines.append(
            " ".join(filter(None, [clean(entry["title"]), theirs])) + f": {ENGLISH.tell(entry['why'])}"
        )
        lines += [f"warning: {ENGLISH.tell(entry['warning'])}"] if entry.get("warning") else []
    counts = published_tables.counts(document.get("only_published") or [], ENGLISH)
    return lines + [f"{clean(family)}: {count} more, published only" for family, count in counts.items()]
