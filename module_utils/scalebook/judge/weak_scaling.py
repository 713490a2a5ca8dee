# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Runs -> rows and speedups.

A row is a case; rows that may be divided by each other form a group.  Only runs of status ok count,
and every row says how many of its planned runs that are.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict, cast

from ansible.module_utils.scalebook import stats
from ansible.module_utils.scalebook.contracts import (
    BASELINE,
    ENOUGH_RUNS,
    GROUP_FIELDS,
    Case,
    Group,
    PlannedRun,
    Row,
    Run,
    StepTimes,
    global_batch,
    message,
)
from ansible.module_utils.scalebook.grouping import grouped
from ansible.module_utils.scalebook.judge import dlperf_format, flags, headings
from ansible.module_utils.scalebook.workload import UNKNOWN, Workload, Workloads

PRECISIONS = ("fp32", "fp16", "bf16", "fp8")


class Tables(TypedDict):
    """The tables of a campaign: groups, their rows, and the runs that do not count."""

    groups: list[Group]
    rows: list[Row]
    uncounted: list[dict[str, Any]]


def tabulate(
    cases: Sequence[Case],
    runs: Iterable[Run],
    planned: Sequence[PlannedRun] = (),
    workloads: Workloads | None = None,
) -> Tables:
    """Return the tables of a campaign.

    `cases` are those of the plan and of records, `planned` are the plan's runs: one without a record counts
    as missing.  `workloads` give groups their family, title and compiler, and say whether rows have a
    latency.  Rows are ordered by group, then devices.
    """
    workloads = workloads or {}
    by_case: dict[str, list[Run]] = {case["name"]: [] for case in cases}
    for run in runs:
        by_case[run["case"]].append(run)
    expected: dict[str, set[int]] = {case["name"]: set() for case in cases}
    for entry in planned:
        expected.setdefault(entry["case"], set()).add(entry["repeat"])

    def order(own: Sequence[Case]) -> tuple[Any, ...]:
        return (family_of(own[0]["workload"], workloads), *_order(own[0]))

    tables: Tables = {"groups": [], "rows": [], "uncounted": []}
    for index, own in enumerate(sorted(grouped(cases, _key).values(), key=order), 1):
        own.sort(key=lambda case: (case["devices"], case["nodes"]))
        table = [_row(case, by_case[case["name"]], expected[case["name"]]) for case in own]
        _divide(table)
        _wait(table, by_case)
        group = _group(f"g{index}", own[0], table, workloads)
        tables["groups"].append(group)
        for row in table:
            row["group"] = group["id"]
            _add_what_is_declared(row, workloads.get(group["workload"], UNKNOWN))
            tables["uncounted"] += _uncounted(row, by_case[row["case"]], expected[row["case"]])
        tables["rows"] += table
    headings.name_groups(tables["groups"])
    return tables


def _group(name: str, case: Case, table: Sequence[Row], workloads: Workloads) -> Group:
    """Return the group of a table, of which `case` is one."""
    workload = case["workload"]
    group = {
        "id": name,
        **{field: group_value(case, field) for field in GROUP_FIELDS},
        "unit": table[0]["unit"],
        "rows": [row["case"] for row in table],
        "family": family_of(workload, workloads),
        "workload_title": workloads.get(workload, UNKNOWN).title,
        "compiler": compiler_of(workload, workloads),
    }
    return cast(Group, group)


def family_of(workload: str, workloads: Workloads) -> str:
    """Return the model family of a workload; one that does not declare it is its own."""
    return workloads.get(workload, UNKNOWN).family or workload


def compiler_of(workload: str, workloads: Workloads) -> str:
    """Return the name of what `xla=true` switches on in a workload."""
    return workloads.get(workload, UNKNOWN).compiler or headings.COMPILED


def _key(case: Case) -> str:
    return json.dumps([group_value(case, field) for field in GROUP_FIELDS], sort_keys=True, default=str)


def group_value(case: Case, field: str) -> Any:
    """Return `field` of a case as its group has it: the steps of an epoch follow from the batch."""
    return None if field in ("warmup", "window") and case.get("epoch_samples") else case.get(field)


def _order(case: Case) -> tuple[Any, ...]:
    """Return the order of groups: as DLPerf, precision before batch, numbers as numbers."""
    return (
        case["workload"],
        case["model"],
        str(case.get("device")),
        precision_order(case["dtype"]),
        case["dtype"],
        case["xla"],
        case["bsz"],
        case["accumulation"],
        _key(case),
    )


def precision_order(dtype: str) -> int:
    """Return the place of a precision in tables: fp32, fp16, bf16, fp8, others."""
    return PRECISIONS.index(dtype) if dtype in PRECISIONS else len(PRECISIONS)


SPEEDUP = ("speedup", "speedup_range", "speedup_interval", "efficiency")
NOT_YET = ("interval", "steps", *SPEEDUP, "dlperf", "latency_ms", "tokens_per_second")
"""What a row has that follows from its rates and from 1n1g, None until it is computed."""


SHOWN = ("repeat", "rate", "log", "seconds", "time_source", "second", "differs", "drift", "steady", "notes")

MOST_STEPS = 100
"""Steps of a run that a report keeps for its chart."""


def _shown_values(run: Run) -> dict[str, Any]:
    """Return what a row has of a run that counts."""
    values: Mapping[str, Any] = run
    fields = {key: values[key] for key in SHOWN}
    fields["course"] = [round(seconds, 6) for seconds in stats.thinned(run["steps"], MOST_STEPS)]
    return {**fields, **{key: values[key] for key in ("self_reported", "nccl", "binding") if values.get(key)}}


def _row(case: Case, runs: Sequence[Run], expected: set[int]) -> Row:
    good = sorted((run for run in runs if run["rate"] is not None), key=lambda run: int(run["repeat"]))
    rates = rates_of(good)
    planned = len(expected | {run["repeat"] for run in runs})
    row: dict[str, Any] = {
        "case": case["name"],
        **{field: group_value(case, field) for field in ("label", *GROUP_FIELDS, "nodes", "gpus", "devices")},
        "unit": next((run["unit"] for run in runs), "samples"),
        "status": "ok" if len(good) >= ENOUGH_RUNS else ("provisional" if good else "incomplete"),
        "good": len(good),
        "planned": planned,
        "hardware": [],
        "machines": None,
        "runs": [_shown_values(run) for run in good],
        "outliers": [],
        **dict.fromkeys(NOT_YET),
        "flags": [],
        **dict.fromkeys(("median", "mean", "min", "max", "cv", "spread")),
    }
    if rates:
        row.update(stats.summary(rates))
        row["outliers"] = [good[index]["repeat"] for index in stats.outliers(rates)]
        pooled = _steps(good)
        if pooled:
            mean = math.fsum(pooled) / len(pooled)
            row["steps"] = {**stats.percentiles(pooled), "mean": mean, "slowest": None, "count": len(pooled)}
    row["flags"] = flags.of_runs(cast(Row, row))
    return cast(Row, row)


def _add_what_is_declared(row: Row, declared: Workload) -> None:
    """Give a row its latency where its workload has one, and its tokens where their number is known."""
    if declared.latency and row["median"] is not None:
        # The milliseconds of a step at the median rate.
        row["latency_ms"] = 1000 * global_batch(row) / row["median"]
    size = declared.sample_size(row["settings"] or {}) if row["unit"] == "sequences" else None
    row["tokens_per_second"] = row["median"] * size if row["median"] and size else None


def rates_of(runs: Iterable[Run]) -> list[float]:
    """Return the rates of the runs that count."""
    return [float(rate) for run in runs if (rate := run["rate"]) is not None]


def _divide(table: Sequence[Row]) -> None:
    """Give each row of one group its intervals, its speedup over 1n1g, and the flags that follow."""
    base = next((row for row in table if row["label"] == BASELINE and row["good"]), None)
    base_rates = rates_of(base["runs"]) if base else []
    for row in table:
        if row["median"] is None:
            continue
        rates = rates_of(row["runs"])
        row["dlperf"] = dlperf_format.figures(rates, row["bsz"], base_rates)
        row["interval"] = as_list(stats.median_interval(rates))
        row.update(speedup_over(row, base))  # type: ignore[typeddict-item]
        row["flags"] += flags.of_speedup(row, base)


def speedup_over(row: Row, base: Row | None) -> dict[str, Any]:
    """Return the SPEEDUP of a row with a rate over `base`, which itself has no range; all None without it."""
    if base is None:
        return dict.fromkeys(SPEEDUP)
    speedup = cast(float, row["median"]) / cast(float, base["median"])
    limits = (None, None) if row is base else quotients(*(rates_of(each["runs"]) for each in (row, base)))
    return dict(zip(SPEEDUP, (speedup, *limits, speedup / row["devices"]), strict=True))


def _wait(table: Sequence[Row], by_case: Mapping[str, Sequence[Run]]) -> None:
    """Give the steps of each row what one would take if its devices only waited for each other.

    Devices that sum gradients finish a step with the slowest of them. `slowest` is the mean of the longest
    of as many steps of 1n1g as the row has devices; it takes them to be independent, and devices to be alike.
    """
    steps_of_one = next((_steps(by_case[row["case"]]) for row in table if row["label"] == BASELINE), [])
    for row in table:
        if row["steps"] and steps_of_one and row["label"] != BASELINE:
            row["steps"]["slowest"] = stats.mean_of_longest(steps_of_one, row["devices"])


def longer_parts(steps: StepTimes, of_one: StepTimes) -> tuple[float, float] | None:
    """Return the parts of a step by which it is longer than one of 1n1g, None where they are not known.

    The first is waiting for the slowest device, the second all else that devices do for each other: exchange,
    and work of the host for the others.  Their sum is about 1 − efficiency.
    """
    beyond = beyond_slowest(steps)
    return None if beyond is None else (1 - of_one["mean"] / steps["mean"] - beyond, beyond)


def beyond_slowest(steps: StepTimes) -> float | None:
    """Return the part of a step that waiting for the slowest device does not explain, None if not known."""
    return None if steps["slowest"] is None else 1 - steps["slowest"] / steps["mean"]


def _steps(runs: Iterable[Run]) -> list[float]:
    """Return the seconds of each step of the runs that count."""
    return [seconds for run in runs if run["rate"] is not None for seconds in run["steps"]]


def quotients(
    above: Sequence[float], below: Sequence[float]
) -> tuple[list[float] | None, list[float] | None]:
    """Return the range and the 95 % interval of `above` over `below`, two sets of rates.

    One run has no range, fewer than stats.INTERVAL_RUNS on either side no interval: both are None then.
    """
    if min(len(above), len(below)) < 2:
        return None, None
    return list(stats.ratio_range(above, below)), as_list(stats.ratio_interval(above, below))


def as_list(pair: tuple[float, float] | None) -> list[float] | None:
    """Return a pair of limits as JSON has it."""
    return None if pair is None else list(pair)


def _uncounted(row: Row, runs: Sequence[Run], expected: set[int]) -> list[dict[str, Any]]:
    """Return the runs of a case that do not count, the planned ones without a record included."""
    entries: list[dict[str, Any]] = [
        {key: run[key] for key in ("case", "label", "repeat", "status", "reason", "source", "last_lines")}
        for run in runs
        if run["rate"] is None
    ]
    missing: dict[str, Any] = {
        "status": "missing",
        "reason": message("run.planned"),
        "source": None,
        "last_lines": [],
    }
    for repeat in expected - {run["repeat"] for run in runs}:
        entries.append({"case": row["case"], "label": row["label"], "repeat": repeat, **missing})
    return sorted(entries, key=lambda entry: entry["repeat"])
