# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""This campaign's rows compared with those of an earlier one: faster, slower or the same.

A difference counts if it passes two tests.  It is significant: Welch's t test of the logarithms of the
rates, at a level of ALARMS divided by the number of rows compared (Bonferroni), so that of 100 comparisons
of a campaign with one of the same thing at most one has a false verdict, however many rows they have.  And
it is large enough to matter: the ratio of the medians is more than EFFECT off 1, or than the limit asked
for, where that is less.

What that finds is simulated in tests/bench/statistics, and docs/reliability.md has its figures.  Where one
side has 3 runs and scatters several times as much as the other, false verdicts are more frequent.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, cast

from ansible.module_utils.scalebook import shapes, stats
from ansible.module_utils.scalebook.contracts import (
    ENOUGH_RUNS,
    GROUP_FIELDS,
    OLDEST_SCHEMA,
    RESULTS_SCHEMA,
    SCHEMAS_READ,
    Message,
    ProvenanceFile,
    Results,
    Row,
    message,
    upgrade,
)
from ansible.module_utils.scalebook.judge.weak_scaling import rates_of
from ansible.module_utils.scalebook.workload import Workloads, called_today

LIMIT = 0.03  # a regression from here on, unless the user says another limit
EFFECT = 0.03
ALARMS = 0.01
"""The share of comparisons of a campaign with one of the same thing that may have a false verdict."""

IDENTITY = (*GROUP_FIELDS, "nodes", "gpus")
# Reports of before there were windows of an epoch do not say so.
REQUIRED = (*(field for field in IDENTITY if field != "epoch_samples"), "label", "runs")


NAMED = ("case", "label", "unit", "group", "median")


class BaselineError(ValueError):
    """An earlier result that cannot be compared with."""


def check(document: Any) -> list[Row]:
    """Return the rows of a results.json, or raise BaselineError for another file."""
    if not isinstance(document, Mapping) or not isinstance(document.get("rows"), list):
        raise BaselineError("is not a results.json of scalebook: it has no rows")
    if document.get("schema") not in range(OLDEST_SCHEMA, RESULTS_SCHEMA + 1):
        raise BaselineError(f"has schema {document.get('schema')!r}, {SCHEMAS_READ}")
    document = upgrade(document)
    rows = document["rows"]
    for row in rows:
        if not isinstance(row, Mapping) or any(field not in row for field in REQUIRED):
            raise BaselineError("is not a results.json of scalebook: a row lacks its case")
        try:
            rates = [run["rate"] for run in row["runs"]]
        except (TypeError, KeyError):
            raise BaselineError(f"the row {row['label']!r} has a run without a rate") from None
        if not all(type(rate) in (int, float) and 0 < rate < math.inf for rate in rates):
            raise BaselineError(f"the row {row['label']!r} has a rate that is not a positive number")
        checked = (*IDENTITY, *NAMED, "runs", "hardware", "machines")
        shapes.check(Row, {field: row[field] for field in checked if field in row}, error=BaselineError)
    head = {key: document[key] for key in ("campaign", "hardware", "started") if key in document}
    shapes.check(Results, head, error=BaselineError)
    shapes.check(ProvenanceFile, document.get("provenance") or {}, error=BaselineError)
    return cast("list[Row]", rows)


def compare(
    rows: Sequence[Row], before: Sequence[Row], limit: float = LIMIT, declared: Workloads | None = None
) -> dict[str, Any]:
    """Return `{"rows", "only_here", "only_there", "regressions", "limit"}` of `rows` against `before`.

    Both are rows of results.json; `declared` says what settings were before they existed.  An entry of
    `rows` has `case`, `label`, `now` and `before` (medians), `ratio`, its `range` and `interval` (the
    least and largest quotient of two runs, and the 95 % interval of Welch, None below
    stats.INTERVAL_RUNS runs), `margin` (the least difference that would count, as a fraction) and
    `verdict`: `faster`, `slower`, `same`, or `n/a` with `why`.  `regression` says that it is slower by
    more than `limit`.
    Raises BaselineError when they have no case in common.
    """
    there = {key_of(row, declared): row for row in before}
    here = {key_of(row, declared): row for row in rows}
    common = [key for key in here if key in there]
    if not common:
        raise BaselineError(f"has no case in common with this campaign: {_differing(rows, before, declared)}")
    entries = judged([(here[key], there[key]) for key in common], limit)
    return {
        "limit": limit,
        "rows": entries,
        "only_here": [_name(here[key]) for key in here if key not in there],
        "only_there": [_name(there[key]) for key in there if key not in here],
        "regressions": sum(entry["regression"] for entry in entries),
    }


def judged(pairs: Sequence[tuple[Row, Row]], limit: float = LIMIT) -> list[dict[str, Any]]:
    """Return the entry of `rows`, as `compare` has it, of each pair of a row and the earlier one."""
    whys = [_unlike(*pair) or _too_few(*pair) for pair in pairs]
    family = sum(not why for why in whys)
    return [_entry(*pair, why, family, limit) for pair, why in zip(pairs, whys, strict=True)]


def read_limit(text: Any) -> float:
    """Return a limit such as `3%`, `3 %` or `0.03` as a fraction, or raise BaselineError."""
    words = str(text).strip()
    try:
        value = float(words.rstrip("% ")) / (100 if words.endswith("%") else 1)
    except ValueError:
        value = math.nan
    if not 0 < value < 1:
        raise BaselineError(f"max_regression={text}: must be a share such as 3% or 0.03")
    return value


def _differing(rows: Sequence[Row], before: Sequence[Row], declared: Workloads | None) -> str:
    """Return the fields in which no row agrees with one of `before`, else all that differ."""
    if not rows or not before:
        return "no cases here" if not rows else "no cases there"
    values = {
        field: tuple(
            list(dict.fromkeys(_text(value(row, field, declared)) for row in side)) for side in (rows, before)
        )
        for field in IDENTITY
    }
    apart = {field: each for field, each in values.items() if not set(each[0]) & set(each[1])}
    apart = apart or {field: each for field, each in values.items() if set(each[0]) != set(each[1])}
    return "; ".join(
        f"{field} is {', '.join(here)} here and {', '.join(there)} there"
        for field, (here, there) in apart.items()
    )


def value(row: Row, field: str, declared: Workloads | None) -> Any:
    """Return what a field of a row is called today."""
    if field in ("workload", "settings"):
        name, settings = called_today(row["workload"], row.get("settings"), declared or {})
        return name if field == "workload" else settings
    return row.get(field)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)


def key_of(row: Row, declared: Workloads | None = None) -> str:
    """Return what two rows of the same case have in common, whatever campaign they are from."""
    return _text([value(row, field, declared) for field in IDENTITY])


def _name(row: Row) -> dict[str, Any]:
    return {field: row.get(field) for field in ("case", "label", *GROUP_FIELDS)}


def _unlike(row: Row, before: Row) -> Message | None:
    """Return why the rates of two rows of one case are not of the same kind, None where they are."""
    units = [each.get("unit") or "samples" for each in (row, before)]
    if units[0] != units[1]:
        return message("compare.units", now=units[0], before=units[1])
    printed, printed_before = (
        {run.get("time_source") == "rates" for run in each["runs"] if run["rate"] is not None}
        for each in (row, before)
    )
    if printed and printed_before and printed != printed_before:
        return message("compare.printed")
    return None


def _too_few(row: Row, before: Row) -> Message | None:
    now, old = len(rates_of(row["runs"])), len(rates_of(before["runs"]))
    if min(now, old) >= ENOUGH_RUNS:
        return None
    return message("compare.too-few", now=now, before=old, needed=ENOUGH_RUNS)


def _entry(row: Row, before: Row, why: Message | None, family: int, limit: float) -> dict[str, Any]:
    """Return the comparison of one row, one of `family` rows that can be compared; `why` says why not."""
    now, old = (rates_of(each["runs"]) for each in (row, before))
    entry: dict[str, Any] = {
        "case": row["case"],
        "label": row["label"],
        "now": median(now) if now else None,
        "before": median(old) if old else None,
        "ratio": None,
        "range": None,
        "interval": None,
        "margin": None,
        "verdict": "n/a",
        "why": why,
        "regression": False,
    }
    if now and old and not _unlike(row, before):
        entry["ratio"] = entry["now"] / entry["before"]
    if why:
        return entry
    interval = stats.ratio_interval(now, old)
    entry.update(range=list(stats.ratio_range(now, old)), interval=list(interval) if interval else None)
    difference, error, freedom = stats.log_difference(now, old)
    significant = stats.t_quantile(1 - ALARMS / family / 2, freedom) * error
    effect = min(EFFECT, limit)
    entry.update(margin=max(effect, math.expm1(significant)), verdict="same")
    if difference > significant and entry["ratio"] > 1 + effect:
        entry["verdict"] = "faster"
    elif difference < -significant and entry["ratio"] < 1 - effect:
        entry["verdict"] = "slower"
    entry["regression"] = entry["verdict"] == "slower" and 1 - entry["ratio"] > limit
    return entry
