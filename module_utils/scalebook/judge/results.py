# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The report as one document (results.json): plain data, every number unrounded.

All other forms of the report are made from it.  The same records always make the same document: it holds no
time of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from ansible.module_utils.scalebook import command, hardware, network, published
from ansible.module_utils.scalebook.contracts import (
    RESULTS_SCHEMA,
    Command,
    Group,
    Hardware,
    Message,
    Plan,
    Results,
    Row,
    message,
)
from ansible.module_utils.scalebook.grouping import grouped
from ansible.module_utils.scalebook.judge import (
    baseline,
    bottleneck,
    conclusions,
    dlperf_format,
    families,
    flags,
    language_rates,
    largest_batch,
    mfu,
    self_reported,
    sharing,
    strong_scaling,
    timelines,
    utilisation,
    weak_scaling,
)
from ansible.module_utils.scalebook.judge.campaign import Baseline, Campaign, ManifestCheck, notes_of
from ansible.module_utils.scalebook.judge.runs import binding_of
from ansible.module_utils.scalebook.workload import UNKNOWN, Workloads, called_today

FEW = 3
"""Runs that a note names."""


def build_results(
    campaign: Campaign,
    workloads: Workloads | None = None,
    published_rows: Sequence[published.PublishedRow] | None = None,
    earlier: Baseline | None = None,
    check: ManifestCheck | None = None,
    min_utilisation: float = utilisation.CRITERION,
    peaks: mfu.Peaks | None = None,
    language: language_rates.Table | None = None,
) -> Results:
    """Return the document of a campaign or an import.

    `workloads` are the declarations by name.  `published_rows` is the published table to compare with,
    None for no comparison, `earlier` a campaign to compare with, `check` the comparison of the files
    with the manifest, `min_utilisation` the per cent that resources are judged by, `peaks` those of
    GPUs, `language` the published rates of language models to compare with.  Raises BaselineError when
    `earlier` has no case of this campaign.
    """
    workloads = workloads or {}
    plan = campaign.plan
    name = str(plan.get("source") or "")
    tables = weak_scaling.tabulate(
        list(campaign.cases.values()), campaign.runs, plan.get("runs") or (), workloads
    )
    groups, rows = tables["groups"], tables["rows"]
    sharing.attach(rows, campaign.runs, campaign.hardware)
    shares = mfu.tabulate(rows, campaign.hardware, workloads, peaks)
    usages = utilisation.tabulate(rows, campaign.runs, min_utilisation)
    flags.attach(rows, campaign, workloads, check, shares, usages)
    compared = _compare_published(groups, rows, published_rows, workloads, language is not None)
    related = families.tabulate(groups, rows, workloads)
    bounds = bottleneck.tabulate(rows, campaign.runs, campaign.cases, workloads)
    return {
        "schema": RESULTS_SCHEMA,
        "kind": "import" if name else "campaign",
        "campaign": name or campaign.name,
        "counts": _counts(rows),
        "started": min((run["started"] for run in campaign.runs if run["started"]), default=None),
        "simulated": sharing.simulated(campaign.runs),
        "hardware": campaign.hardware,
        "families": related,
        "groups": groups,
        "rows": rows,
        "uncounted": tables["uncounted"] + largest_batch.uncounted(plan),
        "strong": strong_scaling.tabulate(rows, workloads),
        "largest_batches": largest_batch.tabulate(plan, workloads),
        "self_reported": self_reported.tabulate(rows),
        "mfu": shares,
        "utilisation": usages,
        "bottlenecks": bounds,
        "best": [row["case"] for row in conclusions.best(rows)],
        "conclusions": conclusions.conclude(rows, related, bounds),
        "trust": conclusions.trust(rows, campaign.hardware),
        "timelines": timelines.choose(rows, campaign.runs),
        "baseline": _compare(rows, campaign.hardware, earlier, workloads),
        "skipped": _skipped(plan),
        "notes": _notes(groups, rows, campaign, check),
        "compare": compared,
        "only_published": _only_published(groups, compared, published_rows, workloads),
        **_beside_language(groups, rows, campaign.hardware, workloads, language),
        "result_files": dlperf_format.result_files(groups, name),
        "plan": plan,
        "commands": _commands(campaign, workloads),
        "provenance": campaign.provenance or None,
        "files": [],
    }


def _counts(rows: Sequence[Row]) -> dict[str, int]:
    good, planned = (sum(row[key] for row in rows) for key in ("good", "planned"))
    return {"cases": len(rows), "good": good, "planned": planned}


def _skipped(plan: Plan) -> list[dict[str, Any]]:
    entries = [(entry["case"], entry["reason"]) for entry in plan.get("skipped") or ()]
    return [
        {"case": case.get("name"), "label": case.get("label"), "reason": reason} for case, reason in entries
    ]


def dlperf_files(document: Results) -> dict[str, dict[str, dict[str, dlperf_format.Figures]]]:
    """Return file name -> content of every DLPerf result file of the report."""
    rows = {row["case"]: row for row in document["rows"]}
    return {
        file: dlperf_format.result(
            rows[case] for index in indices for case in document["groups"][index]["rows"]
        )
        for file, indices in document["result_files"].items()
    }


def _compare(
    rows: Sequence[Row],
    entries: Sequence[Hardware],
    earlier: Baseline | None,
    workloads: Workloads,
) -> dict[str, Any] | None:
    if earlier is None:
        return None
    try:
        compared = baseline.compare(rows, earlier.rows, earlier.limit, workloads)
    except (ValueError, ArithmeticError) as exc:
        raise baseline.BaselineError(f"baseline={earlier.path}: {exc}") from None
    for entry in [*compared["only_here"], *compared["only_there"]]:
        entry["compiler"] = weak_scaling.compiler_of(entry["workload"], workloads)
    return {"name": earlier.name, **_unlike(rows, entries, earlier, workloads), **compared}


def _unlike(
    rows: Sequence[Row], entries: Sequence[Hardware], earlier: Baseline, workloads: Workloads
) -> dict[str, Message | None]:
    """Return on what cases ran, and how their ranks were bound, that was not the same here and there.

    None is for what all had the same.  On the same hardware, what connected the GPUs may differ.
    """
    there = {baseline.key_of(row, workloads): row for row in earlier.rows}
    both = [(row, other) for row in rows if (other := there.get(baseline.key_of(row, workloads)))]
    kinds = [(hardware.kind(entries, row), hardware.kind(earlier.hardware, other)) for row, other in both]
    ways = [(network.of_runs(row["runs"]), network.of_runs(other["runs"])) for row, other in both]
    bindings = [(binding_of(row), binding_of(other)) for row, other in both]

    def difference(code: str, pairs: Sequence[tuple[str | None, str | None]]) -> Message | None:
        unlike = [pair for pair in pairs if all(pair) and pair[0] != pair[1]]
        now, then = (list(dict.fromkeys(pair[side] for pair in unlike)) for side in (0, 1))
        return message(f"compare.{code}", name=earlier.name, before=then, now=now) if unlike else None

    return {
        "other_hardware": difference("other-hardware", kinds) or difference("other-hardware", ways),
        "other_binding": difference("other-binding", bindings),
    }


def _commands(campaign: Campaign, workloads: Workloads) -> list[Command]:
    """Return the commands that measure again what has records."""
    runs_of_case = grouped(
        (run for run in campaign.runs if run["status"] != "skipped"), lambda run: run["case"]
    )
    measured = [
        command.Measured(
            campaign.cases[case], len(own), [each for run in own if (each := run.get("command"))]
        )
        for case, own in runs_of_case.items()
    ]
    return command.commands(campaign.plan, measured, workloads)


def _compare_published(
    groups: Iterable[Group],
    rows: Iterable[Row],
    table: Sequence[published.PublishedRow] | None,
    workloads: Workloads,
    without_language: bool,
) -> list[dict[str, Any]]:
    if table is None:
        return []
    by_case = {row["case"]: row for row in rows}
    compared = []
    for group in groups:
        name, settings = called_today(group["workload"], group.get("settings"), workloads)
        declared = workloads.get(name, UNKNOWN)
        if without_language and declared.published:
            continue
        size = declared.sample_size(settings)
        own = [by_case[case] for case in group["rows"]]
        compared += published.compare(group, own, table, declared.dlperf, size)
    return compared


def _beside_language(
    groups: Iterable[Group],
    rows: Iterable[Row],
    entries: Sequence[Hardware],
    workloads: Workloads,
    table: language_rates.Table | None,
) -> Results:
    """Return the key `published` of the document, which it has where language models are compared."""
    if table is None:
        return {}
    return {"published": language_rates.tabulate(groups, rows, entries, workloads, table)}


def _only_published(
    groups: Iterable[Group],
    compared: Sequence[published.Comparison],
    table: Sequence[published.PublishedRow] | None,
    workloads: Workloads,
) -> list[dict[str, Any]]:
    """Return what DLPerf published of the families of this report and nothing of ours stands beside."""
    families: dict[str, list[str]] = {}
    for group in groups:
        declared = workloads.get(group["workload"], UNKNOWN)
        if declared.dlperf:
            models = families.setdefault(declared.family, [])
            models += [each for each in declared.dlperf.all_models() if each not in models]
    return published.only_published(families, compared, table or ())


def _notes(
    groups: Sequence[Group], rows: Sequence[Row], campaign: Campaign, check: ManifestCheck | None
) -> list[Message]:
    """Return what belongs to the whole report."""
    notes = [
        *campaign.doubts,
        *([message("note.printed-rates")] if campaign.reading == "printed" else ()),
        *(notes_of(check) if check else ()),
        *(message("note.not-counted", what=what) for what in campaign.unreadable),
    ]
    for group in groups:
        if any(row["good"] and row["speedup"] is None for row in rows if row["group"] == group["id"]):
            notes.append(message("note.no-speedup", group=group["title"]))
    return [*notes, *_run_notes(rows)]


def _run_notes(rows: Sequence[Row]) -> list[Message]:
    """Return the notes of runs, each once, with the first of the runs that have it."""
    notes_of: dict[str, tuple[Message, list[Message]]] = {}
    for row in rows:
        for run in row["runs"]:
            place = message("note.run", case=row["label"], repeat=run["repeat"])
            for note in run["notes"]:
                notes_of.setdefault(json.dumps(note, sort_keys=True), (note, []))[1].append(place)
    return [
        message("note.of-runs", note=note, runs=places)
        if len(places) <= FEW
        else message("note.of-more-runs", note=note, runs=places[:FEW], count=len(places) - FEW)
        for note, places in notes_of.values()
    ]
