# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The sections of single runs: their step times, those that count, and those that do not."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.scalebook.contracts import BASELINE, Row, Run, StepTimes, import_fix
from ansible.module_utils.scalebook.judge import weak_scaling
from ansible.module_utils.scalebook.pages.blocks import (
    Block,
    Column,
    Fold,
    Heading,
    Items,
    Paragraph,
    Table,
    Tag,
)
from ansible.module_utils.scalebook.report.view import View, kind_of_flag
from ansible.module_utils.scalebook.text import clean


def step_times(view: View) -> list[Block]:
    """Return the section of step times; it says so where no log has a line for each step."""
    _ = view.wording
    heading = Heading(2, _("Step times"), "steps")
    found = [row["steps"] for row in view.document["rows"] if row["steps"]]
    if not found:
        return [heading, Paragraph(_("No log has a line for each step of the window."), "soft")]
    waits = any(steps["slowest"] is not None for steps in found)
    about = _("Milliseconds for each step of the window, over all valid runs of a case.")
    columns = _step_columns(view, waits)
    alone = {row["group"]: row["steps"] for row in view.document["rows"] if row["label"] == BASELINE}
    rows = {
        group["id"]: [
            {"group": clean(group["title"]), **_step_cells(row, row["steps"], alone.get(row["group"]))}
            for row in view.rows_of(group)
            if row["steps"]
        ]
        for group in view.document["groups"]
    }
    tables = view.by_group(lambda _unit: columns, rows, "Step times of {group}")
    return [heading, Paragraph(f"{about} {_(WAITS)}" if waits else about, "soft"), *tables]


WAITS = (
    "«slowest device» is the mean of the longest of as many steps of 1n1g as the case has devices: what "
    "a step would take if devices did nothing but wait for the slowest of them. «waiting» is the part of "
    "the step by which this is longer than a step of 1n1g, «exchange and rest» the part beyond it: "
    "together they are about the efficiency that is lost."
)
"""What the columns about the slowest device mean."""


def _step_columns(view: View, waits: bool) -> list[Column]:
    _ = view.wording
    waiting = [
        Column("slowest", _("slowest device"), "seconds", "–"),
        Column("waiting", _("waiting"), "percent", "–"),
        Column("rest", _("exchange and rest"), "percent", "–"),
    ]
    return [
        Column("label", _("case")),
        Column("group", _("group"), only="md"),
        Column("mean", _("mean"), "seconds", "–", look="main"),
        *(waiting if waits else []),
        *(Column(name, name, "seconds", "–") for name in ("p50", "p95", "p99")),
        Column("max", _("max"), "seconds", "–"),
        Column("count", _("steps"), "count"),
    ]


def _step_cells(row: Row, steps: StepTimes | None, alone: StepTimes | None) -> dict[str, Any]:
    """Return the step times of a row, and where they are longer than those of 1n1g, `alone`."""
    lost = weak_scaling.lost(steps, alone) if steps and alone else None
    waiting, rest = lost or (None, None)
    return {**(steps or {}), "label": clean(row["label"]), "waiting": waiting, "rest": rest}


def valid(view: View) -> list[Block]:
    """Return the section of the runs that count."""
    _ = view.wording
    rows = {
        group["id"]: [
            {"group": clean(group["title"]), **_run_cells(view, run, row)}
            for row in view.rows_of(group)
            for run in row["runs"]
        ]
        for group in view.document["groups"]
    }

    def columns(unit: str) -> list[Column]:
        return [
            Column("label", _("case")),
            Column("group", _("group"), only="md"),
            Column("repeat", _("repeat"), "count"),
            Column("rate", _("rate"), "rate", only="md"),
            Column("rate", f"{unit}/s", "rate", only="html", look="main"),
            Column("time_source", _("time source")),
            Column("second", _("second time source"), "rate"),
            Column("differs", _("difference"), "percent"),
            Column("drift", _("drift"), "percent"),
            Column("flags", _("flags"), "tags"),
            Column("links", _("files"), "links", only="html"),
        ]

    tables = view.by_group(columns, rows, "Runs of {group}")
    summary = _("{count} valid runs", count=view.document["counts"]["good"])
    return [Heading(2, _("All valid runs"), "runs"), Fold(summary, tables)]


def _run_cells(view: View, run: Run, row: Row) -> dict[str, Any]:
    _ = view.wording
    codes = [run["steady"], "outlier" if run["repeat"] in row["outliers"] else ""]
    return {
        **run,
        "label": clean(row["label"]),
        "time_source": _(clean(run["time_source"])),
        "second": (run["second"] or {}).get("rate"),
        "flags": [Tag(kind_of_flag(code, _)) for code in codes if code],
        "links": view.linked.runs.get((row["case"], str(run["repeat"])), []),
    }


def excluded(view: View) -> list[Block]:
    """Return the section of the runs that do not count, and how to have them count where that is known."""
    _ = view.wording
    title = _("Excluded runs")
    heading = Heading(2, title, "uncounted")
    if not view.document["uncounted"]:
        return [heading, Paragraph(_("None."), "soft")]
    columns = [
        Column("case", _("case"), only="md"),
        Column("label", _("case"), only="html", soft="group", hint="case"),
        Column("repeats", _("repeat"), "count"),
        Column("status", _("status")),
        Column("reason", _("reason"), only="html", look="wrap", soft="source", lines="last_lines"),
        Column("with_source", _("reason"), only="md"),
        Column("links", _("files"), "links", only="html"),
    ]
    fix = _(fix_of_import(view))
    return [heading, Table("", columns, excluded_rows(view), title), *([Paragraph(fix)] if fix else [])]


def fix_of_import(view: View) -> str:
    """Return how to have logs count that were imported as those of another case; a campaign names its own."""
    reasons = [str(entry["reason"]) for entry in view.document["uncounted"]]
    return import_fix(reasons) if view.document["kind"] == "import" else ""


def excluded_rows(view: View) -> list[dict[str, Any]]:
    """Return the excluded runs, repeats of one case with the same reason on one line.

    The last lines and the links are those of the first of them.
    """
    short = view.short_names()
    repeats: dict[tuple[str, ...], list[str]] = {}
    first: dict[tuple[str, ...], dict[str, Any]] = {}
    for entry in view.document["uncounted"]:
        reason = view.wording.tell(entry["reason"])
        status, source = view.wording(entry["status"]), clean(entry["source"] or "")
        # A run of a search belongs to no group.
        group = short.get(entry["case"], "")
        key = (entry["case"], clean(entry["label"]), group, status, reason, source)
        repeats.setdefault(key, []).append(str(entry["repeat"]))
        last = [clean(line) for line in entry["last_lines"]]
        own = view.linked.runs.get((entry["case"], str(entry["repeat"])), [])
        with_source = f"{reason} ({source})" if source else reason
        first.setdefault(key, {"last_lines": last, "links": own, "with_source": with_source})
    names = ("case", "label", "group", "status", "reason", "source")
    return [
        {**dict(zip(names, key, strict=True)), "repeats": ", ".join(each), **first[key]}
        for key, each in repeats.items()
    ]


def skipped(view: View) -> list[Block]:
    """Return the section of the cases that were not run, nothing without one."""
    _ = view.wording
    columns = [
        Column("case", _("case"), only="md"),
        Column("label", _("case"), only="html", hint="case"),
        Column("reason", _("reason"), look="wrap"),
    ]
    title, rows = _("Skipped cases"), skipped_rows(view)
    return [Heading(2, title, "skipped"), Table("", columns, rows, title)] if rows else []


def skipped_rows(view: View) -> list[dict[str, str]]:
    """Return the cases that were not run, with the reason."""
    return [
        {
            "case": entry["case"],
            "label": clean(entry["label"]),
            "reason": view.wording.tell(entry["reason"]),
        }
        for entry in view.document["skipped"]
    ]


def notes(view: View) -> list[Block]:
    """Return the section of notes, nothing without one."""
    said = [view.wording.tell(note) for note in view.document["notes"]]
    return [Heading(2, view.wording("Notes"), "notes"), Items(said)] if said else []
