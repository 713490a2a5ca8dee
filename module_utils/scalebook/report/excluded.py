# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The sections of what does not count: excluded runs and skipped cases; and the notes."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.scalebook.contracts import as_message, import_fix
from ansible.module_utils.scalebook.pages.blocks import Block, Column, Heading, Items, Paragraph, Table
from ansible.module_utils.scalebook.report.view import View
from ansible.module_utils.scalebook.text import clean


def excluded(view: View) -> list[Block]:
    """Return the section of the runs that do not count, and how to have them count where that is known."""
    if not view.document["uncounted"]:
        return []
    _, title = view.wording, view.wording("title.uncounted")
    heading = Heading(2, title, "uncounted")
    columns = [
        Column("case", only="md"),
        Column("label", only="html", soft="group", hint="case"),
        Column("repeats", _("head.repeat"), "count"),
        Column("status"),
        Column("reason", only="html", look="wrap", soft="source", lines="last_lines"),
        Column("with_source", _("head.reason"), only="md"),
    ]
    fix = fix_of_import(view)
    return [heading, Table("", columns, excluded_rows(view), title), *([Paragraph(fix)] if fix else [])]


def fix_of_import(view: View) -> str:
    """Return how to have logs count that were imported as those of another case; a campaign names its own."""
    reasons = [as_message(entry["reason"]) for entry in view.document["uncounted"]]
    fix = import_fix(reasons) if view.document["kind"] == "import" else None
    return view.wording.tell(fix or "")


def excluded_rows(view: View) -> list[dict[str, Any]]:
    """Return the excluded runs, repeats of one case with the same reason on one line.

    The last lines are those of the first of them.
    """
    short = view.short_names
    repeats: dict[tuple[str, ...], list[str]] = {}
    first: dict[tuple[str, ...], dict[str, Any]] = {}
    for entry in view.document["uncounted"]:
        reason = view.wording.tell(entry["reason"])
        status, source = view.wording.name("status", entry["status"]), clean(entry["source"] or "")
        # A run of a search belongs to no group.
        group = short.get(entry["case"], "")
        key = (entry["case"], clean(entry["label"]), group, status, reason, source)
        repeats.setdefault(key, []).append(str(entry["repeat"]))
        last = [clean(line) for line in entry["last_lines"]]
        with_source = f"{reason} ({source})" if source else reason
        first.setdefault(key, {"last_lines": last, "with_source": with_source})
    names = ("case", "label", "group", "status", "reason", "source")
    return [
        {**dict(zip(names, key, strict=True)), "repeats": ", ".join(each), **first[key]}
        for key, each in repeats.items()
    ]


def skipped(view: View) -> list[Block]:
    """Return the section of the cases that were not run, nothing without one."""
    columns = [
        Column("case", only="md"),
        Column("label", only="html", hint="case"),
        Column("reason", look="wrap"),
    ]
    title, rows = view.wording("title.skipped"), skipped_rows(view)
    return [Heading(2, title, "skipped"), Table("", columns, rows, title)] if rows else []


def skipped_rows(view: View) -> list[dict[str, str]]:
    """Return the cases that were not run, with the reason."""
    return [
        {"case": entry["case"], "label": clean(entry["label"]), "reason": view.wording.tell(entry["reason"])}
        for entry in view.document["skipped"]
    ]


def notes(view: View) -> list[Block]:
    """Return the section of notes, nothing without one."""
    texts = [view.wording.tell(note) for note in view.document["notes"]]
    return [Heading(2, view.wording("title.notes"), "notes"), Items(texts)] if texts else []
