# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The campaign that fault tests drive: whose gangs it takes for those of its present controller."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "cluster"))

from testcluster.campaign import Campaign  # noqa: E402

OLD = {"SCALEBOOK_JOB": "/w/NODE1/c/case/1", "JOB_DIR": "/w/NODE1/c/case/1"}


@pytest.fixture
def campaign(tmp_path, monkeypatch):
    """Return a campaign whose controller was just started, on one node whose processes the test sets."""
    made = object.__new__(Campaign)
    made.nodes, made.orphaned, made.launches = [], set(), False
    made.log = tmp_path / "log"
    made.log.write_text("PLAY [Run the campaign] ***\n")
    made.there = {}
    monkeypatch.setattr(made, "marked", lambda: {"NODE1": dict(made.there)})
    return made


def test_a_gang_that_begins_before_the_controller_launches_is_not_its_own(campaign):
    """It happened in CI: ssh of a killed controller brought its gang up after the next one had started."""
    campaign.there[7] = OLD
    assert campaign.current() is None


def test_what_was_there_before_the_launch_is_not_the_controllers_afterwards_either(campaign):
    campaign.there[7] = OLD
    campaign.current()
    campaign.log.write_text("1/20  1n1g b32 fp32 repeat 1: started, 0:00 elapsed\n")
    assert campaign.current() is None


def test_a_gang_that_begins_after_the_launch_is_the_controllers(campaign):
    campaign.current()
    campaign.log.write_text("1/20  1n1g b32 fp32 repeat 1: started, 0:00 elapsed\n")
    campaign.there[8] = OLD
    assert campaign.current() == "case/1"
