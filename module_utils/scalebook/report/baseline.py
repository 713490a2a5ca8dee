# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""This campaign's rows compared with those of an earlier one: faster, slower or the same.

Three to five repeats cannot tell one per cent from noise, so a difference has to pass all of these:
the 95 % bootstrap interval of the ratio of medians leaves out 1; the ratio is more than EFFECT off 1
(or than the limit asked for, where that is less); and it is more than SIGMAS standard errors off 1.
The standard error comes from the scatter of the row's repeats in both campaigns, of the others', and of
USUAL as if it had been seen PRIOR times: the scatter of three repeats alone is off by half too often.

At that level and a noise of 1 %, with 3 repeats on either side, two campaigns of the same thing differ
in fewer than 1 of 1000 rows and a slowdown of 5 % is found 97 times of 100 (tests/unit/test_baseline.py).
A noise of 3 % gives a false alarm in 6 of 1000 rows of a campaign of four cases, but in 40 of 1000 where
there is one case of 3 repeats alone: three values seldom show how much they scatter.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Any, cast

from ansible.module_utils.scalebook.contracts import (
    ENOUGH_RUNS,
    GROUP_FIELDS,
    RESULTS_SCHEMA,
    Row,
    upgrade_row,
)
from ansible.module_utils.scalebook.report import stats

LIMIT = 0.03  # a regression from here on, unless the user says another limit
EFFECT = 0.03
SIGMAS = 3.3
USUAL, PRIOR = 0.01, 8
OTHERS = 12  # how much the scatter of the other rows counts, in degrees of freedom

IDENTITY = (*GROUP_FIELDS, "nodes", "gpus")
# Reports of before there were windows of an epoch do not say so.
REQUIRED = (*(field for field in IDENTITY if field != "epoch_samples"), "label", "runs")
# Variance of the median of n normal values, over that of one (n from 1); pi / 2n from there on.
_MEDIAN = (1.0, 0.5, 0.449, 0.298, 0.287, 0.215, 0.210)


class BaselineError(ValueError):
    """An earlier result that cannot be compared with."""


def check(document: Any) -> list[Row]:
    """Return the rows of a results.json, or raise BaselineError for another file."""
    if not isinstance(document, Mapping) or not isinstance(document.get("rows"), list):
        raise BaselineError("is not a results.json of scalebook: it has no rows")
    if document.get("schema") not in (1, RESULTS_SCHEMA):
        raise BaselineError(
            f"has schema {document.get('schema')!r}, this report reads 1 and {RESULTS_SCHEMA}"
        )
    rows = [upgrade_row(row) if isinstance(row, Mapping) else row for row in document["rows"]]
    for row in rows:
        if not isinstance(row, Mapping) or any(field not in row for field in REQUIRED):
            raise BaselineError("is not a results.json of scalebook: a row lacks its case")
        try:
            rates = [run["rate"] for run in row["runs"]]
        except (TypeError, KeyError):
            raise BaselineError(f"the row {row['label']!r} has a run without a rate") from None
        if not all(type(rate) in (int, float) and 0 < rate < math.inf for rate in rates):
            raise BaselineError(f"the row {row['label']!r} has a rate that is not a positive number")
    return cast("list[Row]", rows)


def compare(
    rows: Sequence[Mapping[str, Any]], before: Sequence[Mapping[str, Any]], limit: float = LIMIT
) -> dict[str, Any]:
    """Return `{"rows", "only_here", "only_there", "regressions", "limit"}` of `rows` against `before`.

    Both are rows of results.json.  An entry of `rows` has `case`, `label`, `now` and `before` (medians),
    `ratio`, `interval`, `margin` (the least difference that would count) and `verdict`: `faster`,
    `slower`, `same`, or `n/a` with `why`.  `regression` says that it is slower by more than `limit`.
    Raises BaselineError when they have no case in common.
    """
    there = {_key(row): row for row in before}
    here = {_key(row): row for row in rows}
    common = [key for key in here if key in there]
    if not common:
        raise BaselineError(f"has no case in common with this campaign: {_differing(rows, before)}")
    pairs = [(here[key], _rates(here[key]), _rates(there[key])) for key in common]
    scatters = [_scatter(now, old) for _, now, old in pairs]
    squares, freedom = (sum(each) for each in zip(*scatters, strict=True))
    entries = [
        _entry(row, now, old, _variance(scatter, squares, freedom), limit)
        for (row, now, old), scatter in zip(pairs, scatters, strict=True)
    ]
    return {
        "limit": limit,
        "rows": entries,
        "only_here": [_name(here[key]) for key in here if key not in there],
        "only_there": [_name(there[key]) for key in there if key not in here],
        "regressions": sum(entry["regression"] for entry in entries),
    }


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


def _differing(rows: Sequence[Mapping[str, Any]], before: Sequence[Mapping[str, Any]]) -> str:
    """Return the fields in which no row agrees with one of `before`, else all that differ."""
    if not rows or not before:
        return "no cases here" if not rows else "no cases there"
    values = {
        field: tuple(list(dict.fromkeys(_value(row, field) for row in side)) for side in (rows, before))
        for field in IDENTITY
    }
    apart = {field: each for field, each in values.items() if not set(each[0]) & set(each[1])}
    apart = apart or {field: each for field, each in values.items() if set(each[0]) != set(each[1])}
    return "; ".join(
        f"{field} is {', '.join(here)} here and {', '.join(there)} there"
        for field, (here, there) in apart.items()
    )


def _value(row: Mapping[str, Any], field: str) -> str:
    value = row.get(field)
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)


def _key(row: Mapping[str, Any]) -> str:
    return json.dumps([row.get(field) for field in IDENTITY], sort_keys=True, default=str)


def _rates(row: Mapping[str, Any]) -> list[float]:
    return [float(run["rate"]) for run in row["runs"]]


def _name(row: Mapping[str, Any]) -> dict[str, Any]:
    return {field: row.get(field) for field in ("case", "label", *GROUP_FIELDS)}


def _scatter(*sides: Sequence[float]) -> tuple[float, int]:
    """Return the squares of the relative deviations from each side's mean, and their degrees of freedom."""
    logs = [[math.log(rate) for rate in rates] for rates in sides if len(rates) > 1]
    squares = sum((value - fmean(side)) ** 2 for side in logs for value in side)
    return squares, sum(len(side) - 1 for side in logs)


def _variance(scatter: tuple[float, int], squares: float, freedom: int) -> float:
    """Return the relative variance of one repeat of a row, given all rows' `squares` and `freedom`."""
    own, degrees = scatter
    others = freedom - degrees
    weight = min(OTHERS, others)
    shared = weight * (squares - own) / others if others else 0.0
    return (own + shared + PRIOR * USUAL**2) / (degrees + weight + PRIOR)


def _of_median(count: int) -> float:
    return _MEDIAN[count - 1] if count <= len(_MEDIAN) else math.pi / (2 * count)


def _entry(
    row: Mapping[str, Any], now: Sequence[float], old: Sequence[float], variance: float, limit: float
) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "case": row["case"],
        "label": row["label"],
        "now": median(now) if now else None,
        "before": median(old) if old else None,
        "ratio": None,
        "interval": None,
        "margin": None,
        "verdict": "n/a",
        "why": None,
        "regression": False,
    }
    if now and old:
        entry["ratio"] = entry["now"] / entry["before"]
    if min(len(now), len(old)) < ENOUGH_RUNS:
        entry["why"] = f"{len(now)} valid repeats now and {len(old)} before, {ENOUGH_RUNS} are needed"
        return entry
    draws = [
        stats.bootstrap_medians(rates, f"{row['case']} {side}")
        for side, rates in (("now", now), ("old", old))
    ]
    low, high = stats.ratio_interval(*draws)
    noise = SIGMAS * math.sqrt(variance * (_of_median(len(now)) + _of_median(len(old))))
    margin = max(min(EFFECT, limit), noise)
    entry.update(interval=[low, high], margin=margin, verdict="same")
    if abs(entry["ratio"] - 1) > margin and not low <= 1 <= high:
        entry["verdict"] = "faster" if entry["ratio"] > 1 else "slower"
    entry["regression"] = entry["verdict"] == "slower" and 1 - entry["ratio"] > limit
    return entry
