# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Runs -> rows, speedups and marks.

A row is a case; rows that may be divided by each other form a group.  Only runs of status ok count,
and nothing is averaged over fewer of them in silence: the row says how many of how many.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook import dlperf, stats
from ansible.module_utils.scalebook.throughput import DIFFER

# Cases that differ in any of these did different work, or did it on something else.
GROUP_FIELDS = (
    "framework",
    "model",
    "device",
    "dtype",
    "xla",
    "bsz",
    "accumulation",
    "warmup",
    "window",
    "epoch_samples",
    "settings",
)

ENOUGH = 3  # good repeats below which a figure is provisional
SUPERLINEAR = 1.02  # speedup over devices that asks for an explanation
UNSTEADY_BASELINE = 0.05  # spread of 1n1g from which it is the first suspect

Row = dict[str, Any]
Mark = dict[str, str]


def tabulate(
    cases: Sequence[Mapping[str, Any]],
    runs: Iterable[Mapping[str, Any]],
    planned: Sequence[Mapping[str, Any]] = (),
) -> dict[str, list[Row]]:
    """Return `{"groups", "rows", "uncounted"}` of a campaign.

    `cases` are contract cases, `runs` come from runs.digest, `planned` is the plan's list of
    `{"case", "repeat"}`: a planned run without a record counts as missing.  Rows are ordered by
    group, then devices; a group lists the names of its rows.
    """
    by_case: dict[str, list[Mapping[str, Any]]] = {case["name"]: [] for case in cases}
    for run in runs:
        by_case[run["case"]].append(run)
    expected: dict[str, set[int]] = {}
    for entry in planned:
        expected.setdefault(entry["case"], set()).add(entry["repeat"])

    members: dict[str, list[Mapping[str, Any]]] = {}
    for case in cases:
        members.setdefault(_key(case), []).append(case)

    groups, rows, uncounted = [], [], []
    for index, key in enumerate(sorted(members, key=lambda key: _order(members[key][0])), 1):
        own = sorted(members[key], key=lambda case: (case["devices"], case["nodes"]))
        table = [_row(case, by_case[case["name"]], expected.get(case["name"], set())) for case in own]
        _divide(table)
        groups.append(
            {
                "id": f"g{index}",
                **{field: work(own[0], field) for field in GROUP_FIELDS},
                "unit": table[0]["unit"],
                "rows": [row["case"] for row in table],
            }
        )
        for row in table:
            row["group"] = f"g{index}"
            uncounted += _uncounted(row, by_case[row["case"]], expected.get(row["case"], set()))
        rows += table
    name_groups(groups)
    return {"groups": groups, "rows": rows, "uncounted": uncounted}


def name_groups(groups: Sequence[Row]) -> None:
    """Give every group its `title` (all that identifies it) and `short` (what tells it from the others)."""
    for group in groups:
        group["title"] = " ".join(
            filter(
                None, (word(group, field) for field in GROUP_FIELDS if _says_something(group, field, groups))
            )
        )
    varying = [field for field in GROUP_FIELDS if len({_value(group, field) for group in groups}) > 1]
    for group in groups:
        words = filter(None, (word(group, field, plain=False) for field in varying))
        group["short"] = " ".join(words) or group["title"]


def _value(group: Mapping[str, Any], field: str) -> str:
    return json.dumps(group.get(field), sort_keys=True, default=str)


def _says_something(group: Mapping[str, Any], field: str, groups: Sequence[Row]) -> bool:
    """Return whether a heading needs `field`: always the usual ones, the rest where groups differ in it."""
    usual = ("framework", "model", "device", "dtype", "xla", "bsz", "accumulation")
    return field in usual or len({_value(other, field) for other in groups}) > 1


def word(group: Mapping[str, Any], field: str, plain: bool = True) -> str:
    """Return how a heading names `field` of `group`; `plain` leaves out what is the rule."""
    value = group.get(field)
    if field == "xla":
        return "XLA" if value else ("" if plain else "no XLA")
    if field == "bsz":
        return f"b{value}"
    if field == "accumulation":
        return "" if plain and value == 1 else f"accumulation {value}"
    if field == "device":
        return "on CPU" if value == "cpu" else ("" if plain else f"on {str(value or 'unknown').upper()}")
    if field in ("warmup", "window", "epoch_samples"):
        return f"{field.replace('_', ' ')} {value}" if value is not None else ""
    if field == "settings":
        return " ".join(f"{name}={each}" for name, each in sorted((value or {}).items()))
    return str(value)


def _key(case: Mapping[str, Any]) -> str:
    return json.dumps([work(case, field) for field in GROUP_FIELDS], sort_keys=True, default=str)


def work(case: Mapping[str, Any], field: str) -> Any:
    """Return `field` of a case as its group has it: the steps of an epoch follow from the batch."""
    return None if field in ("warmup", "window") and case.get("epoch_samples") else case.get(field)


def _order(case: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the order of groups: as DLPerf, precision before batch, numbers as numbers."""
    return (
        case["framework"],
        case["model"],
        str(case.get("device")),
        ("fp32", "fp16", "bf16").index(case["dtype"]) if case["dtype"] in ("fp32", "fp16", "bf16") else 9,
        case["dtype"],
        case["xla"],
        case["bsz"],
        case["accumulation"],
        _key(case),
    )


def _row(case: Mapping[str, Any], runs: Sequence[Mapping[str, Any]], expected: set[int]) -> Row:
    good = sorted((run for run in runs if run["rate"] is not None), key=lambda run: int(run["repeat"]))
    rates = [float(run["rate"]) for run in good]
    planned = len(expected | {run["repeat"] for run in runs})
    row: Row = {
        "case": case["name"],
        **{field: work(case, field) for field in ("label", *GROUP_FIELDS, "nodes", "gpus", "devices")},
        "unit": next((run["unit"] for run in runs), "samples"),
        "status": "ok" if len(good) >= ENOUGH else ("provisional" if good else "incomplete"),
        "good": len(good),
        "planned": planned,
        "runs": [
            {
                key: run[key]
                for key in (
                    "repeat",
                    "rate",
                    "seconds",
                    "reading",
                    "second",
                    "differs",
                    "drift",
                    "steady",
                    "notes",
                )
            }
            | ({"figures": run["figures"]} if run.get("figures") else {})
            for run in good
        ],
        "outliers": [],
        "interval": None,
        "steps": None,
        "speedup": None,
        "speedup_interval": None,
        "efficiency": None,
        "dlperf": None,
        "marks": [],
        **dict.fromkeys(("median", "mean", "min", "max", "cv", "spread")),
    }
    if rates:
        row.update(stats.summary(rates))
        row["outliers"] = [good[index]["repeat"] for index in stats.outliers(rates)]
        pooled = [seconds for run in good for seconds in run["steps"]]
        row["steps"] = {**stats.percentiles(pooled), "count": len(pooled)} if pooled else None
    row["marks"] = _run_marks(row)
    return row


def _divide(table: Sequence[Row]) -> None:
    """Give each row of one group its intervals, its speedup over 1n1g, and the marks that follow."""
    base = next((row for row in table if row["label"] == dlperf.BASELINE and row["good"]), None)
    base_rates = [run["rate"] for run in base["runs"]] if base else []
    # The draws of a case serve its own interval and, with those of the baseline, that of its speedup.
    # One repeat has no interval: resampling it would claim a certainty of zero width.
    draws = {
        row["case"]: stats.bootstrap_medians([run["rate"] for run in row["runs"]], row["case"])
        for row in table
        if row["good"] > 1
    }
    for row in table:
        if not row["good"]:
            continue
        rates = [run["rate"] for run in row["runs"]]
        row["dlperf"] = dlperf.figures(rates, row["bsz"], base_rates)
        if row["case"] in draws:
            row["interval"] = list(stats.interval(draws[row["case"]]))
        if base is None:
            row["marks"].append(mark("no-baseline", "speedup n/a: no good run of 1n1g in this table"))
            continue
        row["speedup"] = row["median"] / base["median"]
        row["efficiency"] = row["speedup"] / row["devices"]
        if row is base:
            row["speedup_interval"] = [1.0, 1.0]
        elif row["case"] in draws and base["case"] in draws:
            row["speedup_interval"] = list(stats.ratio_interval(draws[row["case"]], draws[base["case"]]))
        if row["speedup"] > row["devices"] * SUPERLINEAR:
            row["marks"].append(mark("superlinear", _superlinear(row, base)))
        elif base["status"] == "provisional" and row is not base:
            row["marks"].append(
                mark("baseline-provisional", f"speedup over a provisional 1n1g ({_repeats(base['good'])})")
            )


def _superlinear(row: Row, base: Row) -> str:
    """Return the sentence about a speedup that linear scaling cannot give, likeliest cause first."""
    said = f"speedup {row['speedup']:.2f} on {row['devices']} devices is more than linear; likely: "
    causes = []
    if base["good"] < ENOUGH:
        causes.append(f"baseline too slow (1n1g rests on {_repeats(base['good'])})")
    elif base["spread"] is not None and base["spread"] > UNSTEADY_BASELINE:
        causes.append(f"baseline too slow (the repeats of 1n1g are {100 * base['spread']:.1f} % apart)")
    elif any(run["steady"] for run in base["runs"]):
        causes.append("baseline too slow (1n1g was not steady)")
    if row["accumulation"] != 1:
        causes.append("gradient accumulation: the window holds few all-reduces or none")
    if not causes:
        causes.append(
            "baseline too slow (1n1g throttled or sharing its machine), or gradient accumulation that "
            "differs with the number of devices"
        )
    return said + "; ".join(causes)


def _run_marks(row: Row) -> list[Mark]:
    """Return the marks that follow from the runs of one case."""
    if not row["good"]:
        return [mark("incomplete", f"INCOMPLETE: 0 of {_repeats(row['planned'])} good")]
    marks = []
    if row["good"] < row["planned"]:
        marks.append(mark("runs", f"{row['good']}/{row['planned']} repeats good"))
    if row["status"] == "provisional":
        marks.append(mark("provisional", f"provisional: {row['good']} good, {ENOUGH} are needed"))
    if row["outliers"]:
        names = ", ".join(map(str, row["outliers"]))
        marks.append(mark("outlier", f"outlier: repeat {names} (counted, the median bears it)"))
    apart = [run for run in row["runs"] if run["differs"] is not None and abs(run["differs"]) > DIFFER]
    if apart:
        worst = max(abs(run["differs"]) for run in apart)
        names = ", ".join(str(run["repeat"]) for run in apart)
        marks.append(
            mark("readings-differ", f"two readings differ by up to {100 * worst:.1f} % (repeat {names})")
        )
    # A single run off is noise or an outlier; half of them and more is how the case behaves.
    for verdict, count in sorted(Counter(run["steady"] for run in row["runs"] if run["steady"]).items()):
        if 2 * count >= row["good"]:
            marks.append(mark(verdict.replace(" ", "-"), f"{verdict} ({count} of {_repeats(row['good'])})"))
    return marks


def _uncounted(row: Row, runs: Sequence[Mapping[str, Any]], expected: set[int]) -> list[Row]:
    """Return the runs of a case that do not count, the planned ones without a record included."""
    entries = [
        {key: run[key] for key in ("case", "label", "repeat", "status", "reason", "source", "last_lines")}
        for run in runs
        if run["rate"] is None
    ]
    for repeat in expected - {run["repeat"] for run in runs}:
        entries.append(
            {
                "case": row["case"],
                "label": row["label"],
                "repeat": repeat,
                "status": "missing",
                "reason": "planned, but there is no readable result.json",
                "source": None,
                "last_lines": [],
            }
        )
    return sorted(entries, key=lambda entry: entry["repeat"])


def mark(code: str, text: str) -> Mark:
    """Return a mark: a word for machines and a sentence for people."""
    return {"code": code, "text": text}


def _repeats(count: int) -> str:
    return "1 repeat" if count == 1 else f"{count} repeats"
