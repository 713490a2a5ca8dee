# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A lock: one holder at a time, taken over only from the one that is named; one lock for each machine."""

import fcntl
import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from ansible.module_utils.scalebook.launch import lock_file
from ansible.module_utils.scalebook.launch.lock_file import read, turn

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


def test_a_directory_that_root_makes_for_locks_is_for_all_users(tmp_path):
    mask = os.umask(0o077)
    lock_file.make_directory(tmp_path / "srv" / "locks")
    os.umask(mask)
    modes = [(tmp_path / name).stat().st_mode & 0o7777 for name in ("srv", "srv/locks")]
    assert modes == [0o755, 0o1777]


def test_a_directory_of_locks_that_is_there_keeps_its_mode(tmp_path):
    tmp_path.chmod(0o770)
    lock_file.make_directory(tmp_path)
    assert tmp_path.stat().st_mode & 0o7777 == 0o770


def test_only_its_holder_gives_it_back(lock):
    take(lock, OTHER)
    assert take(lock, state="absent")[0] is False
    assert take(lock, OTHER, state="absent")[0] is True
    assert not lock.exists()


def test_what_is_done_before_it_is_given_back_is_done_while_nobody_else_can_take_it(lock):
    take(lock)
    taker = threading.Thread(target=lambda: take(lock, OTHER))
    seen = []

    def before():
        taker.start()
        taker.join(0.2)
        seen.append(taker.is_alive())

    turn(lock, ME, None, "absent", True, before)
    taker.join()
    assert (seen, read(lock)) == ([True], OTHER)


def test_nothing_is_done_for_a_lock_that_another_one_took_over(lock):
    take(lock, OTHER)
    turn(lock, ME, None, "absent", True, lambda: pytest.fail("it stopped the other's job"))


@pytest.mark.parametrize("text", ['{"id": ', "[]", '"x"', "{}", '{"id": 7}', "[" * 200_000, "{} {}"])
def test_a_lock_that_cannot_be_read_is_held(lock, text):
    lock.write_text(text)
    assert take(lock)[1:] == (False, {"id": "unreadable"})
    assert take(lock, over="unreadable")[1] is True


def test_an_empty_lock_is_free(lock):
    lock.touch()
    assert take(lock)[1] is True


def test_a_check_writes_nothing(lock):
    take(lock, write=False)
    assert not lock.exists()


@pytest.fixture
def without_flock(monkeypatch):
    def flock(*_):
        raise OSError(lock_file.errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)


def test_a_file_system_without_flock_still_has_one_holder(lock, without_flock):
    take(lock, OTHER)
    assert take(lock)[1] is False
    assert take(lock, OTHER, state="absent")[0] is True
    assert [path.name for path in lock.parent.iterdir()] == []


def test_without_flock_one_of_many_who_ask_at_once_gets_it(lock, without_flock, monkeypatch):
    """Each of them finds it free if another one's is not written yet: writing takes a while here."""
    put = lock_file._put
    monkeypatch.setattr(lock_file, "_put", lambda *content: (time.sleep(0.02), put(*content)))
    with ThreadPoolExecutor(16) as pool:
        held = [each[1] for each in pool.map(lambda number: take(lock, {"id": f"{number}"}), range(16))]
    assert held.count(True) == 1


def test_a_turn_that_does_not_end_is_named_with_the_fix(lock, without_flock, monkeypatch):
    monkeypatch.setattr(lock_file, "PATIENCE", 0.1)
    (lock.parent / "lock.json.turn").mkdir()
    with pytest.raises(OSError, match=r"If it was killed, remove the directory: '.*/lock\.json\.turn'"):
        take(lock)


@pytest.mark.parametrize("plant", ["symlink", "second name", "fifo", "directory"])
def test_what_others_put_in_its_place_is_refused_and_left_as_it_is(lock, tmp_path, plant):
    precious = tmp_path / "precious"
    precious.write_text("")
    {
        "symlink": lambda: lock.symlink_to(precious),
        "second name": lambda: os.link(precious, lock),
        "fifo": lambda: os.mkfifo(lock),
        "directory": lock.mkdir,
    }[plant]()
    with pytest.raises(OSError):
        take(lock)
    assert precious.read_text() == ""


@pytest.fixture
def places(tmp_path, monkeypatch):
    modes = {"ours": 0o755, "all users": 0o1777, "later": 0o1777}
    for name, mode in modes.items():
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
    monkeypatch.setattr(lock_file, "PLACES", [str(tmp_path / name) for name in ("none", *modes)])
    return tmp_path


def test_the_lock_of_a_machine_lies_where_every_user_may_write(places):
    assert lock_file.machine_path() == str(places / "all users" / lock_file.NAME)


def test_every_user_may_take_it_over(places):
    path = Path(lock_file.machine_path())
    take(path)
    assert path.stat().st_mode & 0o777 == 0o666
