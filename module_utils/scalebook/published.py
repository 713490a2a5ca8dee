# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A group of ours compared with DLPerf's published tables (data/dlperf-*.csv)."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

from ansible.module_utils.scalebook.contracts import Group, Message, Row, as_message, message
from ansible.module_utils.scalebook.workload import Dlperf

SIZES = {"bert-base": 128, "resnet50-v1.5": 224, "resnet50-v1b": 224, "r100": 112, "y1": 112}
"""How large a sample of a published model is: tokens of a sequence, pixels of a side (data/README.md)."""


class PublishedRow(TypedDict):
    """One result that DLPerf published; `gpus` are those of a node, `source` is the file and the line."""

    framework: str
    model: str
    dtype: str
    xla: bool
    bsz: int
    nodes: int
    gpus: int
    devices: int
    label: str
    rate: float
    speedup: float
    efficiency: float
    source: str
    variant: str


Comparison = dict[str, Any]
"""A group of ours with one table of theirs, as `compare` describes it."""
COLUMNS = {
    "framework",
    "model",
    "dtype",
    "xla",
    "bsz_per_device",
    "nodes",
    "gpus",
    "samples_per_s",
    "speedup",
    "source_file",
    "variant",
}


class PublishedError(ValueError):
    """A table of published results that cannot be read."""


def read(lines: Iterable[str]) -> list[PublishedRow]:
    """Return the rows of the CSV with numbers as numbers; `gpus` counts those of all nodes together."""
    reader = csv.DictReader(lines)
    missing = COLUMNS - set(reader.fieldnames or ())
    if missing:
        raise PublishedError("the published table has no column " + ", ".join(sorted(missing)))
    rows: list[PublishedRow] = []
    for row in reader:
        try:
            nodes, gpus = int(row["nodes"]), int(row["gpus"])
            rows.append(
                {
                    "framework": row["framework"],
                    "model": row["model"],
                    "dtype": row["dtype"],
                    "xla": row["xla"] == "true",
                    "bsz": int(row["bsz_per_device"]),
                    "nodes": nodes,
                    "gpus": gpus // nodes,
                    "devices": gpus,
                    "label": f"{nodes}n{gpus // nodes}g",
                    "rate": float(row["samples_per_s"]),
                    "speedup": float(row["speedup"]),
                    "efficiency": float(row["speedup"]) / gpus,
                    "source": row["source_file"],
                    "variant": row["variant"],
                }
            )
        except (TypeError, ValueError, ZeroDivisionError) as exc:
            raise PublishedError(f"line {reader.line_num} of the published table: {exc}") from exc
    return rows


def table_key(row: PublishedRow) -> tuple[Any, ...]:
    """Return what one published table has in common; its speedups share a 1-GPU row."""
    return tuple(_of_table(row).values())


def _of_table(row: PublishedRow) -> dict[str, Any]:
    return {key: row[key] for key in ("framework", "model", "dtype", "xla", "bsz", "variant")}


def warning(variant: str) -> Message | None:
    """Return what has to be said beside rows of `variant`."""
    if "accumulation" not in variant:
        return None
    return message("compare.no-all-reduce", variant=as_message(variant))


def compare(
    group: Group,
    rows: Sequence[Row],
    table: Sequence[PublishedRow],
    names: Dlperf | None,
    size: int | None = None,
) -> list[Comparison]:
    """Return our `rows` beside every published table that fits, one entry per table.

    `names` is the key `dlperf` of the workload, `size` that of a sample of ours, None if it is not known.
    An entry is `comparable` when model, dtype, xla, batch, size and device kind agree; its rows then pair
    equal nodes and gpus.  Otherwise it is the shape of the curve alone: rows pair equal numbers of devices,
    speedups stand side by side and `why` says so.
    A counterpart without any fitting table is one entry with no rows that says why.
    """
    entry: Comparison = {"group": group["id"], "title": group["title"]}
    names = names or Dlperf()
    if not names.frameworks or not names.models:
        return [_without_table(entry, "no-tables", workload=group["workload"])]
    return [
        comparison
        for framework in names.frameworks
        for comparison in _counterpart(entry, group, rows, table, names, framework, size)
    ]


def _without_table(entry: Comparison, code: str, **values: Any) -> Comparison:
    """Return an entry without a published table, and why there is none."""
    return {**entry, "comparable": False, "rows": [], "why": message(f"compare.{code}", **values)}


def _counterpart(
    entry: Comparison,
    group: Group,
    rows: Sequence[Row],
    table: Sequence[PublishedRow],
    names: Dlperf,
    framework: str,
    size: int | None,
) -> list[Comparison]:
    """Return our `rows` beside every table of one published framework that fits."""
    model = names.models.get(group["model"])
    reasons = _differences(group, model, size)
    reasons += [as_message(names.differs)] if names.differs else []
    models = {model} if model else set(names.models.values())
    settings = group.get("settings") or {}
    counterparts = [row for row in table if row["framework"] == framework and row["model"] in models]
    fitting = [row for row in counterparts if names.fits(row["variant"], settings)]
    if counterparts and not fitting:
        named = {name: settings.get(name) for variant in names.variants.values() for name in variant}
        words = " ".join(f"{name}={value}" for name, value in named.items())
        lacking = {"framework": framework, "models": "/".join(sorted(models)), "settings": words}
        return [_without_table(entry, "no-settings", **lacking)]
    family = [row for row in fitting if row["dtype"] == group["dtype"] and row["xla"] == group["xla"]]
    if not family:
        lacking = {"precision": group["dtype"], "framework": framework, "models": "/".join(sorted(models))}
        if not group["xla"]:
            return [_without_table(entry, "no-table", **lacking)]
        return [
            _without_table(entry, "no-compiled-table", compiler=group.get("compiler") or "XLA", **lacking)
        ]
    nearest = min({row["bsz"] for row in family}, key=lambda bsz: (abs(bsz - group["bsz"]), bsz))
    if nearest != group["bsz"]:
        reasons.append(message("compare.batch", here=group["bsz"], nearest=nearest))

    tables: dict[tuple[Any, ...], list[PublishedRow]] = {}
    for row in family:
        if row["bsz"] == nearest:
            tables.setdefault(table_key(row), []).append(row)
    return [_beside(entry, rows, theirs, reasons) for theirs in tables.values()]


def only_published(
    families: Mapping[str, Iterable[str]], entries: Iterable[Comparison], table: Sequence[PublishedRow]
) -> list[Comparison]:
    """Return the published tables of each family with the rows that no entry of `compare` has beside ours.

    `families` are the published models of each family, `{"bert": ["bert-base"]}`.  Every row of these
    models is either in an entry or here.
    """
    # A line of DLPerf may have the results of several frameworks.
    beside = {(entry["framework"], pair["source"]) for entry in entries for pair in entry["rows"]}
    comparisons = []
    for family, models in families.items():
        tables: dict[tuple[Any, ...], list[PublishedRow]] = {}
        for row in table:
            if row["model"] in set(models) and (row["framework"], row["source"]) not in beside:
                tables.setdefault(table_key(row), []).append(row)
        comparisons += [
            {
                "family": family,
                **_of_table(rows[0]),
                "warning": warning(rows[0]["variant"]),
                "rows": [
                    {name: row[name] for name in ("label", "devices", "rate", "speedup", "source")}
                    for row in rows
                ],
            }
            for rows in tables.values()
        ]
    return comparisons


def _differences(group: Group, model: str | None, size: int | None) -> list[Message]:
    """Return why the figures of `group` cannot stand against published ones."""
    reasons = []
    if not model:
        reasons.append(message("compare.model", model=group["model"]))
    if group.get("device") == "cpu":
        reasons.append(message("compare.cpus"))
    if model in SIZES and size not in (None, SIZES[model]):
        reasons.append(message("compare.size", size=size, published=SIZES[model]))
    if group["accumulation"] != 1:
        reasons.append(message("compare.accumulation", steps=group["accumulation"]))
    return reasons


def _beside(
    entry: Comparison, rows: Sequence[Row], theirs: Sequence[PublishedRow], reasons: Sequence[Message]
) -> Comparison:
    first = theirs[0]
    accumulated = warning(first["variant"])
    reasons = [*reasons, *([message("compare.accumulation-there")] if accumulated else [])]
    comparable = not reasons
    return {
        **entry,
        **_of_table(first),
        "warning": accumulated,
        "comparable": comparable,
        "why": _same(first["model"]) if comparable else message("compare.shape-only", reasons=reasons),
        "rows": [_pair(row, theirs, comparable) for row in rows],
    }


def _pair(row: Row, theirs: Sequence[PublishedRow], comparable: bool) -> dict[str, Any]:
    """Return a row beside the published one of as many devices, of the same nodes where they compare."""
    fit = (
        their
        for their in theirs
        if their["devices"] == row["devices"]
        and (not comparable or (their["nodes"], their["gpus"]) == (row["nodes"], row["gpus"]))
    )
    match = next(fit, None)
    return {
        "label": row["label"],
        "devices": row["devices"],
        "rate": row["median"],
        "speedup": row["speedup"],
        "efficiency": row["efficiency"],
        "published_label": match["label"] if match else None,
        # Samples/s of another model or device would invite the quotient that means nothing.
        "published_rate": match["rate"] if match and comparable else None,
        "published_speedup": match["speedup"] if match else None,
        "published_efficiency": match["efficiency"] if match else None,
        "source": match["source"] if match else None,
    }


def _same(model: str) -> Message:
    """Return on what the rows were published that may be compared with ours."""
    hardware = message("compare.dlperf-hardware")
    if model == "bert-base":
        hardware = message("compare.dlperf-hardware-sequences", length=SIZES[model])
    return message("compare.same", hardware=hardware)
