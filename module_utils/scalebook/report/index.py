# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""All campaigns below a directory -> index.html and index.json: each case over time, and its regressions.

Only results.json of each report is read.  A case is compared with the same case of the campaign before it on
the same hardware, by the tests of baseline.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, TypedDict
from urllib.parse import quote

from ansible.module_utils.scalebook import hardware
from ansible.module_utils.scalebook.contracts import Row
from ansible.module_utils.scalebook.files import read_small
from ansible.module_utils.scalebook.json_file import decode
from ansible.module_utils.scalebook.judge import baseline
from ansible.module_utils.scalebook.pages import html, html_page, wording
from ansible.module_utils.scalebook.pages.blocks import (
    Block,
    Column,
    Heading,
    Item,
    Items,
    Paragraph,
    Table,
    Tag,
)
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.text import clean
from ansible.module_utils.scalebook.workload import Workloads

NOT_RECORDED = "not recorded"
SCHEMA = 1
WIDTH, HEIGHT, MARGIN = 120, 28, 3

SHOWN = ("case", "group", "label", "median")
"""What the index shows of a row besides its case."""

SCRIPTS = ("report.js", "index.js")
FILTERS = ("workloads", "hardware")
"""What index.js finds rows by."""


class Point(TypedDict):
    """One campaign's result of a case; `verdict` compares it with the point before, `n/a` for the first."""

    campaign: str
    started: str
    median: float | None
    ratio: float | None
    verdict: str
    regression: bool


class Series(TypedDict):
    """A case on one kind of hardware over time."""

    title: str
    label: str
    workload: str
    hardware: str
    unit: str
    points: list[Point]


class Entry(TypedDict):
    """A campaign; `report` is the path of its page below the directory of the index."""

    campaign: str
    started: str
    report: str
    workloads: list[str]
    hardware: str
    good: int
    planned: int
    regressions: int


class Index(TypedDict):
    """The content of index.json; `unread` are sentences about reports that cannot be read."""

    schema: int
    campaigns: list[Entry]
    series: list[Series]
    unread: list[str]


Report = tuple[Entry, list[Row], list[str], dict[str, str]]
"""A report that was read: its rows, the kind of hardware of each, and the titles of its groups."""


def build(top: Path, limit: float = baseline.LIMIT, declared: Workloads | None = None) -> Index:
    """Return the index of the campaigns below `top`, the newest first; a slowdown from `limit` on counts.

    `declared` are the declarations of the workloads by name.
    """
    reports, unread = _read_all(top)
    series: dict[tuple[str, str], Series] = {}
    before: dict[tuple[str, str], Row] = {}
    for entry, rows, kinds, titles in reports:
        keys = [(kind, baseline.key_of(row, declared)) for kind, row in zip(kinds, rows, strict=True)]
        # Without a date there is no campaign before, and unknown hardware is not the same hardware.
        known = [key for key in keys if entry["started"] and key[0] != NOT_RECORDED]
        earlier = [before[key] for key in known if key in before]
        compared = baseline.compare(rows, earlier, limit, declared)["rows"] if earlier else []
        of_case = {each["case"]: each for each in compared}
        entry["regressions"] = sum(each["regression"] for each in compared)
        for key, row in zip(keys, rows, strict=True):
            line = series.setdefault(key, _series(row, key[0], titles))
            line["points"].append(_point(entry, row, of_case.get(row["case"], {})))
            if row["runs"]:
                before[key] = row
    campaigns = sorted((entry for entry, *_ in reports), key=lambda each: each["started"], reverse=True)
    lines = sorted(
        series.values(),
        key=lambda each: (
            not each["points"][-1]["regression"],
            each["workload"],
            each["hardware"],
            each["title"],
        ),
    )
    return {"schema": SCHEMA, "campaigns": campaigns, "series": lines, "unread": unread}


def _read_all(top: Path) -> tuple[list[Report], list[str]]:
    """Return the reports in order of time, and what is to say of those that cannot be read."""
    reports: list[Report] = []
    unread: list[str] = []
    for path in sorted(top.glob("*/report/results.json")):
        name = path.parents[1].name
        try:
            reports.append(_read(name, path))
        except (OSError, ValueError) as exc:
            unread.append(clean(f"{name}: {exc}"))
        except (KeyError, TypeError, AttributeError) as exc:
            unread.append(clean(f"{name}: {type(exc).__name__}: {exc}"))
    return sorted(reports, key=lambda each: (each[0]["started"], each[0]["campaign"])), unread


def _read(name: str, path: Path) -> Report:
    document = decode(read_small(path))
    rows = baseline.check(document)
    lacking = [key for row in rows for key in SHOWN if key not in row]
    if lacking:
        raise ValueError(f"a row has no {lacking[0]}")
    entries = document.get("hardware") or ()
    kinds = [hardware.kind(entries, row) or NOT_RECORDED for row in rows]
    return _entry(name, document), rows, kinds, {each["id"]: each["title"] for each in document["groups"]}


def files(index: Index, templates: str, language: str = "en") -> dict[str, str]:
    """Return file name -> text of index.html, in that language, and index.json."""
    _ = wording.Wording(language, for_people=True)
    workloads = sorted({name for each in index["campaigns"] for name in each["workloads"]})
    machines = sorted({model for each in index["campaigns"] for model in models(each["hardware"])})
    choices = [
        ("workloads", _("index.workload"), [(name, name) for name in workloads]),
        ("hardware", _("index.hardware"), [(model, _named(model, _)) for model in machines]),
    ]
    blocks = [*_cases(index["series"], _), *_campaigns(index["campaigns"], _)]
    if index["unread"]:
        blocks += [Heading(2, _("index.unread"), "unread"), Items(index["unread"])]
    frame = {"title": _("index.title"), "kicker": _("index.kicker"), "footer": _("index.unrounded")}
    page = html.page(blocks, _head(index, _), _, templates, SCRIPTS, choices=choices, **frame)
    return {"index.html": page, "index.json": json.dumps(index, indent=1) + "\n"}


def _head(index: Index, wording: Wording) -> list[Block]:
    _ = wording
    counts = [_.count(len(index["campaigns"]), "campaign"), _.count(len(index["series"]), "case")]
    slower = sum(each["points"][-1]["regression"] for each in index["series"])
    text = _("index.slower", cases=_.count(slower, "case"))
    verdict = Tag(text, "incomplete") if slower else Item(_("index.no-regression"))
    return [
        Paragraph(_.join(counts), "lead"),
        Paragraph("", "verdict", parts=[verdict, " ", _("index.compared")]),
    ]


def _cases(series: Sequence[Series], wording: Wording) -> list[Block]:
    """Return the table of every case over time."""
    _ = wording
    columns = [
        Column("case", look="tags wraps"),
        Column("kind", look="tags wraps"),
        Column("drawn", missing="not measured"),
        Column("campaigns", kind="count"),
        Column("median", _("index.latest"), "rate", "not measured", look="main", soft="unit"),
        Column("ratio", _("index.gain"), "gain", "–"),
        Column("verdict", kind="tags"),
        Column("campaign", _("index.latest-campaign"), look="tags wraps", href="report"),
    ]
    rows = [
        {
            **_row(last["campaign"], each["hardware"], [each["workload"]], _),
            "case": each["title"],
            "drawn": sparkline(each["points"], _),
            "campaigns": len(each["points"]),
            "median": last["median"] or None,
            "unit": f"{_.name('unit', each['unit'])}/s" if last["median"] else "",
            "ratio": last["ratio"] or None,
            "verdict": [Tag(_("index.regression"), "incomplete")]
            if last["regression"]
            else (_.name("verdict", last["verdict"]) if last["ratio"] else "–"),
        }
        for each in series
        for last in each["points"][-1:]
    ]
    return _section("cases", columns, rows, _, Paragraph(_("index.line"), "soft"))


def _campaigns(campaigns: Sequence[Entry], wording: Wording) -> list[Block]:
    """Return the table of all campaigns."""
    _ = wording
    columns = [
        Column("campaign", look="tags wraps", href="report"),
        Column("started"),
        Column("names"),
        Column("kind", look="tags wraps"),
        Column("good", kind="count"),
        Column("regressions", kind="tags"),
    ]
    rows = [
        {
            **_row(each["campaign"], each["hardware"], each["workloads"], _),
            "started": _.moment(each["started"]) or _("report.not-recorded"),
            "names": _.join(each["workloads"]),
            "good": f"{each['good']}/{each['planned']}",
            "regressions": [Tag(str(each["regressions"]), "incomplete")] if each["regressions"] else "0",
        }
        for each in campaigns
    ]
    return _section("campaigns", columns, rows, _)


def _row(campaign: str, kind: str, workloads: Sequence[str], wording: Wording) -> dict[str, Any]:
    """Return the cells of both tables, and what FILTERS find."""
    return {
        "campaign": campaign,
        "report": quote(f"{campaign}/report/report.html"),
        "kind": _named(kind, wording),
        "hardware": "|".join(models(kind)),
        "workloads": "|".join(workloads),
    }


def _section(
    name: str, columns: Sequence[Column], lines: Sequence[Mapping[str, Any]], wording: Wording, *about: Block
) -> list[Block]:
    title = wording(f"index.{name}")
    return [Heading(2, title, name), *about, Table("", columns, lines, title, filters=FILTERS)]


def _named(kind: str, wording: Wording) -> str:
    return wording("report.not-recorded") if kind == NOT_RECORDED else kind


def models(kind: str) -> list[str]:
    """Return the models of GPUs and processors in the text of a kind of hardware, for the filter."""
    return [re.sub(r"^\d+ × |[,;] .*", "", part) for part in kind.split(" and ")]


def sparkline(points: Iterable[Point], wording: Wording) -> str | None:
    """Return the rates from the oldest to the newest as a line with its regressions, SVG; None without one.

    The lowest rate is 0 or less than half of the highest, never closer: small scatter must not look big.
    """
    points = list(points)
    measured = [point for point in points if point["median"]]
    rates = [point["median"] or 0.0 for point in measured]
    if not rates:
        return None
    top, bottom = max(rates), min(min(rates), max(rates) / 2)
    step = (WIDTH - 2 * MARGIN) / max(len(rates) - 1, 1)
    placed = [
        (
            round(MARGIN + index * step, 1),
            round(MARGIN + (top - rate) / (top - bottom) * (HEIGHT - 2 * MARGIN), 1),
        )
        for index, rate in enumerate(rates)
    ]
    marks = [place for place, point in zip(placed, measured, strict=True) if point["regression"]]
    circles = [("last", *placed[-1], 2), *(("mark", x, y, 3) for x, y in marks)]
    label = escape(wording("index.drawn", count=len(points), slower=len(marks)))
    return html_page.markup(  # type: ignore[no-any-return]
        f'<svg class="sparkline" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">'
        f'<polyline points="{" ".join(f"{x},{y}" for x, y in placed)}"/>'
        + "".join(f'<circle class="{name}" cx="{x}" cy="{y}" r="{r}"/>' for name, x, y, r in circles)
        + "</svg>"
    )


def _entry(name: str, document: Mapping[str, Any]) -> Entry:
    counts = document["counts"]
    return {
        "campaign": clean(name),
        "started": clean(document.get("started") or ""),
        "report": f"{name}/report/report.html",
        "workloads": sorted({clean(row.get("workload") or row.get("framework")) for row in document["rows"]}),
        "hardware": hardware.kinds(document.get("hardware") or ()) or NOT_RECORDED,
        "good": int(counts["good"]),
        "planned": int(counts["planned"]),
        "regressions": 0,
    }


def _series(row: Row, kind: str, titles: Mapping[str, str]) -> Series:
    return {
        "title": clean(f"{titles.get(row['group'], row['case'])} {row['label']}"),
        "label": clean(row["label"]),
        "workload": clean(row["workload"]),
        "hardware": kind,
        "unit": clean(row.get("unit") or "samples"),
        "points": [],
    }


def _point(entry: Entry, row: Row, compared: Mapping[str, Any]) -> Point:
    return {
        "campaign": entry["campaign"],
        "started": entry["started"],
        "median": row["median"],
        "ratio": compared.get("ratio"),
        "verdict": compared.get("verdict", "n/a"),
        "regression": compared.get("regression", False),
    }
