# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The document -> results.xlsx: sheets `summary`, `charts`, `tables`, `runs`, `environment` and `notes`.

Needs what spreadsheet.py needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import dropwhile, groupby
from typing import Any

from ansible.module_utils.scalebook.contracts import Group, Results, Row
from ansible.module_utils.scalebook.judge import flags
from ansible.module_utils.scalebook.pages import sheets, spreadsheet
from ansible.module_utils.scalebook.pages.blocks import Column, Table, sheet_only
from ansible.module_utils.scalebook.pages.spreadsheet import Plot
from ansible.module_utils.scalebook.pages.wording import ENGLISH
from ansible.module_utils.scalebook.report import csv_sheet, environment, first_screen, runs
from ansible.module_utils.scalebook.report.view import View, flag_sentence, kind_of_flag
from ansible.module_utils.scalebook.text import clean

NAME = "results.xlsx"


def workbook(document: Results) -> bytes:
    """Return results.xlsx; what is missing in a table is an empty cell."""
    summary = _summary(View(document))
    named_rows = _named(summary)
    named_sheets = {
        "summary": summary,
        "charts": named_rows,
        "tables": csv_sheet.sheet(document) if document["rows"] else Table(sheet_only("campaign"), []),
        "runs": sheets.flat(_runs(View(document))),
        "environment": Table(sheet_only("what where value"), environment.table(document)),
        "notes": Table(sheet_only("note"), [{"note": note} for note in _notes(document)]),
    }
    return spreadsheet.workbook(
        document["campaign"], named_sheets, {"charts": [*_bars(named_rows), *_lines(named_rows)]}
    )


def _summary(view: View) -> Table:
    """Return what people read first of each case, those of one unit together."""
    _, document = view.wording, view.document
    groups = {group["id"]: group for group in document["groups"]}
    units = {_.name("unit", row["unit"]) for row in document["rows"]}
    rate = f"{min(units)}/s" if len(units) == 1 else _("head.rate")
    columns = [
        Column("workload", _("evaluation.head-workload")),
        Column("differs", _("head.what-differs")),
        Column("label", _("head.case")),
        Column("devices", _("head.GPUs"), "count"),
        Column("each", f"{rate} {_('report.per-device', device=_('noun.GPU'))}", "readable"),
        Column("median", rate, "readable"),
        Column("efficiency", _("head.efficiency"), "percent"),
        Column("mfu", _("head.mfu"), "percent"),
        Column("joules", _("head.joules"), "readable"),
        Column("spread", _("head.spread"), "percent"),
        Column("runs", _("head.runs"), "count"),
        Column("trust", _("head.trust")),
    ]
    energy = {
        each["case"]: each["mean"] for each in document["utilisation"] if each["quantity"] == "gpu_energy"
    }
    shares = first_screen.shares(view)
    rows = [
        {
            **{key: row[key] for key in ("devices", "median", "efficiency", "unit", "group")},
            "workload": clean(f"{row['workload']} {row['model']}"),
            "differs": _differs(row, groups[row["group"]]),
            "label": clean(row["label"]),
            "each": None if row["median"] is None else row["median"] / row["devices"],
            "mfu": shares[row["case"]][0],
            "joules": energy.get(row["case"]),
            "spread": row["spread"] if row["good"] > 1 else None,
            "runs": f"{row['good']}/{row['planned']}",
            "trust": _trust(row),
        }
        for row in document["rows"]
    ]
    return Table(columns, sorted(rows, key=lambda row: row["unit"]))


def _differs(row: Row, group: Group) -> str:
    """Return what tells a group from the others, beside its workload and model."""
    words = ENGLISH.tell(group["short"]).split(" ")
    return " ".join(dropwhile(lambda word: word in (row["workload"], row["model"]), words))


def _trust(row: Row) -> str:
    """Return how far to trust a row, and which of its flags say so."""
    levels = {flag["code"]: flags.LEVELS[flag["code"]] for flag in row["flags"]}
    worst = next((level for level in ("stop", "care") if level in levels.values()), "sound")
    reasons = [kind_of_flag(code, ENGLISH) for code, level in levels.items() if level == worst]
    word = ENGLISH(f"trust.{worst}")
    return ENGLISH.about(word, ENGLISH.join(reasons)) if reasons else word


def _runs_of(lines: Sequence[Mapping[str, Any]], key: str) -> list[tuple[str, int, int]]:
    """Return each value of a key that lines in turn have, with the first and the last of these rows."""
    stretches = []
    for value, same in groupby(enumerate(lines), key=lambda pair: pair[1][key]):
        numbers = [number for number, _row in same]
        stretches.append((str(value), numbers[0], numbers[-1]))
    return stretches


def _named(summary: Table) -> Table:
    """Return what the charts show, each case with one name: what tells it from the others."""
    several = [key for key in ("workload", "differs") if len({row[key] for row in summary.rows}) > 1]
    rows = []
    for row in summary.rows:
        series = " ".join(filter(None, (row[key] for key in several)))
        rows.append({**row, "series": series, "name": f"{series} {row['label']}".strip()})
    columns = [column for column in summary.columns if column.key in ("devices", "each", "efficiency")]
    return Table([Column("name", ENGLISH("head.case")), *columns], rows)


def _bars(charted: Table) -> list[Plot]:
    """Return a chart of the rates of a device for each unit."""
    plots = []
    for name, first, last in _runs_of(charted.rows, "unit"):
        unit = ENGLISH.name("unit", name)
        title = ENGLISH("report.rate-of-unit", unit=unit)
        plots.append(Plot(title, "name", "each", [(unit, first, last)], bars=True))
    return plots


def _lines(charted: Table) -> list[Plot]:
    """Return the chart of efficiency over devices, a line for each group of cases that has one."""
    lines = []
    for _id, first, last in _runs_of(charted.rows, "group"):
        rows = charted.rows[first : last + 1]
        if len({row["devices"] for row in rows if row["efficiency"] is not None}) > 1:
            lines.append((rows[0]["series"] or rows[0]["workload"], first, last))
    return [Plot(ENGLISH("head.efficiency"), "devices", "efficiency", lines, bars=False)] if lines else []


def _runs(view: View) -> Table:
    """Return one row for each run of the report; one that does not count has its reason and no rate."""
    rows = [runs.cells(view, run, row) for row in view.document["rows"] for run in row["runs"]]
    for excluded in view.document["uncounted"]:
        notes = "; ".join(map(ENGLISH.tell, excluded.get("notes") or ()))
        rows.append({**excluded, "reason": ENGLISH.tell(excluded["reason"] or ""), "notes": notes})
    return Table(runs.columns(view), rows)


def _notes(document: Results) -> list[str]:
    flags = [
        f"{row['case']}: {flag['code']}: {flag_sentence(flag, ENGLISH)}"
        for row in document["rows"]
        for flag in row["flags"]
    ]
    skipped = [f"{entry['case']}: skipped: {ENGLISH.tell(entry['reason'])}" for entry in document["skipped"]]
    diagnoses = [f"{entry['case']}: {ENGLISH.tell(entry['message'])}" for entry in document["bottlenecks"]]
    return [*map(ENGLISH.tell, document["notes"]), *flags, *skipped, *diagnoses]
