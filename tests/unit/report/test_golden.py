# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The campaigns in docs/results give the numbers that are committed there, with the code of today."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.scalebook.judge import mfu
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.store.load import load_campaign

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "docs" / "results"
CAMPAIGNS = sorted(path.parent for path in RESULTS.glob("*/*/runs.tar.xz"))

with (ROOT / "data" / "gpus.csv").open(encoding="utf-8", newline="") as _lines:
    PEAKS = mfu.read_peaks(_lines)

WORKLOADS = {
    path.parents[1].name: yaml.safe_load(path.read_text()) for path in ROOT.glob("roles/*/meta/workload.yml")
}
DIGITS = 12
"""Decimals in which a drift has to be equal."""


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
        path: round(number, DIGITS) if path[-1] == "drift" else number for path, number in numbers(comparable)
    }


@pytest.mark.parametrize("campaign", CAMPAIGNS, ids=lambda path: str(path.relative_to(RESULTS)))
def test_every_number_of_a_committed_report_comes_out_again(campaign):
    committed = json.loads((campaign / "report" / "results.json").read_text())
    before = measured(committed)
    now = measured(build_results(load_campaign(campaign), WORKLOADS, peaks=PEAKS))
    assert len(before) > 50
    assert now == before


def test_all_campaigns_with_records_are_covered():
    assert len(CAMPAIGNS) >= 26
