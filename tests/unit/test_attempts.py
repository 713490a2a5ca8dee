# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What is there of a campaign's runs, and where attempts that do not count are kept."""

from ansible.module_utils.scalebook.attempts import set_aside, status, statuses
from ansible.module_utils.scalebook.files import write_json


def attempt(tmp_path, said, repeat=1):
    run = tmp_path / "runs" / "case" / str(repeat)
    run.mkdir(parents=True)
    (run / "NODE1.log").write_text(said)
    write_json(run / "result.json", {"status": said})


def test_the_status_of_a_run_is_that_of_its_record(tmp_path):
    attempt(tmp_path, "ok")
    attempt(tmp_path, "oom", 2)
    runs = [("case", 1), ("case", 2), ("case", 3)]
    assert statuses(tmp_path, runs) == {("case", 1): "ok", ("case", 2): "oom"}


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
