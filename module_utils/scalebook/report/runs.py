# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The sections of the runs: those that count, excluded ones and skipped cases; and the notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import Message, Row, Run, as_message, import_fix
from ansible.module_utils.scalebook.network import described
from ansible.module_utils.scalebook.pages.blocks import (
    Block,
    Column,
    Heading,
    Items,
    Paragraph,
    Table,
    Tag,
    sheet_only,
    titled,
)
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.report.view import View, kind_of_flag
from ansible.module_utils.scalebook.text import clean


def section(view: View) -> list[Block]:
    """Return the section of the runs that count."""
    rows = [cells(view, run, row) for row in view.document["rows"] for run in row["runs"]]
    return titled(view.wording("title.runs"), "runs", Table(columns(view), rows)) if rows else []


def columns(view: View) -> list[Column]:
    """Return the columns of runs; the sheet has those that do not count too."""
    return [
        *sheet_only("case label"),
        *(column._replace(only="md html") for column in view.case_columns()),
        Column("repeat", kind="count", sheet="repeat", hint="log"),
        *sheet_only("status"),
        Column("rate", kind="rate", look="main", sheet="rate"),
        Column("per_second", view.wording("head.unit"), only="md html"),
        *sheet_only("unit"),
        *sheet_only("seconds", "seconds"),
        Column("time_source", sheet="time_source"),
        *sheet_only("second_source"),
        Column("second", kind="rate", sheet="second_rate"),
        Column("differs", kind="percent", sheet="differs"),
        Column("drift", kind="percent", sheet="drift"),
        *([Column("network", look="wraps", sheet="network")] if _networks(view) else []),
        Column("log", only="md"),
        *sheet_only("log started reason notes"),
        Column("flags", kind="tags"),
    ]


def _networks(view: View) -> bool:
    """Return whether a run says what connected its GPUs."""
    return any("nccl" in run for row in view.document["rows"] for run in row["runs"])


def cells(view: View, run: Run, row: Row) -> dict[str, Any]:
    """Return the cells of a run that counts."""
    _ = view.wording
    codes = [run["steady"], "outlier" if run["repeat"] in row["outliers"] else ""]
    second = run["second"] or {}
    return {
        **run,
        **view.case_cells(row),
        "status": "ok",
        "unit": row["unit"],
        "per_second": _.per_second(row["unit"]),
        "log": clean(run["log"]),
        "time_source": _.name("source", run["time_source"]),
        "second": second.get("rate"),
        "second_source": second.get("time_source"),
        "network": clean(_.tell(described(run["nccl"]))) if "nccl" in run else "",
        "notes": "; ".join(map(_.tell, run.get("notes") or ())),
        "flags": [Tag(kind_of_flag(code, _)) for code in codes if code],
    }


def excluded(view: View) -> list[Block]:
    """Return the section of the runs that do not count, and how to have them count where that is known."""
    if not view.document["uncounted"]:
        return []
    _ = view.wording
    columns = [
        Column("case", only="md"),
        Column("label", only="html", soft="group", hint="case"),
        Column("repeats", _("head.repeat"), "count"),
        Column("status"),
        Column("reason", only="html", look="wrap", soft="source", lines="last_lines"),
        Column("with_source", _("head.reason"), only="md"),
    ]
    section = titled(_("title.uncounted"), "uncounted", Table(columns, excluded_rows(view)))
    fix = fix_of_import(view)
    return [*section, *([Paragraph(fix)] if fix else [])]


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


def skipped(entries: Sequence[Mapping[str, Any]], wording: Wording) -> list[Block]:
    """Return the section of the cases that were not run, nothing without one."""
    columns = [
        Column("case", only="md"),
        Column("label", only="html", hint="case"),
        Column("reason", look="wrap"),
    ]
    rows = [
        {"case": entry["case"], "label": clean(entry["label"]), "reason": wording.tell(entry["reason"])}
        for entry in entries
    ]
    return titled(wording("title.skipped"), "skipped", Table(columns, rows)) if rows else []


def notes(messages: Sequence[Message], wording: Wording) -> list[Block]:
    """Return the section of notes, nothing without one."""
    texts = [*map(wording.tell, messages)]
    return [Heading(2, wording("title.notes"), "notes"), Items(texts)] if texts else []
