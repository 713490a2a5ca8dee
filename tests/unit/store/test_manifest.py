# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The manifest: one changed byte of what was reported is found and named, and nothing is signed twice."""

import json
import shutil

import pytest
from ansible.module_utils.scalebook.contracts import message
from ansible.module_utils.scalebook.store import manifest
from ansible.module_utils.scalebook.store.source import open_source
from report_records import campaign, case, record

ONE = case()["name"]
OTHER = case(1, 2)["name"]


@pytest.fixture
def top(tmp_path):
    """Return a campaign of two cases; the first has two good runs, the other one that failed."""
    records = [record(case(), 1), record(case(), 2), record(case(1, 2), 1, None)]
    campaign(tmp_path, records)
    for path in tmp_path.glob("runs/*/*"):
        (path / "NODE1.log").write_text(f"log of {path.name}\n")
        (path / "exit.json").write_text("{}\n")
    return tmp_path


def statuses(top):
    return {
        path.parent.relative_to(top).as_posix(): json.loads(path.read_text())["status"]
        for path in top.glob("runs/*/*/result.json")
    }


def sign(top, old=None):
    return manifest.extend(old, manifest.files_of(open_source(top)), statuses(top))


def found(top, old):
    return [
        (each["file"], each["what"])
        for each in manifest.differences(old, manifest.files_of(open_source(top)))
    ]


def test_every_file_of_every_run_is_covered(top):
    made, _, _ = sign(top)
    assert len(made["files"]) == 3 * 3 + 1
    assert found(top, made) == []


@pytest.mark.parametrize(
    "file", ["plan.json", f"runs/{ONE}/2/NODE1.log", f"runs/{OTHER}/1/exit.json", f"runs/{ONE}/1/result.json"]
)
def test_one_changed_byte_is_found_and_named(top, file):
    made, _, _ = sign(top)
    data = bytearray((top / file).read_bytes())
    data[len(data) // 2] ^= 1
    (top / file).write_bytes(data)
    assert found(top, made) == [(file, "changed")]


def test_missing_and_added_files_are_found(top):
    made, _, _ = sign(top)
    (top / f"runs/{ONE}/1/exit.json").unlink()
    (top / f"runs/{ONE}/1/NODE2.log").write_text("x")
    assert found(top, made) == [(f"runs/{ONE}/1/NODE2.log", "added"), (f"runs/{ONE}/1/exit.json", "missing")]


def test_a_problem_names_its_run(top):
    made, _, _ = sign(top)
    (top / f"runs/{ONE}/2/NODE1.log").write_text("x")
    (problem,) = manifest.differences(made, manifest.files_of(open_source(top)))
    assert problem["run"] == f"runs/{ONE}/2"


def test_new_runs_are_added(top):
    made, _, _ = sign(top)
    shutil.copytree(top / f"runs/{ONE}/2", top / f"runs/{ONE}/3")
    after, wrong, said = sign(top, made)
    assert (len(after["files"]), wrong, said) == (len(made["files"]) + 3, [], [])


def test_a_run_that_counted_is_never_signed_anew(top):
    made, _, _ = sign(top)
    log = top / f"runs/{ONE}/1/NODE1.log"
    log.write_text("another")
    (top / f"runs/{ONE}/1/NODE9.log").write_text("one more")
    (top / f"runs/{ONE}/2/exit.json").unlink()
    for _ in range(2):
        after, wrong, _ = sign(top, made)
        assert [each["what"] for each in wrong] == ["changed", "added", "missing"]
        assert after == made


def test_a_run_that_counted_cannot_be_made_one_that_did_not(top):
    made, _, _ = sign(top)
    path = top / f"runs/{ONE}/1/result.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "status": "failed"}))
    after, wrong, _ = sign(top, made)
    assert (after, len(wrong)) == (made, 1)


def test_a_run_that_did_not_count_may_be_measured_again_and_that_is_said(top):
    made, _, _ = sign(top)
    path = top / f"runs/{OTHER}/1"
    (path / "result.json").write_text(json.dumps(record(case(1, 2), 1)))
    (path / "NODE1.log").write_text("second attempt\n")
    after, wrong, said = sign(top, made)
    assert wrong == []
    assert said == [message("note.measured-again", run=f"runs/{OTHER}/1", status="incomplete")]
    assert after["runs"][f"runs/{OTHER}/1"] == "ok"


def test_a_new_plan_is_said(top):
    made, _, _ = sign(top)
    (top / "plan.json").write_text("{}")
    assert sign(top, made)[2] == [message("note.now-changed", file="plan.json")]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"bytes": 9', '"bytes": 8', "has been changed"),
        ("{", "", "cannot be read"),
        (': 1, "', ': 2, "', "schema 1"),
    ],
)
def test_a_changed_manifest_is_found(top, old, new, said):
    made, _, _ = sign(top)
    made["files"][f"runs/{ONE}/1/NODE1.log"]["bytes"] = 9
    made["sha256"] = manifest._own_sha256(made)
    text = json.dumps(made)
    assert old in text
    (top / "manifest.json").write_text(text.replace(old, new, 1))
    with pytest.raises(manifest.ManifestError, match=said):
        manifest.read(open_source(top))


def test_without_a_manifest_there_is_none(top):
    assert manifest.read(open_source(top)) is None
