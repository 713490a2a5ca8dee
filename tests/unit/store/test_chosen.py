# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What is chosen by name: the campaigns of a directory, and the baseline among them."""

import os
import shutil

import pytest
from ansible.module_utils.scalebook.plan.parameters import rows_of
from ansible.module_utils.scalebook.store.chosen import PUBLISHED, campaigns, find_baseline
from report_records import campaign, case, record


@pytest.fixture
def results(tmp_path):
    """Return a directory with the campaigns `new` and `old`, and the plan `planned`."""
    for age, name in enumerate(("new", "old", "planned")):
        top = campaign(tmp_path / name, [record(case(), repeat) for repeat in (1, 2, 3)])
        when = 1_800_000_000 - age
        os.utime(top / "plan.json", (when, when))
    shutil.rmtree(tmp_path / "planned" / "runs")
    return tmp_path


def refusal(named, results):
    with pytest.raises(ValueError, match="^baseline=") as error:
        find_baseline(named, results / "elsewhere" / named, results)
    return str(error.value)


def test_the_newest_campaign_is_first_and_a_plan_alone_is_not_measured(results):
    assert campaigns(results) == (["new", "old"], ["planned"])
    assert campaigns(results / "nowhere") == ([], [])


def test_the_name_of_a_campaign_goes_before_a_path(results):
    assert find_baseline("old", results / "nowhere", results) == results / "old"
    assert find_baseline("../x", results / "new", results) == results / "new"


def test_a_missing_baseline_is_answered_with_those_there_are(results):
    assert refusal("nope", results) == (
        "baseline=nope: must be the path of a results.json, a campaign or a runs.tar.xz, "
        f"or one of new, old in {results}"
    )
    assert refusal("nope", results / "empty").endswith(f"; there is no campaign with runs in {results}/empty")


def test_a_baseline_without_runs_is_said_to_have_none(results):
    assert refusal("planned", results).startswith("baseline=planned: has no runs yet; it must be the path")


@pytest.mark.parametrize("content", [b"root:x:0:0:root:/root:/bin/bash\n", b"", b"\xff\xfe\x00"])
def test_a_file_that_is_no_json_is_refused_in_plain_words(results, content):
    (results / "passwd").write_bytes(content)
    with pytest.raises(ValueError, match="is not JSON: name a results.json, a campaign or its .tar.xz"):
        find_baseline("passwd", results / "passwd", results)


def test_a_directory_that_is_no_campaign_is_refused(results):
    (results / "elsewhere" / "empty").mkdir(parents=True)
    assert "is not a campaign or an import" in refusal("empty", results)


def test_a_device_is_refused_without_reading_it(results):
    os.mkfifo(results / "fifo")
    with pytest.raises(ValueError, match="fifo: is not a regular file"):
        find_baseline("fifo", results / "fifo", results)


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_is_published_is_compared_by_compare(results, name):
    assert refusal(name, results) == (
        f"baseline={name}: to compare with published results, use compare={name}"
    )
    assert rows_of(["report"])["compare"].choices == PUBLISHED
