# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Resume support: which runs have a result, how long they took, and archiving of failed attempts."""

import pytest
from ansible.module_utils.scalebook.files import write_json
from ansible.module_utils.scalebook.plan.resume import (
    SEARCH,
    ResumeError,
    check_plan,
    earlier_seconds,
    outcome,
    set_aside,
    status,
    statuses,
)


def attempt(tmp_path, said, repeat=1, folder="runs"):
    run = tmp_path / folder / "case" / str(repeat)
    run.mkdir(parents=True)
    (run / "NODE1.log").write_text(said)
    write_json(run / "result.json", {"status": said})


def test_the_status_of_a_run_is_that_of_its_record(tmp_path):
    attempt(tmp_path, "ok")
    attempt(tmp_path, "oom", 2)
    runs = [("case", 1), ("case", 2), ("case", 3)]
    assert statuses(tmp_path, runs) == {("case", 1): "ok", ("case", 2): "oom"}


def test_a_run_of_a_search_has_a_folder_of_its_own(tmp_path):
    attempt(tmp_path, "ok")
    attempt(tmp_path, "failed", folder="search")
    assert outcome(tmp_path, "case", 1, SEARCH) == ("failed", None)
    assert status(tmp_path, "case", 1) == "ok"
    set_aside(tmp_path, "case", 1, SEARCH)
    assert outcome(tmp_path, "case", 1, SEARCH) is None
    assert (tmp_path / "failed/case/1-1").exists()
    assert status(tmp_path, "case", 1) == "ok"


def test_an_unreadable_record_is_none(tmp_path):
    attempt(tmp_path, "ok")
    (tmp_path / "runs/case/1/result.json").write_text('{"status": "o')
    assert status(tmp_path, "case", 1) is None


def test_every_attempt_is_kept_apart(tmp_path):
    for said in ("failed", "hung"):
        attempt(tmp_path, said)
        set_aside(tmp_path, "case", 1)
    logs = sorted(tmp_path.glob("failed/case/*/NODE1.log"))
    assert [f"{path.parent.name} {path.read_text()}" for path in logs] == ["1-1 failed", "1-2 hung"]
    assert not (tmp_path / "runs/case/1").exists()


def test_an_attempt_that_somebody_removed_leaves_no_number_to_use_twice(tmp_path):
    attempt(tmp_path, "failed")
    set_aside(tmp_path, "case", 1)
    (tmp_path / "failed/case/1-1").rename(tmp_path / "failed/case/1-7")
    attempt(tmp_path, "hung")
    set_aside(tmp_path, "case", 1)
    assert (tmp_path / "failed/case/1-8").exists()


def test_of_a_skipped_run_nothing_is_kept(tmp_path):
    attempt(tmp_path, "skipped")
    set_aside(tmp_path, "case", 1)
    assert not (tmp_path / "failed").exists()
    assert not (tmp_path / "runs/case/1").exists()


def test_a_campaign_that_an_earlier_version_planned_is_refused_with_the_reason(tmp_path):
    write_json(tmp_path / "plan.json", {"schema": 1, "campaign": "night1"})
    with pytest.raises(ResumeError, match="planned by an earlier version.*choose another campaign name"):
        check_plan(tmp_path)


@pytest.mark.parametrize("content", [None, '{"schema": 2}', "{", "[]"])
def test_a_campaign_of_this_version_or_a_new_one_can_be_started(tmp_path, content):
    if content is not None:
        (tmp_path / "plan.json").write_text(content)
    check_plan(tmp_path)


def test_the_seconds_of_a_case_are_those_of_good_runs_in_any_campaign(tmp_path):
    for campaign, repeat, seconds, said in (("a", 1, 10, "ok"), ("b", 1, 20, "ok"), ("b", 2, 99, "failed")):
        run = tmp_path / campaign / "runs/case" / str(repeat)
        run.mkdir(parents=True)
        write_json(run / "result.json", {"status": said, "job": {"seconds": seconds}})
    assert earlier_seconds(tmp_path, ["case", "other"]) == {"case": 15}
