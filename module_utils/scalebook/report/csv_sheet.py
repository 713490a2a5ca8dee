# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The document -> rows of results.csv."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import GROUP_FIELDS, Results, global_batch
from ansible.module_utils.scalebook.pages.catalogue import sentence
from ansible.module_utils.scalebook.quantities import TABLE
from ansible.module_utils.scalebook.report import environment

SHEET = {
    "unit": "unit",
    "case": "case",
    "label": "label",
    **{field: field for field in GROUP_FIELDS if field != "settings"},
    **{field: field for field in ("nodes", "gpus", "devices", "status", "good", "planned")},
    **{field: field for field in ("median", "mean", "min", "max", "spread")},
    "cv": "cv_percent",
    "latency_ms": "latency_ms",
    "speedup": "speedup",
    "efficiency": "efficiency",
}


def sheet(document: Results) -> list[dict[str, Any]]:
    """Return one flat dict per case for a CSV; numbers stay numbers, what is missing is None."""
    out = []
    compared = {entry["case"]: entry for entry in (document["baseline"] or {"rows": ()})["rows"]}
    usage = {(line["case"], line["quantity"]): line["mean"] for line in document["utilisation"]}
    arithmetic = {entry["case"]: entry for entry in document["mfu"]}
    fixed = {row["case"]: row for made in document["strong"] for row in made["rows"]}
    for row in document["rows"]:
        values: Mapping[str, Any] = row
        entry = compared.get(row["case"], {})
        strong_row = fixed.get(row["case"], {})
        steps: Mapping[str, Any] = row["steps"] or {}
        done: Mapping[str, Any] = arithmetic.get(row["case"], {})
        entry_of_dlperf = row["dlperf"] or {}
        out.append(
            {
                "campaign": document["campaign"],
                **{column: values.get(field) for field, column in SHEET.items()},
                "settings": _words(row["settings"] or {}),
                **_limits("median_interval95", row["interval"]),
                **_limits("speedup_range", row["speedup_range"]),
                **_limits("speedup_interval95", row["speedup_interval"]),
                "average_speed": entry_of_dlperf.get("average_speed"),
                "median_speed": entry_of_dlperf.get("median_speed"),
                **{f"step_{key}_seconds": steps.get(key) for key in ("mean", "slowest", "p50", "p95", "p99")},
                **{f"{each.name}_mean": usage.get((row["case"], each.name)) for each in TABLE},
                "flop_per_sample": done.get("flop"),
                "tflops_per_device": done.get("tflops"),
                "mfu": done.get("mfu"),
                "peak_tflops_per_device": done.get("peak_tflops"),
                "peak_of": sentence(done["peak_of"]) if done.get("peak_of") else None,
                "global_batch": global_batch(row),
                "strong_speedup": strong_row.get("speedup"),
                "strong_efficiency": strong_row.get("efficiency"),
                "baseline_median": entry.get("before"),
                "baseline_ratio": entry.get("ratio"),
                **_limits("baseline_range", entry.get("range")),
                **_limits("baseline_interval95", entry.get("interval")),
                "baseline_verdict": entry.get("verdict", "only here" if document["baseline"] else None),
                "flags": "; ".join(sentence(flag["message"]) for flag in row["flags"]),
                **environment.system(document, row),
            }
        )
    return out


def _words(settings: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(settings.items()))


def _limits(name: str, pair: Sequence[float] | None) -> dict[str, float | None]:
    """Return the columns of a range or an interval."""
    low, high = pair or (None, None)
    return {f"{name}_low": low, f"{name}_high": high}


def harmless(text: str) -> str:
    """Return a CSV cell that no spreadsheet takes for a formula (OWASP, CSV injection)."""
    return "'" + text if text[:1] in ("=", "+", "-", "@", "\t", "\r", "\n") and text else text
