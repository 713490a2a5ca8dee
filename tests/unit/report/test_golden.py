# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The campaigns in docs/results give the numbers that are committed there, with the code of today."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.scalebook.contracts import upgrade_plan, upgrade_row
from ansible.module_utils.scalebook.report import document as documents
from ansible.module_utils.scalebook.report import mfu
from ansible.module_utils.scalebook.report.load import load_campaign

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "docs" / "results"
CAMPAIGNS = sorted(path.parent for path in RESULTS.glob("*/*/runs.tar.xz"))

with (ROOT / "data" / "gpus.csv").open(encoding="utf-8", newline="") as _lines:
    PEAKS = mfu.read_peaks(_lines)

RENAMED = {"figures": "self_reported", "reading": "time_source", "framework": "workload", "marks": "flags"}
DELIBERATE = {
    "schema": "2 since keys were renamed",
    "families": "new: the workloads of a model family side by side",
    "simulated": "new: nodes that shared machines",
    "only_published": "new: published results without a run of the campaign",
    "storage_waits": "new: processors that waited for storage, as evidence of a bottleneck",
    "drift": "is summed exactly: its last digits depended on the version of Python",
}
"""Keys of results.json whose numbers have changed on purpose, each with the reason."""
NEW = ("families", "simulated", "only_published")
NEW_INSIDE = ("schema", "storage_waits")
WORKLOADS = {
    path.parents[1].name: yaml.safe_load(path.read_text()) for path in ROOT.glob("roles/*/meta/workload.yml")
}
DIGITS = 12
"""Decimals in which a drift has to be equal."""


def renamed(value):
    """Return a document of schema 1 with the keys of schema 2, at every depth."""
    if isinstance(value, dict):
        return {RENAMED.get(key, key): renamed(each) for key, each in value.items()}
    return [renamed(each) for each in value] if isinstance(value, list) else value


def upgraded(document):
    """Return results.json of schema 1 as one of schema 2; one of schema 2 as it is."""
    if document["schema"] != 1:
        return document
    made = {key: value for key, value in document.items() if key not in ("plan", "provenance")}
    made = {**made, "rows": [upgrade_row(row) for row in made["rows"]]}
    return {
        **renamed(made),
        "plan": upgrade_plan(document["plan"]),
        "provenance": document["provenance"],
        "self_reported": renamed(document.get("figures") or []),
    }


def numbers(value, path=()):
    """Yield (path, number) of every number of a document; a status or verdict counts as one."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from numbers(each, (*path, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from numbers(each, (*path, index))
    elif isinstance(value, (int, float)) or path[-1:] in (("status",), ("code",), ("verdict",)):
        yield path, value


def measured(document):
    """Return {path: number} of what the golden test compares."""
    # The names of result files hold the workload's; which groups they hold is compared.
    comparable = {**document, "result_files": list(document["result_files"].values())}
    return {
        path: round(number, DIGITS) if path[-1] == "drift" else number
        for path, number in numbers(comparable)
        if path[-1] not in NEW_INSIDE and path[0] not in NEW
    }


@pytest.mark.parametrize("campaign", CAMPAIGNS, ids=lambda path: str(path.relative_to(RESULTS)))
def test_every_number_of_a_committed_report_comes_out_again(campaign):
    committed = json.loads((campaign / "report" / "results.json").read_text())
    before = measured(upgraded(committed))
    now = measured(documents.build(load_campaign(campaign), WORKLOADS, peaks=PEAKS))
    assert len(before) > 50
    assert now == before


def test_all_campaigns_with_records_are_covered():
    assert len(CAMPAIGNS) >= 26
