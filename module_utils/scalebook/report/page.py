# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The document -> the strings that the templates print, in one language and for one kind of reader."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ansible.module_utils.scalebook import hardware
from ansible.module_utils.scalebook.contracts import (
    BASELINE,
    Family,
    Results,
    Row,
    Run,
    StepTimes,
    import_fix,
    message,
)
from ansible.module_utils.scalebook.judge import families, utilisation, weak_scaling
from ansible.module_utils.scalebook.pages.wording import ENGLISH, Wording
from ansible.module_utils.scalebook.quantities import QUANTITIES
from ansible.module_utils.scalebook.report import (
    comparisons,
    environment,
    first_screen,
    method,
    provenance,
    timeline,
)
from ansible.module_utils.scalebook.store import links
from ansible.module_utils.scalebook.text import clean

FILES = ("report.md", "results.json", "results.csv", "results.xlsx", "metrics.prom")
"""Files of a report that the first screen names; the others are charts and DLPerf's results."""


def page(document: Results, wording: Wording = ENGLISH, linked: links.Links = links.NONE) -> dict[str, Any]:
    """Return everything that the templates print, as strings and lists of them."""
    _ = wording
    alone = {row["group"]: row["steps"] for row in document["rows"] if row["label"] == BASELINE}
    lines = {row["case"]: _line(row, alone.get(row["group"]), wording, linked) for row in document["rows"]}
    raw = {row["case"]: row for row in document["rows"]}
    shares = {entry["case"]: entry for entry in document["mfu"]}
    groups = [
        {
            "id": group["id"],
            "title": clean(group["title"]),
            "heading": first_screen.heading(group, document["groups"], wording),
            "settings": first_screen.settings(group, wording),
            "unit": clean(_(group["unit"])),
            "device": _(first_screen.noun_of(group)),
            "devices": _(f"{first_screen.noun_of(group)}s"),
            "workload_title": _(clean(group["workload_title"])),
            "rows": [lines[case] for case in group["rows"]],
            "latency": any(raw[case]["latency_ms"] for case in group["rows"]),
            "card": first_screen.card(
                group, document["groups"], [raw[case] for case in group["rows"]], shares, wording
            ),
        }
        for group in document["groups"]
    ]
    return {
        "title": clean(document["campaign"] or _("measurements")),
        "kind": _(document["kind"]),
        "counts": document["counts"],
        "cases": wording.count(document["counts"]["cases"], "case"),
        "started": wording.moment(document["started"] or ""),
        "simulated": environment.shared(document["simulated"], wording),
        "hardware": environment.machines(document["hardware"], wording, document["rows"]),
        "software": environment.software(document["provenance"], wording),
        "flagged": _flagged(document, wording),
        "commands": _commands(document, wording),
        "campaign_files": linked.campaign,
        "families": [_family(family, groups, wording) for family in document["families"]],
        "groups": groups,
        "strong": [_strong(table, wording) for table in document["strong"]],
        "largest_batches": [_largest_batch(entry, wording) for entry in document["largest_batches"]],
        "self_reported": _self_reported(document),
        "has_steps": any(row["steps"] for row in document["rows"]),
        "waits": _waits(document, wording),
        "mfu": _mfu(document, wording),
        "utilisation": _utilisation(document, wording),
        "bottlenecks": _bottlenecks(document, wording),
        "timeline_rule": timeline.rule(document, wording),
        "baseline": comparisons.with_earlier(document, wording),
        "compare": [comparisons.with_published(entry, wording) for entry in document["compare"]],
        "only_published": comparisons.only_published(document.get("only_published") or [], wording),
        "uncounted": _uncounted(document, wording, linked),
        "uncounted_fix": _(_import_fix(document)),
        "skipped": [
            {
                **entry,
                "label": clean(entry["label"]),
                "reason": wording.tell(entry["reason"]),
            }
            for entry in document["skipped"]
        ],
        "notes": [wording.tell(note) for note in document["notes"]],
        "environment": _environment(document, wording),
        "intervals": any(row["interval"] for row in document["rows"]),
        "rules": method.unique_rules(document["groups"], wording),
        "method": method.sentences(wording),
    }


def _commands(document: Results, wording: Wording) -> list[dict[str, str]]:
    """Return the commands that measure the campaign again, each with its cases in words."""
    short, labels = _short_names(document), {row["case"]: clean(row["label"]) for row in document["rows"]}
    made = []
    for each in document.get("commands") or ():
        groups: dict[str, list[str]] = {}
        for case in [name for name in labels if name in each["cases"]]:
            groups.setdefault(short[case], []).append(labels[case])
        texts = [f"{group} {wording(', ').join(cases)}".strip() for group, cases in groups.items()]
        cases = wording("; ").join(texts) or wording("search for the largest batch")
        made.append({"command": each["command"], "cases": cases})
    return made


def _line(row: Row, alone: StepTimes | None, wording: Wording, linked: links.Links) -> dict[str, Any]:
    """Return the printed cells of one row; `alone` are the steps of its 1n1g."""
    _ = wording
    return {
        "case": row["case"],
        "label": clean(row["label"]),
        "node_num": str(row["nodes"]),
        "gpu_num": str(row["devices"]),
        "rate": wording.number(row["median"], "INCOMPLETE"),
        "latency": _("–") if row["latency_ms"] is None else wording.milliseconds(row["latency_ms"] / 1000),
        "each_rate": _("–") if row["median"] is None else wording.number(row["median"] / row["devices"]),
        "speedup": _speedup(row, wording),
        "efficiency": wording.percent(row["efficiency"]),
        "runs": f"{row['good']}/{row['planned']}",
        "spread": wording.percent(row["spread"]),
        **_limits(row, wording),
        "status": row["status"],
        "flags": _flags(row, wording),
        "steps": _steps(row, alone, wording),
        "each": [_run(run, row, wording, linked) for run in row["runs"]],
    }


def _steps(row: Row, alone: StepTimes | None, wording: Wording) -> dict[str, Any] | None:
    """Return the printed step times of one row, and where they are longer than those of 1n1g, `alone`."""
    steps = row["steps"]
    if not steps:
        return None
    lost = weak_scaling.lost(steps, alone) if alone else None
    return {
        key: value if key == "count" else wording("–") if value is None else wording.milliseconds(value)
        for key, value in cast("dict[str, Any]", steps).items()
    } | {
        key: wording("–") if lost is None else wording.percent(part)
        for key, part in zip(("waiting", "rest"), lost or (None, None), strict=True)
    }


def _waits(document: Results, wording: Wording) -> str:
    """Return what the columns about the slowest device mean, nothing where no row has them."""
    if not any(row["steps"] and row["steps"]["slowest"] is not None for row in document["rows"]):
        return ""
    return wording(
        "«slowest device» is the mean of the longest of as many steps of 1n1g as the case has devices: what "
        "a step would take if devices did nothing but wait for the slowest of them. «waiting» is the part of "
        "the step by which this is longer than a step of 1n1g, «exchange and rest» the part beyond it: "
        "together they are about the efficiency that is lost."
    )


def _run(run: Run, row: Row, wording: Wording, linked: links.Links) -> dict[str, Any]:
    """Return the printed cells of one run that counts."""
    return {
        "repeat": run["repeat"],
        "rate": wording.number(run["rate"]),
        "time_source": wording(clean(run["time_source"])),
        "second": wording.number((run["second"] or {}).get("rate")),
        "differs": wording.percent(run["differs"]),
        "drift": wording.percent(run["drift"]),
        "outlier": run["repeat"] in row["outliers"],
        "steady": _flag_word(run["steady"], wording) if run["steady"] else "",
        "links": linked.runs.get((row["case"], str(run["repeat"])), []),
    }


def _speedup(row: Row, wording: Wording) -> str:
    if row["speedup"] is None:
        return wording("n/a")
    return "1" if row["label"] == BASELINE else wording.speedup(row["speedup"])


def _limits(row: Row, wording: Wording) -> dict[str, str]:
    """Return the printed ranges and 95 % intervals of a row of weak or of strong scaling."""
    missing = "–" if row["label"] == BASELINE else "n/a"
    low, high = row["min"], row["max"]
    limits = None if low is None or high is None or row["good"] < 2 else [low, high]
    return {
        "range": wording.between(limits, rates=True),
        "interval": wording.between(row["interval"], rates=True),
        "speedup_range": wording.between(row["speedup_range"], missing),
        "speedup_interval": wording.between(row["speedup_interval"], missing),
    }


def _flags(row: Row, wording: Wording) -> list[dict[str, str]]:
    """Return the flags of a row: the few letters that fit into a cell, and the sentence."""
    return [
        {
            "code": flag["code"],
            "short": _few_letters(row, flag["code"], wording),
            "text": wording.tell(flag["message"]),
        }
        for flag in row["flags"]
    ]


def _few_letters(row: Row, code: str, wording: Wording) -> str:
    """Return the few letters of a flag in a cell: its numbers, or what its code stands for."""
    if code == "runs":
        return f"{row['good']}/{row['planned']}"
    if code == "shared-machine":
        return hardware.shared(row, wording) or wording("machines not recorded")
    return _flag_word(code, wording)


def _flag_word(code: str, wording: Wording) -> str:
    """Return a flag in as few letters as a cell has room for."""
    return wording.tell(message(f"short.{code}"))


def _flagged(document: Results, wording: Wording) -> list[dict[str, str]]:
    """Return each kind of flag with how many cases have it, and the group of the first of them."""
    found: dict[str, list[str]] = {}
    for row in document["rows"]:
        for code in {flag["code"]: None for flag in row["flags"]}:
            found.setdefault(code, []).append(row["group"])
    return [
        {
            "code": code,
            "id": groups[0],
            "text": f"{len(groups)} × {_flag_word(code, wording)}",
        }
        for code, groups in found.items()
    ]


def _family(family: Family, printed: Sequence[Mapping[str, Any]], wording: Wording) -> dict[str, Any]:
    """Return the groups of a family and, where it has several workloads, the cells of their comparison."""
    return {
        "name": clean(family["family"]),
        "groups": [group for group in printed if group["id"] in family["groups"]],
        "columns": [
            {"name": clean(column["name"]), "unit": clean(wording(column["unit"]))}
            for column in family["columns"]
        ],
        "lines": [
            {
                "label": clean(line["label"]),
                "title": clean(_line_title(line["title"], wording)),
                "cells": [_family_cell(cell, wording) for cell in line["cells"]],
            }
            for line in family["lines"]
        ],
    }


def _line_title(title: str, wording: Wording) -> str:
    """Return the title of a line in the language of the report; precision, batch and numbers stay."""
    return re.sub("|".join(families.TITLE_WORDS), lambda found: wording(found[0]), title)


def _family_cell(cell: Mapping[str, Any] | None, wording: Wording) -> dict[str, str]:
    if cell is None:
        return dict.fromkeys(("rate", "speedup", "efficiency"), "–")
    return {
        "rate": wording.number(cell["median"], "INCOMPLETE"),
        "speedup": wording.speedup(cell["speedup"]),
        "efficiency": wording.percent(cell["efficiency"]),
    }


def _environment(document: Results, wording: Wording) -> list[dict[str, str]]:
    """Return the rows of the environment, and the name of then of a campaign that has another one now."""
    name = clean(document["plan"].get("campaign") or "")
    renamed = document["kind"] != "import" and name and name != clean(document["campaign"])
    first = [{"what": wording("measured as campaign"), "where": "", "value": name}] if renamed else []
    return first + [
        {
            "what": _fact(row["what"], wording),
            "where": wording(row["where"]) if row["where"] == provenance.ALL else row["where"],
            "value": wording.sentence(row["value"]),
        }
        for row in provenance.provenance_rows(document["provenance"] or {})
    ]


def _fact(what: str, wording: Wording) -> str:
    """Return what a dotted key of provenance.json is called, its workload before it."""
    workload, _, key = ("", "", what) if what in environment.FACTS else what.rpartition(".")
    return f"{workload} {wording(environment.FACTS[key])}".strip() if key in environment.FACTS else what


def _largest_batch(entry: Mapping[str, Any], wording: Wording) -> dict[str, str]:
    """Return the printed cells of a search for the largest batch."""
    failed = f"{entry['failed']} ({clean(entry['failed_at'])})" if entry["failed"] else wording("–")
    return {
        "title": clean(entry["title"]),
        "points": clean(", ".join(entry["points"])),
        "largest": str(entry["largest"] or wording("–")),
        "failed": failed,
        "runs": str(entry["runs"]),
        "reason": wording.tell(entry["reason"] or ""),
    }


def _self_reported(document: Results) -> list[dict[str, Any]]:
    """Return the printed cells of what workloads report themselves."""
    short = _short_names(document)
    # The table of the MFU has it, of the median rate.
    elsewhere = ["mfu"] if any(entry["mfu"] is not None for entry in document["mfu"]) else []
    return [
        {
            "workload": clean(table["workload"]),
            "columns": [clean(name) for name in table["columns"] if name not in elsewhere],
            "rows": [
                [
                    " ".join(filter(None, [clean(row["label"]), short[row["case"]]])),
                    *(
                        clean(row["values"].get(name, ""))
                        for name in table["columns"]
                        if name not in elsewhere
                    ),
                    str(row["runs"]),
                ]
                for row in table["rows"]
            ],
        }
        for table in document["self_reported"]
    ]


def _short_names(document: Results) -> dict[str, str]:
    """Return the name of the group of each case, '' where there is one group: the heading has it."""
    several = len(document["groups"]) > 1
    return {
        case: clean(group["short"]) if several else ""
        for group in document["groups"]
        for case in group["rows"]
    }


def _mfu(document: Results, wording: Wording) -> list[dict[str, str]]:
    """Return the printed cells of the arithmetic per device, [] where no workload declares it."""
    short = _short_names(document)
    return [
        {
            "label": clean(entry["label"]),
            "group": short[entry["case"]],
            "gflop": wording("n/a") if entry["flop"] is None else f"{entry['flop'] / 1e9:.4g}",
            "unit": clean(wording(entry["unit"])),
            "tflops": wording("n/a") if entry["tflops"] is None else f"{entry['tflops']:.4g}",
            "peak": wording("n/a") if entry["peak_tflops"] is None else f"{entry['peak_tflops']:g}",
            "mfu": wording.percent(entry["mfu"]),
            "about": wording.tell(entry["peak_of"] or entry["reason"] or ""),
        }
        for entry in document["mfu"]
    ]


def _utilisation(document: Results, wording: Wording) -> list[dict[str, str]]:
    """Return the printed cells of the utilisation, [] where it was not recorded."""
    short = _short_names(document)
    return [
        {
            "label": clean(line["label"]),
            "group": short[line["case"]],
            "quantity": wording.tell(message(QUANTITIES[line["quantity"]].code))
            + wording(", ")
            + line["unit"],
            **{
                key: utilisation.printed(value)
                for key, value in (("mean", line["mean"]), ("min", line["min"]), ("max", line["max"]))
            },
            "of": str(line["of"]),
            "judgement": wording.tell(utilisation.judgement(line) or ""),
        }
        for line in document["utilisation"]
    ]


def _bottlenecks(document: Results, wording: Wording) -> list[dict[str, str]]:
    """Return the sentence on the bottleneck of each case."""
    short = _short_names(document)
    return [
        {
            "label": clean(entry["label"]),
            "group": short[entry["case"]],
            "sentence": wording.tell(entry["message"]),
        }
        for entry in document["bottlenecks"]
    ]


def _strong(table: Mapping[str, Any], wording: Wording) -> dict[str, Any]:
    """Return the printed cells of a table of strong scaling."""
    return {
        "id": table["id"],
        "title": clean(table["title"]),
        "unit": clean(wording(table["unit"])),
        "rows": [
            {
                "label": clean(row["label"]),
                "node_num": str(row["nodes"]),
                "gpu_num": str(row["devices"]),
                "bsz": str(row["bsz"]) + (f" × {row['accumulation']}" if row["accumulation"] != 1 else ""),
                "rate": wording.number(row["median"]),
                "speedup": wording.speedup(row["speedup"]),
                "efficiency": wording.percent(row["efficiency"]),
                "runs": f"{row['good']}/{row['planned']}",
                **_limits(row, wording),
                "flags": _flags(row, wording),
            }
            for row in table["rows"]
        ],
    }


def _import_fix(document: Results) -> str:
    """Return how to have logs count that were imported as those of another case; a campaign names its own."""
    reasons = [str(entry["reason"]) for entry in document["uncounted"]]
    return import_fix(reasons) if document["kind"] == "import" else ""


def _uncounted(document: Results, wording: Wording, linked: links.Links) -> list[dict[str, Any]]:
    """Return the excluded runs, repeats of one case with the same reason on one line.

    The last lines and the links are those of the first of them.
    """
    short = _short_names(document)
    repeats: dict[tuple[str, ...], list[str]] = {}
    first: dict[tuple[str, ...], dict[str, Any]] = {}
    for entry in document["uncounted"]:
        reason = wording.tell(entry["reason"])
        status, source = wording(entry["status"]), clean(entry["source"] or "")
        # A run of a search belongs to no group.
        group = short.get(entry["case"], "")
        key = (entry["case"], clean(entry["label"]), group, status, reason, source)
        repeats.setdefault(key, []).append(str(entry["repeat"]))
        last = [clean(line) for line in entry["last_lines"]]
        own = linked.runs.get((entry["case"], str(entry["repeat"])), [])
        first.setdefault(key, {"last_lines": last, "links": own})
    names = ("case", "label", "group", "status", "reason", "source")
    return [
        {**dict(zip(names, key, strict=True)), "repeats": ", ".join(each), **first[key]}
        for key, each in repeats.items()
    ]
