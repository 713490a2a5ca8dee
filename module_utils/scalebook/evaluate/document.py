# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Campaigns, prices and criteria -> evaluation.json, of which the document is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from ansible.module_utils.scalebook import command, hardware
from ansible.module_utils.scalebook.contracts import Hardware, Message, Results, Statement
from ansible.module_utils.scalebook.evaluate import (
    costs,
    criteria,
    differences,
    extrapolate,
    frameworks,
    ranking,
    sentences,
)
from ansible.module_utils.scalebook.evaluate.costs import Cost
from ansible.module_utils.scalebook.evaluate.criteria import Verdict
from ansible.module_utils.scalebook.evaluate.extrapolate import Extrapolation
from ansible.module_utils.scalebook.evaluate.options import Option, of_campaign, without_run
from ansible.module_utils.scalebook.evaluate.ranking import ModelFamily
from ansible.module_utils.scalebook.grouping import grouped
from ansible.module_utils.scalebook.judge.prices import Price
from ansible.module_utils.scalebook.workload import Workloads

SCHEMA = 4
AXES = ("nodes", "gpus", "bsz", "dtype", "xla")
"""What the table of measured cases says of a campaign."""


class Campaign(TypedDict):
    """A campaign of an evaluation; `matrix` has the values of each axis, `hardware` the hosts."""

    name: str
    started: str | None
    runs: dict[str, int]
    simulated: dict[str, int] | None
    hardware: list[Hardware]
    matrix: dict[str, list[Any]]
    commands: list[str]


class Evaluation(TypedDict):
    """The content of evaluation.json. Numbers are unrounded; what is said of them are messages.

    `texts` are paragraphs of the user's own by section, `features` is what the measured workloads can do by
    their declarations, `task` the training whose time and cost `costs` has, `problems` the runs that do not
    count, `checksums` the SHA-256 of the files that were read, `published_nodes` what the nodes of published
    results were, by the source of their options.
    """

    schema: int
    title: str
    platform: str
    texts: dict[str, str]
    campaigns: list[Campaign]
    frameworks: list[dict[str, Statement]]
    features: list[dict[str, Any]]
    families: list[ModelFamily]
    criteria: list[Verdict]
    extrapolations: list[Extrapolation]
    task: dict[str, Any]
    deadline_hours: float | None
    budget: float | None
    electricity: float | None
    costs: list[Cost]
    slower_than_one: list[dict[str, Any]]
    problems: list[dict[str, Any]]
    checksums: dict[str, str]
    published_nodes: dict[str, list[Hardware]]
    conclusion: list[Message]


def document(
    settings: Mapping[str, Any],
    campaigns: Sequence[Results],
    published: Sequence[Option],
    price_list: Sequence[Price],
    workloads: Workloads,
    checksums: Mapping[str, str],
    nodes: Mapping[str, list[Hardware]] | None = None,
) -> Evaluation:
    """Return the evaluation as data, every number unrounded.

    `settings` are the options of module evaluation, `campaigns` the contents of results.json of each
    campaign, `workloads` the declarations, `checksums` the SHA-256 of the files that were read, `nodes` what
    the nodes of published results were by their source.
    Raises costs.ComparisonError where prices are in several currencies.
    """
    measured = [option for results in campaigns for option in of_campaign(results, workloads)]
    planned = [*measured, *(option for results in campaigns for option in without_run(results, workloads))]
    options = [*measured, *published]
    limits = criteria.limits_of(settings["criteria"])
    versions = frameworks.of_campaigns(campaigns, workloads)
    lines = [*versions, *frameworks.of_published(published, workloads)]
    data: Evaluation = {
        "schema": SCHEMA,
        "title": settings["title"],
        "platform": settings["platform"],
        "texts": dict(settings["texts"]),
        "campaigns": [campaign_of(results, workloads) for results in campaigns],
        "frameworks": versions,
        "features": frameworks.matrix(campaigns, workloads),
        "families": _families(campaigns, options, lines, workloads),
        "criteria": criteria.judge_all(planned, published, limits),
        "extrapolations": extrapolate.of_options(measured, limits["machines"]),
        "task": costs.task(settings["task"]),
        "deadline_hours": settings["deadline_hours"],
        "budget": settings["budget"],
        "electricity": settings["electricity"],
        "costs": costs.of_options(settings, options, price_list),
        "slower_than_one": costs.slower_than_one(options),
        "problems": [problem for results in campaigns for problem in _problems(results)],
        "checksums": dict(checksums),
        "published_nodes": dict(nodes or {}),
        "conclusion": [],
    }
    return {**data, "conclusion": sentences.conclusion(data)}


def _problems(results: Results) -> list[dict[str, Any]]:
    """Return the runs of a campaign that do not count."""
    return [
        {"campaign": results["campaign"], **{name: run.get(name) for name in ("case", "repeat", "reason")}}
        for run in results.get("uncounted") or ()
    ]


def _families(
    campaigns: Sequence[Results],
    options: Sequence[Option],
    lines: Sequence[dict[str, Statement]],
    workloads: Workloads,
) -> list[ModelFamily]:
    """Return the families of the options; `lines` are the frameworks of all of them."""
    return [
        {
            "name": name,
            "frameworks": [line for line in lines if line["family"] == name],
            "options": own,
            "ranking": ranking.of_family(own),
            "differences": differences.of_family(campaigns, name, workloads),
        }
        for name, own in grouped(options, lambda option: option["family"]).items()
    ]


def campaign_of(results: Results, workloads: Workloads) -> Campaign:
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


def day(evaluation: Evaluation) -> str:
    """Return the day of the last campaign, '' where none has one: the date of the document."""
    return max((each["started"] or "" for each in evaluation["campaigns"]), default="")[:10]
