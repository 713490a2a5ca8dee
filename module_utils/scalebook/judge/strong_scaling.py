# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Strong scaling: the same global batch on more devices, each of which has less to do.

Weak scaling (weak_scaling.py) keeps the batch of a device.  Here the work of a step is the same in every
row of a table, devices x bsz x accumulation samples, so the speedup says how much faster it is done.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import (
    BASELINE,
    GROUP_FIELDS,
    Message,
    Row,
    global_batch,
    message,
)
from ansible.module_utils.scalebook.grouping import grouped
from ansible.module_utils.scalebook.judge import flags, headings, weak_scaling
from ansible.module_utils.scalebook.workload import Workloads

# The fields that have to agree, besides the global batch.
FIELDS = tuple(field for field in GROUP_FIELDS if field not in ("bsz", "accumulation"))
WINDOW = ("warmup", "window", "epoch_samples")
KEPT = (
    *("case", "label", "nodes", "gpus", "devices", "bsz", "accumulation", "status", "good", "planned"),
    *("median", "min", "max", "interval"),
)


def tabulate(rows: Sequence[Row], workloads: Workloads | None = None) -> list[dict[str, Any]]:
    """Return the tables of strong scaling in `rows` of weak_scaling.tabulate, by increasing global batch.

    A table needs results for two numbers of devices.  Its `rows` have `speedup` (median over that of
    1n1g with the same global batch, None without one), its `speedup_range` and `speedup_interval` as in
    weak_scaling, and `efficiency` (speedup / devices).  Where 1n1g was run in several ways the one with
    the least accumulation is the baseline.
    """
    members = grouped((row for row in rows if row["good"]), _key)
    tables = [own for own in members.values() if len({row["devices"] for row in own}) > 1]
    tables.sort(key=lambda own: (*(str(own[0].get(field)) for field in FIELDS), global_batch(own[0])))
    new_tables = [_table(f"s{index}", own, workloads or {}) for index, own in enumerate(tables, 1)]
    differences = headings.Differences(rows)
    for table in new_tables:
        table["title"] = title(differences.with_varying_settings(table), new_tables)
    return new_tables


def _key(row: Row) -> str:
    fields = [row.get(field) for field in FIELDS]
    return json.dumps([*fields, global_batch(row)], sort_keys=True, default=str)


def _table(name: str, own: Sequence[Row], workloads: Workloads) -> dict[str, Any]:
    own = sorted(own, key=lambda row: (row["devices"], row["nodes"], row["accumulation"]))
    base = next((row for row in own if row["label"] == BASELINE), None)
    return {
        "id": name,
        **{field: own[0].get(field) for field in FIELDS},
        "global_batch": global_batch(own[0]),
        "unit": own[0]["unit"],
        "compiler": weak_scaling.compiler_of(own[0]["workload"], workloads),
        "rows": [_row(row, base) for row in own],
    }


def title(table: Mapping[str, Any], tables: Sequence[Mapping[str, Any]]) -> Message:
    """Return what identifies a table; the window is named only where it differs between `tables`."""
    fields = [field for field in FIELDS if field not in WINDOW or len({other[field] for other in tables}) > 1]
    batch = message("name.global-batch", size=table["global_batch"])
    return headings.named([*headings.words_of(table, fields), batch])


def _row(row: Row, base: Row | None) -> dict[str, Any]:
    values: Mapping[str, Any] = row
    new_row: dict[str, Any] = {key: values[key] for key in KEPT}
    new_row.update(flags=flags.of_status(row), **weak_scaling.speedup_over(row, base))
    new_row["flags"] += flags.of_strong_speedup(row, new_row["speedup"], base)
    return new_row
