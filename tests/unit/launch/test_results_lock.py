# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The directory of a campaign has one holder, so that two campaigns do not replace each other's runs."""

import json
import subprocess

import pytest
from ansible.module_utils.scalebook.launch import lock_file, lock_holder
from ansible.module_utils.scalebook.launch.results_lock import claim


@pytest.fixture
def lock(tmp_path):
    return tmp_path / "night1" / "lock.json"


@pytest.fixture
def running():
    """Another control node on this host."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield {
            **lock_holder.identity(),
            "pid": process.pid,
            "started": lock_holder._start_of(process.pid),
            "id": "o",
        }
        process.kill()


def test_the_first_one_holds_it(lock):
    assert claim(lock, {"id": "me"}, False) == str(lock)
    assert lock_file.read(lock) == {"id": "me"}


def test_a_second_one_is_refused_with_the_name_of_the_first(lock, running):
    claim(lock, running, False)
    with pytest.raises(ValueError, match=rf"{lock.parent} is in use by .*, process {running['pid']}"):
        claim(lock, {"id": "me"}, False)
    assert lock_file.read(lock) == running


def test_it_is_taken_over_from_one_that_ended(lock, running):
    lock.parent.mkdir()
    lock.write_text(json.dumps({**running, "started": "1"}))
    claim(lock, {"id": "me"}, False)
    assert lock_file.read(lock) == {"id": "me"}


def test_it_is_taken_over_where_the_user_says_so(lock, running):
    claim(lock, running, False)
    claim(lock, {"id": "me"}, True)
    assert lock_file.read(lock) == {"id": "me"}


def test_without_a_holder_nothing_is_locked(lock):
    assert claim(lock, None, False) == ""
    assert not lock.parent.exists()
