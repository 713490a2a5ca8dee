# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The document -> metrics.prom, its numbers for Prometheus and whatever reads its formats.

The text is OpenMetrics 1.0, and the text format of Prometheus too, which node_exporter's textfile collector
reads: every family is a gauge, since the two name counters differently, and there are no times of samples.
Names and units are those of https://prometheus.io/docs/practices/naming: base units, ratios from 0 to 1.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ansible.module_utils.scalebook.contracts import GROUP_FIELDS, Results, Row
from ansible.module_utils.scalebook.files import write_whole
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.quantities import MEGA, TABLE
from ansible.module_utils.scalebook.store.load import read_source
from ansible.module_utils.scalebook.store.source import open_source
from ansible.module_utils.scalebook.text import clean

NAME = "metrics.prom"
PREFIX = "scalebook_"


class Metric(NamedTuple):
    """A family of samples: its name without the prefix, its unit, its help, and what divides its values."""

    name: str
    unit: str
    help: str
    divisor: float = 1.0


ROWS = {
    # key of a row -> metric
    "speedup": Metric("speedup_ratio", "ratio", "Median throughput of the case, of that of 1n1g."),
    "efficiency": Metric("efficiency_ratio", "ratio", "Speedup, of the number of devices."),
    "spread": Metric("spread_ratio", "ratio", "Fastest minus slowest run, of the median."),
}
RATES = Metric(
    "throughput_samples_per_second",
    "samples_per_second",
    "Throughput of all devices over the window, over the valid runs; the label unit says what a sample is.",
)
STEPS = Metric("step_seconds", "seconds", "Time of a step of the window, over the valid runs.")
RUNS = Metric("runs", "", "Runs of the case by status; only those of status ok count.")
STARTED = Metric("campaign_start_timestamp_seconds", "seconds", "When the first run started, as a Unix time.")
CRITERION = Metric(
    "utilisation_criterion_met", "", "Whether the mean utilisation of the resource is at least the criterion."
)
CAUSE = Metric(
    "bottleneck_cause", "", "1 for each likely cause of the bottleneck; label rank 1 is the likeliest."
)
UNITS = {
    # unit of a quantity -> base unit, and what divides its values
    "%": ("ratio", 100.0),
    "MB/s": ("bytes_per_second", 1 / MEGA),
    "W": ("watts", 1.0),
    "J": ("joules_per_sample", 1.0),
}
USAGE = {
    quantity.name: Metric(f"{quantity.metric}_{unit}", unit, quantity.help, divisor)
    for quantity in TABLE
    if quantity.metric
    for unit, divisor in [UNITS[quantity.unit]]
}
"""The metric of each quantity of the table of utilisation; one query makes the others of them."""

LABELS = tuple(field for field in GROUP_FIELDS if field != "settings")

Sample = tuple[Mapping[str, Any], float]


def export(path: Path, directory: str, criterion: float, write: bool) -> dict[str, Any]:
    """Write the numbers of a campaign so far for node_exporter; what prevents it is a warning."""
    try:
        results = build_results(read_source(open_source(path)), min_utilisation=criterion)
        target = Path(directory) / f"scalebook_{results['campaign']}.prom"
        if not target.parent.is_dir():
            raise OSError(f"{directory} is not a directory")
        changed = write_whole(target, text(results).encode(), write)
    except (OSError, ValueError) as error:
        return {"changed": False, "file": None, "warnings": [f"the metrics are not exported: {error}"]}
    return {"changed": changed, "file": str(target)}


def text(document: Results) -> str:
    """Return the content of metrics.prom."""
    lines: list[str] = []
    for metric, samples in families(document):
        lines += _family(metric, samples)
    return "\n".join([*lines, "# EOF"]) + "\n"


def labels_of(document: Results, row: Row) -> dict[str, Any]:
    """Return the labels of a case."""
    fields: Mapping[str, Any] = row
    values = {field: fields[field] for field in LABELS if fields.get(field) is not None}
    shape = {"nodes": row["nodes"], "gpus": row["gpus"], "devices": row["devices"], "unit": row["unit"]}
    return {"campaign": document["campaign"], "case": row["case"], **values, **shape}


def families(document: Results) -> Iterable[tuple[Metric, list[Sample]]]:
    """Yield each metric with its samples, the labels of a case and what tells its samples apart."""
    labels = {row["case"]: labels_of(document, row) for row in document["rows"]}
    rows: list[Mapping[str, Any]] = [*document["rows"]]
    started = _unix_time(document["started"])
    if started is not None:
        yield STARTED, [({"campaign": document["campaign"]}, started)]
    yield RUNS, _runs(document, labels)
    yield RATES, _statistics(rows, labels, ("median", "min", "max"))
    for key, metric in ROWS.items():
        yield metric, [(labels[row["case"]], row[key]) for row in rows if row[key] is not None]
    yield (
        STEPS,
        [
            ({**labels[row["case"]], "statistic": name}, steps[name])
            for row in rows
            for steps in [row["steps"]]
            if steps
            for name in ("p50", "p95", "p99", "max")
        ],
    )
    for quantity, metric in USAGE.items():
        of_quantity = [line for line in document["utilisation"] if line["quantity"] == quantity]
        yield metric, _statistics(of_quantity, labels, ("mean", "min", "max"), metric.divisor)
    yield (
        CRITERION,
        [
            ({**labels[line["case"]], "resource": line["quantity"]}, float(line["met"]))
            for line in document["utilisation"]
            if line["met"] is not None
        ],
    )
    yield (
        CAUSE,
        [
            ({**labels[entry["case"]], "cause": cause, "rank": rank}, 1.0)
            for entry in document["bottlenecks"]
            for rank, cause in enumerate(entry["causes"], 1)
        ],
    )


def _unix_time(stamp: str | None) -> float | None:
    """Return the Unix time of a stamp such as 2026-11-21T01:02:03Z, None for anything else."""
    try:
        return datetime.datetime.fromisoformat((stamp or "").replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None


def _runs(document: Results, labels: Mapping[str, Mapping[str, Any]]) -> list[Sample]:
    counts: dict[tuple[str, str], int] = {}
    for row in document["rows"]:
        counts[row["case"], "ok"] = row["good"]
    for entry in document["uncounted"]:
        if entry["case"] in labels:
            place = entry["case"], str(entry["status"])
            counts[place] = counts.get(place, 0) + 1
    return [({**labels[case], "status": status}, float(count)) for (case, status), count in counts.items()]


def _statistics(
    lines: Iterable[Mapping[str, Any]],
    labels: Mapping[str, Mapping[str, Any]],
    names: Iterable[str],
    divisor: float = 1.0,
) -> list[Sample]:
    names = tuple(names)
    return [
        ({**labels[line["case"]], "statistic": name}, line[name] / divisor)
        for line in lines
        for name in names
        if line[name] is not None
    ]


def _family(metric: Metric, samples: list[Sample]) -> list[str]:
    """Return the lines of a family, none where it has no sample."""
    if not samples:
        return []
    name = PREFIX + metric.name
    lines = [f"# TYPE {name} gauge"]
    lines += [f"# UNIT {name} {metric.unit}"] if metric.unit else []
    lines.append(f"# HELP {name} {metric.help}")
    for labels, value in samples:
        inside = ",".join(f'{label}="{_escaped(each)}"' for label, each in labels.items())
        lines.append(f"{name}{{{inside}}} {float(value)!r}")
    return lines


def _escaped(value: Any) -> str:
    word = str(value).lower() if isinstance(value, bool) else clean(value)
    return word.replace("\\", "\\\\").replace('"', '\\"')
