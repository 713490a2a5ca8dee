# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The document -> rows of results.csv."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.scalebook.contracts import GROUP_FIELDS, Results
from ansible.module_utils.scalebook.report import strong_scaling, weak_scaling

SHEET = {
    "unit": "unit",
    "case": "case",
    "label": "label",
    **{field: field for field in GROUP_FIELDS if field not in weak_scaling.UNUSUAL},
    **{field: field for field in ("nodes", "gpus", "devices", "status", "good", "planned")},
    **{field: field for field in ("median", "mean", "min", "max", "spread")},
    "cv": "cv_percent",
    "speedup": "speedup",
    "efficiency": "efficiency",
}


def sheet(document: Results) -> list[dict[str, Any]]:
    """Return one flat dict per case for a CSV; numbers stay numbers, what is missing is None."""
    out = []
    compared = {entry["case"]: entry for entry in (document["baseline"] or {"rows": ()})["rows"]}
    fixed = {row["case"]: row for made in document["strong"] for row in made["rows"]}
    for row in document["rows"]:
        values: Mapping[str, Any] = row
        low, high = row["interval"] or (None, None)
        entry = compared.get(row["case"], {})
        ratio_low, ratio_high = entry.get("interval") or (None, None)
        strong_row = fixed.get(row["case"], {})
        speedup_low, speedup_high = row["speedup_interval"] or (None, None)
        steps = row["steps"] or {}
        entry_of_dlperf = row["dlperf"] or {}
        out.append(
            {
                "campaign": document["campaign"],
                **{column: values[field] for field, column in SHEET.items()},
                "interval_low": low,
                "interval_high": high,
                "speedup_low": speedup_low,
                "speedup_high": speedup_high,
                "average_speed": entry_of_dlperf.get("average_speed"),
                "median_speed": entry_of_dlperf.get("median_speed"),
                **{f"step_{key}_seconds": steps.get(key) for key in ("p50", "p95", "p99")},
                "global_batch": strong_scaling.global_batch(row),
                "strong_speedup": strong_row.get("speedup"),
                "strong_efficiency": strong_row.get("efficiency"),
                "baseline_median": entry.get("before"),
                "baseline_ratio": entry.get("ratio"),
                "baseline_low": ratio_low,
                "baseline_high": ratio_high,
                "baseline_verdict": entry.get("verdict", "only here" if document["baseline"] else None),
                "flags": "; ".join(flag["text"] for flag in row["flags"]),
            }
        )
    return out


def harmless(text: str) -> str:
    """Return a CSV cell that no spreadsheet takes for a formula (OWASP, CSV injection)."""
    return "'" + text if text[:1] in ("=", "+", "-", "@", "\t", "\r", "\n") and text else text
