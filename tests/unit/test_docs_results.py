# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The campaigns in docs/results are what was measured, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible.module_utils.scalebook import manifest

RESULTS = Path(__file__).parents[2] / "docs" / "results"
CAMPAIGNS = sorted(path.parent for path in RESULTS.glob("*/*/plan.json"))


def named(path: Path) -> str:
    return str(path.relative_to(RESULTS))


@pytest.mark.parametrize("campaign", CAMPAIGNS, ids=named)
def test_every_file_is_as_its_manifest_says(campaign):
    assert manifest.differences(manifest.read(campaign), manifest.files_of(campaign)) == []


@pytest.mark.parametrize("campaign", CAMPAIGNS, ids=named)
def test_no_path_of_the_machine_is_in_the_plan(campaign):
    assert not json.loads((campaign / "plan.json").read_text())["inventory"].startswith("/")


def test_there_are_campaigns():
    assert CAMPAIGNS
