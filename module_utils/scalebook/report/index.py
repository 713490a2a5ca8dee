# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""All campaigns below a directory -> index.html and index.json: each case over time, and its regressions.

Only results.json of each report is read.  A case is compared with the same case of the campaign before it on
the same hardware, by the tests of baseline.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypedDict
from urllib.parse import quote

from ansible.module_utils.scalebook import hardware
from ansible.module_utils.scalebook.contracts import Row
from ansible.module_utils.scalebook.files import read_small
from ansible.module_utils.scalebook.json_file import decode
from ansible.module_utils.scalebook.judge import baseline
from ansible.module_utils.scalebook.pages import wording
from ansible.module_utils.scalebook.pages.html_page import framed
from ansible.module_utils.scalebook.text import clean
from ansible.module_utils.scalebook.workload import Workloads

NOT_RECORDED = "not recorded"
SCHEMA = 1
WIDTH, HEIGHT, MARGIN = 120, 28, 3

SHOWN = ("case", "group", "label", "median")
"""What the index shows of a row besides its case."""

SCRIPTS = ("report.js", "index.js")


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


def build(top: Path, limit: float = baseline.LIMIT, declared: Workloads | None = None) -> Index:
    """Return the index of the campaigns below `top`, the newest first; a slowdown from `limit` on counts.

    `declared` are the declarations of the workloads by name.
    """
    read: list[tuple[Entry, list[Row], list[str], dict[str, str]]] = []
    unread: list[str] = []
    for path in sorted(top.glob("*/report/results.json")):
        name = path.parents[1].name
        try:
            document = decode(read_small(path))
            rows = baseline.check(document)
            lacking = [key for row in rows for key in SHOWN if key not in row]
            if lacking:
                raise ValueError(f"a row has no {lacking[0]}")
            titles = {group["id"]: group["title"] for group in document["groups"]}
            entries = document.get("hardware") or ()
            kinds = [hardware.kind(entries, row) or NOT_RECORDED for row in rows]
            read.append((_entry(name, document), rows, kinds, titles))
        except (OSError, ValueError) as exc:
            unread.append(clean(f"{name}: {exc}"))
        except (KeyError, TypeError, AttributeError) as exc:
            unread.append(clean(f"{name}: {type(exc).__name__}: {exc}"))
    series: dict[tuple[str, str], Series] = {}
    before: dict[tuple[str, str], Row] = {}
    read.sort(key=lambda each: (each[0]["started"], each[0]["campaign"]))
    for entry, rows, kinds, titles in read:
        keys = [(kind, baseline.key_of(row, declared)) for kind, row in zip(kinds, rows, strict=True)]
        # Without a date there is no campaign before, and unknown hardware is not the same hardware.
        known = [key for key in keys if entry["started"] and key[0] != NOT_RECORDED]
        earlier = [before[key] for key in known if key in before]
        compared = baseline.compare(rows, earlier, limit, declared)["rows"] if earlier else []
        found = {each["case"]: each for each in compared}
        entry["regressions"] = sum(each["regression"] for each in compared)
        for key, row in zip(keys, rows, strict=True):
            line = series.setdefault(key, _series(row, key[0], titles))
            line["points"].append(_point(entry, row, found.get(row["case"], {})))
            if row["runs"]:
                before[key] = row
    campaigns = sorted((entry for entry, *_ in read), key=lambda each: each["started"], reverse=True)
    lines = sorted(series.values(), key=_place)
    return {"schema": SCHEMA, "campaigns": campaigns, "series": lines, "unread": unread}


def files(index: Index, templates: str, language: str = "en") -> dict[str, str]:
    """Return file name -> text of index.html, in that language, and index.json."""
    _ = people = wording.Wording(wording.load(templates, language), for_people=True)
    campaigns, cases = len(index["campaigns"]), len(index["series"])
    slower = sum(each["points"][-1]["regression"] for each in index["series"])
    shown = {
        "index": index,
        "title": _("All campaigns"),
        "summary": people.count(campaigns, "campaign") + _(", ") + people.count(cases, "case"),
        "slower": _("{cases} slower than before", cases=people.count(slower, "case")) if slower else "",
        "workloads": sorted({name for each in index["campaigns"] for name in each["workloads"]}),
        "hardware": sorted({model for each in index["campaigns"] for model in models(each["hardware"])}),
        "models": models,
        "number": people.number,
        "moment": people.moment,
        "sparkline": sparkline,
        "link": lambda name: quote(f"{name}/report/report.html"),
    }
    html = framed("index.html.j2", templates, people, people("en"), shown, SCRIPTS)
    return {"index.html": html, "index.json": json.dumps(index, indent=1) + "\n"}


def models(kind: str) -> list[str]:
    """Return the models of GPUs and processors in the text of a kind of hardware, for the filter."""
    return [re.sub(r"^\d+ × |[,;] .*", "", part) for part in kind.split(" and ")]


def sparkline(points: Iterable[Point]) -> dict[str, Any]:
    """Return `{"line", "marks"}`: the points of a polyline from the oldest to the newest, and regressions.

    The lowest rate is 0 or less than half of the highest, never closer: small scatter must not look big.
    """
    measured = [point for point in points if point["median"]]
    rates = [point["median"] or 0.0 for point in measured]
    if not rates:
        return {"line": "", "marks": []}
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
    return {"line": " ".join(f"{x},{y}" for x, y in placed), "marks": marks, "last": placed[-1]}


def _place(series: Series) -> tuple[bool, str, str, str]:
    """Return what series are sorted by: those whose latest campaign is a regression stand first."""
    return (
        not series["points"][-1]["regression"],
        series["workload"],
        series["hardware"],
        series["title"],
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
