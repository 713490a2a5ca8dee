# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The lock of a node: one holder at a time, taken over only from the one that is named."""

import json

import pytest
from campaign_lock import read, turn

ME, OTHER = {"id": "me", "host": "a"}, {"id": "other", "host": "b"}


@pytest.fixture
def lock(tmp_path):
    return tmp_path / "lock.json"


def take(lock, holder=ME, over=None, state="present", write=True):
    return turn(lock, holder, over, state, write)


def test_a_free_lock_is_taken(lock):
    assert take(lock) == (True, True, {})
    assert json.loads(lock.read_text()) == ME


def test_taking_it_twice_changes_nothing(lock):
    take(lock)
    assert take(lock) == (False, True, {})


def test_another_holder_is_named_and_left_alone(lock):
    take(lock, OTHER)
    assert take(lock) == (False, False, OTHER)
    assert read(lock) == OTHER


def test_it_is_taken_over_from_the_holder_that_is_gone(lock):
    take(lock, OTHER)
    assert take(lock, over="other") == (True, True, {})
    assert read(lock) == ME


def test_it_is_not_taken_over_from_one_who_was_faster(lock):
    take(lock, {"id": "faster"})
    assert take(lock, over="other")[1] is False


def test_only_its_holder_gives_it_back(lock):
    take(lock, OTHER)
    assert take(lock, state="absent")[0] is False
    assert take(lock, OTHER, state="absent")[0] is True
    assert not lock.exists()


def test_a_torn_lock_is_nobody_s(lock):
    lock.write_text('{"id": ')
    assert take(lock)[1] is True


def test_a_check_writes_nothing(lock):
    take(lock, write=False)
    assert not lock.exists()
