# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What a framework itself says of a run, in one line of its log: a table of its own in the report.

A workload declares `figures: {literal: "HF_MLM row="}`; the last line with it is read as `name=value` words,
the first of which is the literal's own: `HF_MLM row=V100_4gpu_8 train_runtime=203.7`.
"""

from __future__ import annotations

import os
import re
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.logs import TAIL, open_log

MOST = 40
_WORD = re.compile(r"(?:^|\s)([A-Za-z]\w{0,39})=([\x21-\x7e]{1,60})(?=\s|$)")


def read(path: str | os.PathLike[str], literal: str) -> dict[str, str]:
    """Return the figures at the end of a log by name, as text; none where there is no such line.

    Raises OSError when the log cannot be read and LogError when it is no regular file.
    """
    with open_log(path) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
        tail = file.read(TAIL).decode(errors="replace")
    line = tail[tail.rfind(literal) :].split("\n", 1)[0] if literal in tail else ""
    return dict(_WORD.findall(line)[:MOST])


def tabulate(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a table for each framework whose runs have figures: `{"framework", "columns", "rows"}`.

    `rows` are those of scaling.tabulate.  Of a figure that differs between the repeats it has the median.
    """
    tables: dict[str, dict[str, Any]] = {}
    for row in rows:
        found = [run["figures"] for run in row["runs"] if run.get("figures")]
        if found:
            table = tables.setdefault(
                row["framework"], {"framework": row["framework"], "columns": [], "rows": []}
            )
            names = list(dict.fromkeys(name for figures in found for name in figures))
            table["columns"] += [name for name in names if name not in table["columns"]]
            values = {
                name: _middle([figures[name] for figures in found if name in figures]) for name in names
            }
            table["rows"].append({"label": row["label"], "runs": len(found), "values": values})
    return list(tables.values())


def _middle(values: Sequence[str]) -> str:
    """Return the one value there is, else the median of numbers with their digits, else the first."""
    if len(set(values)) == 1:
        return values[0]
    try:
        middle = statistics.median(map(float, values))
    except ValueError:
        return values[0]
    digits = max(len(value.partition(".")[2]) for value in values)
    return f"{middle:.{digits}f}"
