# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Campaigns, prices and criteria -> evaluation.json, of which the document is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook import command, hardware
from ansible.module_utils.scalebook.contracts import Results
from ansible.module_utils.scalebook.evaluate import (
    costs,
    criteria,
    differences,
    extrapolate,
    frameworks,
    ranking,
    sentences,
)
from ansible.module_utils.scalebook.evaluate.options import Option, of_campaign, without_run
from ansible.module_utils.scalebook.judge.prices import Price
from ansible.module_utils.scalebook.workload import Workloads

SCHEMA = 4
AXES = ("nodes", "gpus", "bsz", "dtype", "xla")
"""What the table of measured cases says of a campaign."""


def document(
    given: Mapping[str, Any],
    campaigns: Sequence[Results],
    published: Sequence[Option],
    price_list: Sequence[Price],
    workloads: Workloads,
    checksums: Mapping[str, str],
) -> dict[str, Any]:
    """Return the evaluation as data, every number unrounded.

    `given` are the options of module evaluation, `campaigns` the contents of results.json of each campaign,
    `workloads` the declarations, `checksums` the SHA-256 of the files that were read.
    Raises costs.ComparisonError where prices are in several currencies.
    """
    measured = [option for results in campaigns for option in of_campaign(results, workloads)]
    planned = [*measured, *(option for results in campaigns for option in without_run(results, workloads))]
    options = [*measured, *published]
    chosen = {name: limit for name, limit in given["criteria"].items() if limit is not None}
    limits = {**criteria.DEFAULTS, **chosen}
    versions = frameworks.of_campaigns(campaigns, workloads)
    data = {
        "schema": SCHEMA,
        "title": given["title"],
        "platform": given["platform"],
        "texts": dict(given["texts"]),
        "campaigns": [campaign_of(results, workloads) for results in campaigns],
        "frameworks": versions,
        "families": [
            {
                "name": name,
                "frameworks": [
                    line
                    for line in [*versions, *frameworks.of_published(published, workloads)]
                    if line["family"] == name
                ],
                "options": [option for option in options if option["family"] == name],
                "ranking": ranking.of_family([option for option in options if option["family"] == name]),
                "differences": differences.of_family(campaigns, name, workloads),
            }
            for name in dict.fromkeys(option["family"] for option in options)
        ],
        "criteria": [
            criteria.scaling(planned, limits["efficiency"], limits["machines"]),
            criteria.utilisation(planned, limits["utilisation"]),
            # What others published is judged by none; nobody is shown to be ahead of it.
            criteria.ahead([*planned, *published], limits["ahead"]),
        ],
        "extrapolations": extrapolate.of_options(measured, limits["machines"]),
        "task": costs.task(given["task"]),
        "deadline_hours": given["deadline_hours"],
        "budget": given["budget"],
        "electricity": given["electricity"],
        "costs": costs.of_options(given, options, price_list),
        "slower_than_one": costs.slower_than_one(options),
        "problems": [
            {
                "campaign": results["campaign"],
                **{name: run.get(name) for name in ("case", "repeat", "reason")},
            }
            for results in campaigns
            for run in results.get("uncounted") or ()
        ],
        "checksums": dict(checksums),
    }
    return {**data, "conclusion": sentences.conclusion(data)}


def campaign_of(results: Results, workloads: Workloads) -> dict[str, Any]:
    """Return what the document says of a campaign: when, on what, which cases and runs, which commands."""
    rows: Sequence[Mapping[str, Any]] = results["rows"]
    return {
        "name": results["campaign"],
        "started": results["started"],
        "runs": results["counts"],
        "simulated": results.get("simulated"),
        "hardware": hardware.hosts(results.get("hardware") or ()),
        "matrix": {
            **{axis: sorted({row[axis] for row in rows}) for axis in AXES},
            "repeats": sorted({row["planned"] for row in rows}),
            "window": list(dict.fromkeys(differences.window(group) for group in results["groups"])),
        },
        "commands": [each["command"] for each in command.of_results(results, workloads)],
    }
