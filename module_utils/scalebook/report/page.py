# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The document -> the strings that the templates print."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook import hardware
from ansible.module_utils.scalebook.contracts import BASELINE, ENOUGH_RUNS, GROUP_FIELDS, Family, Results
from ansible.module_utils.scalebook.report import (
    baseline,
    dlperf_format,
    stats,
    timeline,
    utilisation,
    weak_scaling,
)
from ansible.module_utils.scalebook.text import clean, count_of

INTERVAL_RULES = (
    "range: the slowest and the fastest run. The range of three runs misses the true median in 25 % of "
    "cases, that of five in 6 %.",
    f"95 % interval: from {stats.INTERVAL_RUNS} runs on, by order statistics, right for any distribution of "
    "independent runs.",
    "speedup range: the least and the largest quotient of a run of the case and one of 1n1g. speedup 95 % "
    f"interval: from {stats.INTERVAL_RUNS} runs of both on, Welch's t interval of the logarithms of rates.",
)
FLAG_RULE = (
    f"An outlier, from {stats.OUTLIER_RUNS} runs on, is flagged and kept: Grubbs' test at "
    f"{100 * stats.OUTLIER_LEVEL:g} %, and more than {100 * stats.OUTLIER_SHARE:g} % from the median."
)
DRIFT_RULE = (
    f"It is flagged from {100 * stats.STEADY_SHARE:g} % and {stats.STEADY_ERRORS:g} standard errors "
    "on; these allow for steps that resemble the step before."
)
BASELINE_RULE = (
    "A difference counts if it is significant (Welch's t test of the logarithms of the rates, "
    f"{100 * baseline.ALARMS:g} % for the whole comparison) and the medians differ by more than "
    f"{100 * baseline.EFFECT:g} % or the limit, whichever is less."
)


def percent(value: float | None, digits: int = 1) -> str:
    """Return a fraction as per cent, 'n/a' for None."""
    # Rounded first: -0.0004 would print as -0.0.
    return "n/a" if value is None else f"{round(100 * value, digits) + 0.0:.{digits}f} %"


def between(pair: Sequence[float] | None, missing: str = "n/a", digits: int = 2) -> str:
    """Return a range or an interval as text."""
    return missing if pair is None else f"{pair[0]:.{digits}f} – {pair[1]:.{digits}f}"


def rate_range(row: Mapping[str, Any]) -> list[float] | None:
    """Return the least and the largest rate of a row, None for one run."""
    return [row["min"], row["max"]] if row["good"] > 1 else None


def _limits(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the printed ranges and 95 % intervals of a row of weak or of strong scaling."""
    missing = "–" if row["label"] == BASELINE else "n/a"
    return {
        "range": between(rate_range(row)),
        "interval": between(row["interval"]),
        "speedup_range": between(row["speedup_range"], missing),
        "speedup_interval": between(row["speedup_interval"], missing),
    }


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.1f}" if seconds < 10 else f"{1000 * seconds:.0f}"


def _line(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the printed cells of one row."""
    entry = row["dlperf"]
    steps = row["steps"]
    return {
        "case": row["case"],
        "label": clean(row["label"]),
        "node_num": str(row["nodes"]),
        "gpu_num": str(row["devices"]),
        "rate": dlperf_format.number(entry["median_speed"]) if entry else "INCOMPLETE",
        "speedup": dlperf_format.speedup_text(entry, row["label"]),
        "efficiency": percent(row["efficiency"]),
        "runs": f"{row['good']}/{row['planned']}",
        "spread": percent(row["spread"]),
        "cv": "n/a" if row["cv"] is None else f"{row['cv']:.2f} %",
        **_limits(row),
        "status": row["status"],
        "flags": [
            {"code": flag["code"], "short": _short(flag, row), "text": clean(flag["text"])}
            for flag in row["flags"]
        ],
        "steps": {key: _milliseconds(steps[key]) for key in ("p50", "p95", "p99", "max")}
        | {"count": steps["count"]}
        if steps
        else None,
        "each": [
            {
                "repeat": run["repeat"],
                "rate": dlperf_format.number(run["rate"]),
                "time_source": clean(run["time_source"]),
                "second": dlperf_format.number((run["second"] or {}).get("rate")),
                "differs": percent(run["differs"]),
                "drift": percent(run["drift"]),
                "outlier": run["repeat"] in row["outliers"],
                "steady": run["steady"] or "",
            }
            for run in row["runs"]
        ],
    }


def _short(flag: Mapping[str, str], row: Mapping[str, Any]) -> str:
    """Return the few letters of a flag that fit into a cell."""
    names = {
        "warm-up-not-over": "warm-up not over",
        "runs": f"{row['good']}/{row['planned']}",
        "incomplete": "INCOMPLETE",
        "superlinear": "above linear",
        "no-baseline": "no 1n1g",
        "time-sources-differ": "time sources differ",
        "baseline-provisional": "baseline provisional",
    }
    return names.get(flag["code"], flag["code"].replace("-", " "))


def page(document: Results) -> dict[str, Any]:
    """Return everything that the templates print, as strings and lists of them."""
    lines = {row["case"]: _line(row) for row in document["rows"]}
    raw: dict[str, Mapping[str, Any]] = {row["case"]: row for row in document["rows"]}
    groups = []
    for group in document["groups"]:
        measured = [case for case in group["rows"] if raw[case]["good"]]
        top = max(measured, key=lambda case: (raw[case]["devices"], raw[case]["median"]), default=None)
        groups.append(
            {
                "id": group["id"],
                "title": clean(group["title"]),
                "unit": clean(group["unit"]),
                "workload_title": clean(group["workload_title"]),
                "rule": rule(group),
                "rows": [lines[case] for case in group["rows"]],
                "top": lines[top] if top else None,
            }
        )
    return {
        "title": clean(document["campaign"] or "measurements"),
        "kind": document["kind"],
        "counts": document["counts"],
        "started": document["started"],
        "simulated": _simulated(document),
        "hardware": _hardware(document),
        "families": [_family(family, groups) for family in document["families"]],
        "groups": groups,
        "strong": [_strong(table) for table in document["strong"]],
        "self_reported": [_self_reported(table) for table in document["self_reported"]],
        "mfu": _mfu(document),
        "utilisation": _utilisation(document),
        "bottlenecks": _bottlenecks(document),
        "timeline_rule": timeline.rule(document),
        "baseline": _baseline(document),
        "compare": [_compared(entry) for entry in document["compare"]],
        "uncounted": _uncounted(document),
        "skipped": [
            {**entry, "label": clean(entry["label"]), "reason": clean(entry["reason"])}
            for entry in document["skipped"]
        ],
        "notes": [clean(note) for note in document["notes"]],
        "environment": _plan_rows(document) + provenance_rows(document["provenance"] or {}),
        "intervals": any(row["interval"] for row in document["rows"]),
        "interval_rules": INTERVAL_RULES,
        "flag_rule": FLAG_RULE,
        "drift_rule": DRIFT_RULE,
        "enough": ENOUGH_RUNS,
    }


def _simulated(document: Results) -> str:
    """Return `1 machine, 4 simulated nodes` where nodes shared machines, else ''."""
    counts = document["simulated"]
    if not counts:
        return ""
    return f"{count_of(counts['machines'], 'machine')}, {count_of(counts['nodes'], 'simulated node')}"


def _hardware(document: Results) -> list[str]:
    """Return a line for each kind of node, `not recorded` alone where no record says it."""
    entries = document["hardware"]
    if not entries:
        return ["not recorded"]
    several = len(entries) > 1
    return [
        clean((f"{', '.join(entry['nodes'])}: " if several else "each node: ") + hardware.sentence(entry))
        for entry in entries
    ]


def _family(family: Family, groups: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the groups of a family and, where it has several workloads, the cells of their comparison."""
    return {
        "name": clean(family["family"]),
        "groups": [group for group in groups if group["id"] in family["groups"]],
        "columns": [
            {"name": clean(column["name"]), "unit": clean(column["unit"])} for column in family["columns"]
        ],
        "lines": [
            {
                "label": clean(line["label"]),
                "title": clean(line["title"]),
                "cells": [_family_cell(cell) for cell in line["cells"]],
            }
            for line in family["lines"]
        ],
    }


def _family_cell(cell: Mapping[str, Any] | None) -> dict[str, str]:
    if cell is None:
        return dict.fromkeys(("rate", "speedup", "efficiency"), "–")
    return {
        "rate": "INCOMPLETE" if cell["median"] is None else dlperf_format.number(cell["median"]),
        "speedup": _speedup(cell["speedup"]),
        "efficiency": percent(cell["efficiency"]),
    }


def _plan_rows(document: Results) -> list[dict[str, str]]:
    """Return the name that the campaign had when it was measured, if its directory has another one."""
    name = clean(document["plan"].get("campaign") or "")
    if document["kind"] == "import" or not name or name == clean(document["campaign"]):
        return []
    return [{"what": "measured as campaign", "where": "", "value": name}]


def _self_reported(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the printed cells of what a workload reports itself."""
    return {
        "workload": clean(table["workload"]),
        "columns": [clean(name) for name in table["columns"]],
        "rows": [
            [
                clean(row["label"]),
                *(clean(row["values"].get(name, "")) for name in table["columns"]),
                str(row["runs"]),
            ]
            for row in table["rows"]
        ],
    }


def _mfu(document: Results) -> list[dict[str, str]]:
    """Return the printed cells of the arithmetic per device, [] where no workload declares it."""
    short = {case: clean(group["short"]) for group in document["groups"] for case in group["rows"]}
    return [
        {
            "label": clean(entry["label"]),
            "group": short[entry["case"]] if len(document["groups"]) > 1 else "",
            "gflop": "n/a" if entry["flop"] is None else f"{entry['flop'] / 1e9:.4g}",
            "unit": clean(entry["unit"]),
            "tflops": "n/a" if entry["tflops"] is None else f"{entry['tflops']:.4g}",
            "peak": "n/a" if entry["peak_tflops"] is None else f"{entry['peak_tflops']:g}",
            "mfu": percent(entry["mfu"]),
            "about": clean(entry["peak_of"] or entry["reason"] or ""),
        }
        for entry in document["mfu"]
    ]


def _utilisation(document: Results) -> list[dict[str, str]]:
    """Return the printed cells of the utilisation, [] where it was not recorded."""
    short = {case: clean(group["short"]) for group in document["groups"] for case in group["rows"]}
    return [
        {
            "label": clean(line["label"]),
            "group": short[line["case"]] if len(document["groups"]) > 1 else "",
            "quantity": f"{utilisation.QUANTITIES[line['quantity']][0]}, {line['unit']}",
            **{
                key: utilisation.printed(value)
                for key, value in (("mean", line["mean"]), ("min", line["min"]), ("max", line["max"]))
            },
            "of": str(line["of"]),
            "judgement": utilisation.judgement(line),
        }
        for line in document["utilisation"]
    ]


def _bottlenecks(document: Results) -> list[dict[str, str]]:
    """Return the sentence on the bottleneck of each case."""
    short = {case: clean(group["short"]) for group in document["groups"] for case in group["rows"]}
    return [
        {
            "label": clean(entry["label"]),
            "group": short[entry["case"]] if len(document["groups"]) > 1 else "",
            "sentence": clean(entry["sentence"]),
        }
        for entry in document["bottlenecks"]
    ]


def _strong(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the printed cells of a table of strong scaling."""
    return {
        "id": table["id"],
        "title": clean(table["title"]),
        "unit": clean(table["unit"]),
        "rows": [
            {
                "label": clean(row["label"]),
                "node_num": str(row["nodes"]),
                "gpu_num": str(row["devices"]),
                "bsz": str(row["bsz"]) + (f" × {row['accumulation']}" if row["accumulation"] != 1 else ""),
                "rate": dlperf_format.number(row["median"]),
                "speedup": _speedup(row["speedup"]),
                "efficiency": percent(row["efficiency"]),
                "runs": f"{row['good']}/{row['planned']}",
                **_limits(row),
                "flags": [
                    {"code": flag["code"], "short": _short(flag, row), "text": clean(flag["text"])}
                    for flag in row["flags"]
                ],
            }
            for row in table["rows"]
        ],
    }


def _baseline(document: Results) -> dict[str, Any] | None:
    """Return the printed cells of the comparison with an earlier campaign, None without one."""
    made = document["baseline"]
    if not made:
        return None
    short = {case: clean(group["short"]) for group in document["groups"] for case in group["rows"]}
    several = len(document["groups"]) > 1
    return {
        "name": clean(made["name"]),
        "limit": percent(made["limit"]),
        "regressions": made["regressions"],
        "rule": BASELINE_RULE,
        "intervals": any(entry["interval"] for entry in made["rows"]),
        "rows": [
            {
                "label": clean(entry["label"]),
                "group": short[entry["case"]] if several else "",
                "now": dlperf_format.number(entry["now"]),
                "before": dlperf_format.number(entry["before"]),
                "ratio": "n/a" if entry["ratio"] is None else f"{entry['ratio']:.3f}",
                "range": between(entry["range"], digits=3),
                "interval": between(entry["interval"], digits=3),
                "margin": "n/a" if entry["margin"] is None else f"± {percent(entry['margin'])}",
                "verdict": entry["verdict"],
                "regression": entry["regression"],
                "why": clean(entry["why"] or ""),
            }
            for entry in made["rows"]
        ],
        "only_here": [_place(entry) for entry in made["only_here"]],
        "only_there": [_place(entry) for entry in made["only_there"]],
    }


def _place(entry: Mapping[str, Any]) -> str:
    names = (weak_scaling.word(entry, field) for field in GROUP_FIELDS if entry.get(field) is not None)
    return clean(" ".join(filter(None, [entry["label"], *names])))


def rule(group: Mapping[str, Any]) -> str:
    """Return how the throughput of `group` is measured, with its own step numbers."""
    if group.get("epoch_samples"):
        samples = group["epoch_samples"]
        return f"{group['unit']}/s = {samples} / seconds of the last epoch, without the evaluation after it"
    first, last = group["warmup"], group["warmup"] + group["window"]
    accumulation = f" × {group['accumulation']} accumulation steps" if group["accumulation"] != 1 else ""
    return (
        f"{group['unit']}/s = devices × {group['bsz']}{accumulation} × {group['window']} / "
        f"(time of step {last} − time of step {first})"
    )


def _uncounted(document: Results) -> list[dict[str, Any]]:
    """Return the excluded runs, repeats of one case with the same reason on one line.

    The last lines are those of the first of them.
    """
    short = {case: clean(group["short"]) for group in document["groups"] for case in group["rows"]}
    repeats: dict[tuple[str, ...], list[str]] = {}
    lines: dict[tuple[str, ...], list[str]] = {}
    for entry in document["uncounted"]:
        # With one group its name is in the heading already.
        group = short[entry["case"]] if len(document["groups"]) > 1 else ""
        reason, source = clean(entry["reason"]), clean(entry["source"] or "")
        key = (entry["case"], clean(entry["label"]), group, entry["status"], reason, source)
        repeats.setdefault(key, []).append(str(entry["repeat"]))
        lines.setdefault(key, [clean(line) for line in entry["last_lines"]])
    names = ("case", "label", "group", "status", "reason", "source")
    return [
        {**dict(zip(names, key, strict=True)), "repeats": ", ".join(each), "last_lines": lines[key]}
        for key, each in repeats.items()
    ]


def _compared(entry: Mapping[str, Any]) -> dict[str, Any]:
    pairs = []
    for pair in entry["rows"]:
        ratio = pair["rate"] / pair["published_rate"] if pair["rate"] and pair["published_rate"] else None
        pairs.append(
            {
                "label": clean(pair["label"]),
                "devices": str(pair["devices"]),
                "rate": dlperf_format.number(pair["rate"]),
                "published_rate": dlperf_format.number(pair["published_rate"], "–"),
                "ratio": "–" if ratio is None else f"{ratio:.2f}",
                "speedup": _speedup(pair["speedup"]),
                "published_label": pair["published_label"] or "–",
                "published_speedup": _speedup(pair["published_speedup"], "–"),
                "efficiency": percent(pair["efficiency"]),
                "published_efficiency": "–"
                if pair["published_efficiency"] is None
                else percent(pair["published_efficiency"]),
            }
        )
    theirs = ""
    if entry["rows"]:
        names = [
            entry["framework"],
            entry["model"],
            entry["dtype"],
            "XLA" if entry["xla"] else "",
            f"b{entry['bsz']}",
        ]
        theirs = " ".join(filter(None, names)) + (f" ({entry['variant']})" if entry["variant"] else "")
    return {
        "title": clean(entry["title"]),
        "theirs": theirs,
        "comparable": entry["comparable"],
        "why": clean(entry["why"]),
        "warning": entry.get("warning", ""),
        "sources": _sources(pair["source"] for pair in entry["rows"] if pair["source"]),
        "rows": pairs,
    }


def _speedup(value: float | None, missing: str = "n/a") -> str:
    return "1" if value == 1 else dlperf_format.number(value, missing)


def _sources(names: Iterable[str]) -> str:
    """Return `FILE:L1`, `FILE:L2` as `FILE, lines 1, 2`."""
    lines: dict[str, list[str]] = {}
    for name in names:
        file, _, line = name.rpartition(":L")
        lines.setdefault(file or name, []).append(line)
    return "; ".join(f"{file}, lines {', '.join(numbers)}" for file, numbers in lines.items())


def provenance_rows(provenance: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return `{"what", "where", "value"}` rows; nodes that agree share one.

    `provenance` maps nodes to their facts, below `workloads` for each workload, or below `nodes`, or at the
    top; anything else is the campaign's own.
    """
    workloads, nodes = provenance.get("workloads"), provenance.get("nodes")
    if isinstance(workloads, Mapping) and all(isinstance(facts, Mapping) for facts in workloads.values()):
        common = {key: value for key, value in provenance.items() if key not in ("nodes", "workloads")}
        places = {f"{name}." if len(workloads) > 1 else "": facts for name, facts in workloads.items()}
    elif isinstance(nodes, Mapping):
        common = {key: value for key, value in provenance.items() if key != "nodes"}
        places = {"": nodes}
    else:
        places = {"": {key: value for key, value in provenance.items() if isinstance(value, Mapping)}}
        common = {key: value for key, value in provenance.items() if key not in places[""]}
    out = [{"what": what, "where": "", "value": value} for what, value in _flat(common)]
    for prefix, facts in places.items():
        out += [{**row, "what": clean(prefix) + row["what"]} for row in _node_rows(facts)]
    return out


def _node_rows(nodes: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the rows of {node: facts}."""
    found: dict[str, dict[str, list[str]]] = {}
    for node, values in nodes.items():
        for what, value in _flat(values):
            found.setdefault(what, {}).setdefault(value, []).append(clean(node))
    out = []
    for what, values in found.items():
        for value, where in values.items():
            everywhere = len(where) == len(nodes)
            place = "all nodes" if everywhere and len(nodes) > 1 else ", ".join(where)
            out.append({"what": what, "where": place, "value": value})
    return out


def _flat(value: Any, name: str = "") -> list[tuple[str, str]]:
    """Return (dotted name, text) of every leaf."""
    if isinstance(value, Mapping):
        return [
            leaf for key, each in value.items() for leaf in _flat(each, f"{name}.{key}" if name else str(key))
        ]
    if isinstance(value, (list, tuple)):
        return [(clean(name), ", ".join(clean(each) for each in value))]
    return [(clean(name), "" if value is None else clean(value))]
