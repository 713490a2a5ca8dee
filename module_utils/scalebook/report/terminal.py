# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The results -> what the terminal shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import Results, Row
from ansible.module_utils.scalebook.pages import terminal
from ansible.module_utils.scalebook.pages.wording import ENGLISH, Wording
from ansible.module_utils.scalebook.report import (
    environment,
    published_tables,
    runs,
    scaling,
)
from ansible.module_utils.scalebook.report.view import View, flag_sentence
from ansible.module_utils.scalebook.text import clean


def table(document: Results, wording: Wording = ENGLISH) -> str:
    """Return DLPerf's tables as aligned text, flags below each; strong scaling after weak."""
    _, view = wording, View(document, wording)
    groups = {group["id"]: group for group in document["groups"]}
    blocks = []
    for family in document["families"]:
        if scaling.has_compared(family):
            title = _("terminal.family", family=clean(family["family"]))
            blocks.append(terminal.table(title, scaling.family_table(view, family), (), _))
        for group in (groups[name] for name in family["groups"]):
            flags = _flags(view.rows_of(group), _)
            blocks.append(terminal.table(_.tell(group["title"]), scaling.group_table(view, group), flags, _))
    for each in document["strong"]:
        title = _.about(_("title.strong"), _.tell(each["title"]))
        blocks.append(terminal.table(title, scaling.strong_table(view, each), _flags(each["rows"], _), _))
    return "\n\n".join(blocks)


def _flags(rows: Sequence[Row], wording: Wording) -> list[str]:
    return [
        wording.about(clean(row["label"]), flag_sentence(flag, wording))
        for row in rows
        for flag in row["flags"]
    ]


def display(document: Results, report: str, wording: Wording = ENGLISH) -> str:
    """Return what the terminal shows at the end: tables, excluded runs, and the path of the page."""
    _, view = wording, View(document, wording)
    simulated = environment.shared(document["simulated"], _)
    blocks = [simulated] if simulated else []
    blocks.append(table(document, _) or _("terminal.nothing"))

    def add(section: str, lines: Sequence[str], last: str = "") -> None:
        blocks.extend(terminal.some(_(f"title.{section}"), lines, last, _))

    add("logs", _logs(document, _) if document["kind"] == "import" else [])
    add("conclusions", [_.tell(each["message"]) for each in document["conclusions"]])
    blocks.append(trust(document, _))
    add("largest", [_largest_batch(each, _) for each in scaling.searches(document["largest_batches"], _)])
    excluded = [
        _("terminal.excluded", run=f"{run['group']} {run['label']}", **run)
        for run in runs.excluded_rows(view)
    ]
    add("uncounted", [*map(str.strip, excluded)], runs.fix_of_import(view))
    blocks += _comparison(view)
    add("skipped", [_.about(clean(each["label"]), _.tell(each["reason"])) for each in document["skipped"]])
    add("notes", [*map(_.tell, document["notes"]), *_unnamed_machines(document, _)])
    add("published", _published(document, _))
    add("published-rates", published_tables.rate_lines(document.get("published") or [], _))
    blocks.append(_("terminal.report", path=report))
    return "\n\n".join(blocks)


def _logs(document: Results, wording: Wording) -> list[str]:
    """Return each imported log that counts, with its rate and the mean of its case, as DLPerf has them."""
    return [
        wording(
            "terminal.log",
            log=run["log"],
            rate=run["rate"],
            unit=wording.name("unit", row["unit"]),
            count=row["good"],
            mean=row["mean"],
        )
        for row in document["rows"]
        for run in row["runs"]
    ]


def trust(document: Results, wording: Wording = ENGLISH) -> str:
    """Return how far to trust the rows, and why."""
    _, level, reasons = wording, document["trust"]["level"], document["trust"]["reasons"]
    because = _("page.aside", text=_.join(map(_.tell, reasons), "list")) if reasons else ""
    return _("report.trust", word=_(f"trust.{level}")) + because


def _unnamed_machines(document: Results, wording: Wording) -> list[str]:
    """Return what to know of a campaign whose plan names no machines, as those of earlier versions."""
    named = any((document["plan"].get("machines") or {}).values())
    if named or document["kind"] == "import" or not document["counts"]["good"]:
        return []
    return [wording("terminal.unnamed-machines")]


def _largest_batch(entry: Mapping[str, str], wording: Wording) -> str:
    return wording.join([wording("terminal.largest", **entry), entry["note"]], "list")


def _comparison(view: View) -> list[str]:
    """Return the comparison with an earlier campaign."""
    compared: Mapping[str, Any] | None = view.document["baseline"]
    if not compared:
        return []
    _, name, rows = view.wording, clean(compared["name"]), scaling.earlier_table(view)
    head = _("terminal.head", title=_("title.baseline", name=name))
    unclear = [_.about(row["label"], row["why"]) for row in rows.rows if row["why"]]
    lines = [*scaling.warnings(compared, _), *unclear, *scaling.only_in(compared, _)]
    return [terminal.table(head, rows, lines, _)]


def _published(document: Results, wording: Wording) -> list[str]:
    """Return what became of the comparison of each group with published results."""
    _ = wording
    lines = []
    for entry in document["compare"]:
        title, theirs = _.tell(entry["title"]), published_tables.name_of(entry) if entry["rows"] else ""
        name = _("report.compared", group=title, published=theirs) if theirs else title
        lines.append(_.about(name, _.tell(entry["why"])))
        warning = _.tell(entry.get("warning") or "")
        lines += [_("terminal.warning", text=warning)] if warning else []
    counts = published_tables.counts(document.get("only_published") or [], _)
    return lines + [_("terminal.only-published", family=clean(each), count=counts[each]) for each in counts]
