# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The campaign of the fault tests: which jobs it takes for those of its last start."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "cluster"))

from testcluster.campaign import Campaign  # noqa: E402

OLD = {"SCALEBOOK_JOB": "/w/NODE1/c/case/1", "JOB_DIR": "/w/NODE1/c/case/1"}


@pytest.fixture
def campaign(tmp_path, monkeypatch):
    """Return a campaign that was just started, on one node whose processes the test sets."""
    made = object.__new__(Campaign)
    made.nodes, made.orphaned, made.launches = [], set(), False
    made.log = tmp_path / "log"
    made.log.write_text("PLAY [Run the campaign] ***\n")
    made.there = {}
    monkeypatch.setattr(made, "marked", lambda: {"NODE1": dict(made.there)})
    return made


def test_a_job_that_appears_before_the_first_launch_is_not_its_own(campaign):
    """It happened in CI: ssh of a killed ansible-playbook started its job after the next one had started."""
    campaign.there[7] = OLD
    assert campaign.current() is None


def test_a_job_from_before_the_first_launch_is_not_its_own_afterwards_either(campaign):
    campaign.there[7] = OLD
    campaign.current()
    campaign.log.write_text("1/20  1n1g b32 fp32 repeat 1: started, 0:00 elapsed\n")
    assert campaign.current() is None


def test_a_job_that_appears_after_the_first_launch_is_its_own(campaign):
    campaign.current()
    campaign.log.write_text("1/20  1n1g b32 fp32 repeat 1: started, 0:00 elapsed\n")
    campaign.there[8] = OLD
    assert campaign.current() == "case/1"
