# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Tables of the results that workloads report themselves in the closing line of a run."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import Row


def tabulate(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return a table for each workload whose runs report results: `{"workload", "columns", "rows"}`.

    `rows` are those of weak_scaling.tabulate.  A result that differs between repeats is their median.
    """
    tables: dict[str, dict[str, Any]] = {}
    for row in rows:
        reported = [run["self_reported"] for run in row["runs"] if run.get("self_reported")]
        if reported:
            table = tables.setdefault(
                row["workload"], {"workload": row["workload"], "columns": [], "rows": []}
            )
            names = list(dict.fromkeys(name for values in reported for name in values))
            table["columns"] += [name for name in names if name not in table["columns"]]
            values = {name: _middle([each[name] for each in reported if name in each]) for name in names}
            table["rows"].append(
                {"case": row["case"], "label": row["label"], "runs": len(reported), "values": values}
            )
    return list(tables.values())


def _middle(values: Sequence[str]) -> str:
    """Return the value if all are equal, else the median of numbers with their digits, else the first."""
    if len(set(values)) == 1:
        return values[0]
    try:
        middle = statistics.median(map(float, values))
    except ValueError:
        return values[0]
    digits = max(len(value.partition(".")[2]) for value in values)
    return f"{middle:.{digits}f}"
