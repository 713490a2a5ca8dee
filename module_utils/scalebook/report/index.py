# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""All campaigns below a directory as data: what each measured, each case over time, rates by type of GPU.

Only results.json of each report is read.  A case is compared with the same case of the campaign before it on
the same hardware, by the tests of baseline.py; index_page.py makes the page.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from ansible.module_utils.scalebook import hardware
from ansible.module_utils.scalebook.contracts import (
    GROUP_FIELDS,
    Hardware,
    Message,
    Row,
    Trust,
    because,
    why_of,
)
from ansible.module_utils.scalebook.files import read_small
from ansible.module_utils.scalebook.json_file import decode
from ansible.module_utils.scalebook.judge import (
    baseline,
    comparison,
    conclusions,
    flags,
    headings,
    weak_scaling,
)
from ansible.module_utils.scalebook.judge.campaign import Baseline
from ansible.module_utils.scalebook.pages.catalogue import sentence
from ansible.module_utils.scalebook.text import clean
from ansible.module_utils.scalebook.workload import UNKNOWN, Workloads

NOT_RECORDED = "not-recorded"
"""What stands for hardware that no record has."""
SCHEMA = 4
_SETTINGS = ("workload", *headings.UNUSUAL)
MOST_COMPARED = 50  # campaigns, the newest, of which the page compares any two

SHOWN = ("case", "group", "label", "median")
"""What the index shows of a row besides its case."""


class Point(TypedDict):
    """One campaign's result of a case; `verdict` compares it with the point before, `n/a` for the first."""

    campaign: str
    report: str
    started: str
    median: float | None
    ratio: float | None
    verdict: str
    regression: bool


class Place(TypedDict):
    """What a case ran on: the model of its GPUs or processors, the GPUs of a node (0: none), their link."""

    model: str
    gpus: int
    link: str
    nodes: int
    machines: int | None


class Series(Place):
    """A case on one kind of hardware over time."""

    title: Message
    label: str
    workload: str
    hardware: list[hardware.Kind]
    unit: str
    points: list[Point]


class Best(Place):
    """The best case of a workload and model in a campaign, with its rate per device."""

    title: str
    size: str
    dtype: str
    compiler: str
    bsz: int
    devices: int
    unit: str
    rate: float
    mfu: float | None


class Entry(TypedDict):
    """A campaign; `report` is the path of its page below the directory of the index, "" without a page."""

    campaign: str
    started: str
    report: str
    workloads: list[str]
    hardware: list[hardware.Kind]
    models: list[str]
    best: list[Best]
    trust: Trust
    good: int
    planned: int
    regressions: int


class Rate(TypedDict):
    """The best usable rate per device of one case on a model of GPU, with the range of its runs."""

    model: str
    campaign: str
    rate: float
    low: float
    high: float


class Rates(TypedDict):
    """A case that several models of GPU, or of processors, measured."""

    title: Message
    unit: str
    device: str
    devices: int
    of: list[Rate]


class Index(TypedDict):
    """The content of index.json; `unread` says which reports cannot be read, and why."""

    schema: int
    campaigns: list[Entry]
    rates: list[Rates]
    series: list[Series]
    unread: list[Message]


class Report(NamedTuple):
    """A report that was read: its campaign, its rows with the kind and the model of the hardware of each."""

    entry: Entry
    measured: Baseline
    kinds: list[str]
    models: list[str]


class Reports(NamedTuple):
    """The reports in order of time, which ones cannot be read, and what workloads declare."""

    known: list[Report]
    unread: list[Message]
    declared: Workloads


def build(reports: Reports, limit: float = baseline.LIMIT) -> Index:
    """Return the index of campaigns, the newest first; a slowdown from `limit` on counts."""
    declared = reports.declared
    series: dict[tuple[str, str], Series] = {}
    before: dict[tuple[str, str], Row] = {}
    own: dict[str, list[Row]] = defaultdict(list)
    for report in reports.known:
        for row, model in zip(report.measured.rows, report.models, strict=True):
            own[model].append(row)
    titles = {model: _titles(rows, declared) for model, rows in own.items()}
    for entry, measured, kinds, models in reports.known:
        rows = measured.rows
        keys = [(kind, baseline.key_of(row, declared)) for kind, row in zip(kinds, rows, strict=True)]
        # Without a date there is no campaign before, and unknown hardware is not the same hardware.
        comparable = [key for key in keys if entry["started"] and key[0] != NOT_RECORDED]
        earlier = [before[key] for key in comparable if key in before]
        compared = baseline.compare(rows, earlier, limit, declared)["rows"] if earlier else []
        of_case = {each["case"]: each for each in compared}
        entry["regressions"] = sum(each["regression"] for each in compared)
        for key, row, model in zip(keys, rows, models, strict=True):
            place = _place(measured.hardware, row)
            used_kinds = hardware.used_kinds(measured.hardware, row)
            new_series = _series(row, titles[model][_group_key(row, declared)], used_kinds, place)
            series.setdefault(key, new_series)["points"].append(
                _point(entry, row, of_case.get(row["case"], {}))
            )
            if row["runs"]:
                before[key] = row
    campaigns = [report.entry for report in reversed(reports.known)]
    lines = sorted(
        series.values(), key=lambda each: (each["workload"], each["model"], sentence(each["title"]))
    )
    rates = _rates(reports.known, declared)
    return {
        "schema": SCHEMA,
        "campaigns": campaigns,
        "rates": rates,
        "series": lines,
        "unread": reports.unread,
    }


def comparisons(reports: Reports) -> Iterator[tuple[int, int, comparison.Comparison]]:
    """Yield how the newest campaigns compare, with their places among all: a later one and one before."""
    newest = list(reversed(reports.known))[:MOST_COMPARED]
    for place, now in enumerate(newest):
        for other, before in enumerate(newest[place + 1 :], place + 1):
            yield place, other, comparison.compare(now.measured, before.measured, reports.declared)


def read(top: Path, declared: Workloads | None = None) -> Reports:
    """Return the reports of the campaigns below `top`, or in folders there."""
    declared = declared or {}
    reports: list[Report] = []
    unread: list[Message] = []
    paths = (path for pattern in ("*", "*/*") for path in top.glob(f"{pattern}/report/results.json"))
    for path in sorted(paths):
        name = path.parents[1].relative_to(top).as_posix()
        try:
            reports.append(_read(name, path, declared))
        except (OSError, ValueError) as exc:
            unread.append(because(clean(name), why_of(exc)))
        except (KeyError, TypeError, AttributeError, ArithmeticError) as exc:
            unread.append(because(clean(name), f"{type(exc).__name__}: {exc}"))
    reports.sort(key=lambda each: (each.entry["started"], each.entry["campaign"]))
    return Reports(reports, unread, declared)


def _read(name: str, path: Path, declared: Workloads) -> Report:
    document = decode(read_small(path))
    rows = baseline.check(document)
    lacking = [key for row in rows for key in SHOWN if key not in row]
    if lacking:
        raise ValueError(f"a row has no {lacking[0]}")
    entries = document.get("hardware") or ()
    kinds = [hardware.kind(entries, row) or NOT_RECORDED for row in rows]
    models = [hardware.model(entries, row) or NOT_RECORDED for row in rows]
    measured = Baseline(
        str(path), clean(name), rows, baseline.LIMIT, entries, document.get("provenance") or {}
    )
    return Report(_entry(name, path, document, models, declared), measured, kinds, models)


def _entry(
    name: str, path: Path, document: Mapping[str, Any], models: Sequence[str], declared: Workloads
) -> Entry:
    counts, rows = document["counts"], document["rows"]
    return {
        "campaign": clean(name),
        "started": clean(document.get("started") or ""),
        "report": f"{name}/report/report.html" if path.with_name("report.html").exists() else "",
        "workloads": sorted({clean(row.get("workload") or row.get("framework")) for row in rows}),
        "hardware": hardware.kinds(document.get("hardware") or ()),
        "models": sorted(set(models)),
        "best": _best(document, declared),
        "trust": conclusions.trust(rows, document.get("hardware") or ()),
        "good": int(counts["good"]),
        "planned": int(counts["planned"]),
        "regressions": 0,
    }


def _best(document: Mapping[str, Any], declared: Workloads) -> list[Best]:
    """Return the best case of each workload and model, as the report has them."""
    shares = {each["case"]: each["mfu"] and float(each["mfu"]) for each in document.get("mfu") or ()}
    return [
        {
            **_place(document.get("hardware") or (), row),
            "title": declared.get(row["workload"], UNKNOWN).title or clean(row["workload"]),
            # ResNet-50 is one size, which its name says.
            "size": "" if row["workload"].endswith(row["model"]) else clean(row["model"]),
            "dtype": clean(row["dtype"]),
            "compiler": weak_scaling.compiler_of(row["workload"], declared) if row["xla"] else "",
            "bsz": row["bsz"],
            "devices": row["devices"],
            "unit": clean(row.get("unit") or "samples"),
            "rate": _per_device(row),
            "mfu": shares.get(row["case"]),
        }
        for row in conclusions.best(document["rows"])
    ]


def _per_device(row: Row) -> float:
    return (row["median"] or 0.0) / row["devices"]


def _group_key(row: Row, declared: Workloads) -> str:
    return baseline.key_of({**row, "nodes": 1, "gpus": 1}, declared)


def _titles(rows: Iterable[Row], declared: Workloads) -> dict[str, Message]:
    """Return what the groups of rows are called, which all differ."""
    groups: dict[str, dict[str, Any]] = {}
    for row in rows:
        key = _group_key(row, declared)
        if key not in groups:
            compiler = weak_scaling.compiler_of(row["workload"], declared)
            values = {field: baseline.value(row, field, declared) for field in GROUP_FIELDS}
            groups[key] = {**values, "compiler": compiler}
    # Which settings differ does not depend on the batch, of which there may be hundreds.
    several = list({str([group[field] for field in _SETTINGS]): group for group in groups.values()}.values())
    differences, titles = headings.Differences(several), {}
    for key, group in groups.items():
        words = headings.words_of(group, headings.USUAL)
        titles[key] = headings.named([*words, *differences.unusual(group)])
    return titles


def _rates(reports: Sequence[Report], declared: Workloads) -> list[Rates]:
    """Return the cases that several models measured: of each workload and precision the largest batch.

    Of several numbers of devices it is the smallest, where as many models measured it.
    """
    cases: dict[str, tuple[Row, dict[str, Rate]]] = {}
    for report in reports:
        for row, model in zip(report.measured.rows, report.models, strict=True):
            if model != NOT_RECORDED and flags.usable(row):
                _row, rate_of_model = cases.setdefault(baseline.key_of(row, declared), (row, {}))
                rate = _rate(row, model, report.entry["campaign"])
                rate_of_model[model] = max(
                    rate_of_model.get(model, rate), rate, key=lambda each: each["rate"]
                )
    chosen: dict[str, tuple[Row, dict[str, Rate]]] = {}
    for row, rate_of_model in sorted(cases.values(), key=_order):
        if len(rate_of_model) > 1:
            chosen.setdefault(_group_key({**row, "bsz": 1}, declared), (row, rate_of_model))
    titles = _titles([row for row, _rate_of_model in chosen.values()], declared)
    return [
        {
            "title": titles[_group_key(row, declared)],
            "unit": clean(row.get("unit") or "samples"),
            "device": "cpu" if row["device"] == "cpu" else "gpu",
            "devices": row["devices"],
            "of": [rate_of_model[model] for model in sorted(rate_of_model)],
        }
        for row, rate_of_model in chosen.values()
    ]


def _rate(row: Row, model: str, campaign: str) -> Rate:
    low, *_between, high = sorted([*weak_scaling.rates_of(row["runs"]), row["median"] or 0.0])
    devices = row["devices"]
    return {
        "model": model,
        "campaign": campaign,
        "rate": _per_device(row),
        "low": low / devices,
        "high": high / devices,
    }


def _order(case: tuple[Row, Mapping[str, Rate]]) -> tuple[Any, ...]:
    row, rate_of_model = case
    return -len(rate_of_model), -row["bsz"], row["devices"]


def _place(entries: Sequence[Hardware], row: Row) -> Place:
    return {
        "model": hardware.model(entries, row) or NOT_RECORDED,
        "gpus": 0 if row.get("device") == "cpu" else row["gpus"],
        "link": hardware.link(entries, {**row, "machines": None}),
        "nodes": row["nodes"],
        "machines": row.get("machines"),
    }


def _series(row: Row, title: Message, kinds: list[hardware.Kind], place: Place) -> Series:
    return {
        **place,
        "title": headings.named([title, clean(row["label"])]),
        "label": clean(row["label"]),
        "workload": clean(row["workload"]),
        "hardware": kinds,
        "unit": clean(row.get("unit") or "samples"),
        "points": [],
    }


def _point(entry: Entry, row: Row, compared: Mapping[str, Any]) -> Point:
    return {
        "campaign": entry["campaign"],
        "report": entry["report"],
        "started": entry["started"],
        "median": row["median"],
        "ratio": compared.get("ratio"),
        "verdict": compared.get("verdict", "n/a"),
        "regression": compared.get("regression", False),
    }
