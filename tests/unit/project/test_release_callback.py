# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""An ansible-playbook that is interrupted gives its locks back."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import scalebook_release
from scalebook_release import Locks

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def locks():
    locks = Locks()
    locks.note("campaign_lock", "NODE1", None, {"held": True})
    return locks


def test_a_lock_that_was_taken_is_held(locks):
    assert locks.hosts == {"NODE1"}


def test_a_lock_that_was_given_back_is_not(locks):
    locks.note("campaign_lock", "NODE1", None, {"held": False, "taken": {}})
    assert locks.hosts == set()


def test_a_lock_that_another_one_holds_is_not_ours_to_give_back():
    locks = Locks()
    locks.note("campaign_lock", "NODE1", None, {"held": False, "taken": {"id": "other"}})
    assert locks.hosts == set()


def test_the_lock_of_the_results_is_held_until_it_is_given_back(locks):
    locks.note("campaign_plan", "NODE1", None, {"lock": "/r/lock.json"})
    assert locks.paths == {"/r/lock.json"}
    locks.note("campaign_lock", "NODE1", "localhost", {"held": False, "path": "/r/lock.json"})
    assert (locks.paths, locks.hosts) == (set(), {"NODE1"})


def test_the_release_reaches_the_hosts_as_the_command_did():
    given = {
        "inventory": ("a", "b"),
        "remote_user": "you",
        "extra_vars": ["x=1"],
        "check": True,
        "tags": ["t"],
    }
    assert scalebook_release.options(given) == [
        "--inventory=a",
        "--inventory=b",
        "--extra-vars=x=1",
        "--user=you",
    ]


PLAY = """
- hosts: localhost
  gather_facts: false
  tasks:
    - campaign_lock:
        holder: "{{ lookup('scalebook_lock_holder') }}"
        path: "{{ lookup('env', 'SCALEBOOK_LOCK_DIRECTORY') }}/scalebook.lock"
    - ansible.builtin.command: {argv: [sleep, "120"]}
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_ansible_playbook_and_its_lock(tmp_path, number):
    lock = tmp_path / "scalebook.lock"
    (tmp_path / "play.yml").write_text(PLAY)
    host = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "scalebook_home": "/tmp/none",
    }
    inventory = {"all": {"children": {"nodes": {"hosts": {"localhost": host}}}}}
    (tmp_path / "hosts.json").write_text(json.dumps(inventory))
    process = subprocess.Popen(
        [Path(sys.executable).with_name("ansible-playbook"), "-i", "hosts.json", "play.yml"],
        cwd=tmp_path, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={
            **os.environ,
            "SCALEBOOK_LOCK_DIRECTORY": str(tmp_path),
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        },
        stdin=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not lock.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert lock.exists(), "the lock was never taken"
    time.sleep(1)
    process.send_signal(number)
    shown = process.communicate(timeout=60)[0]
    assert "may still be in use" not in shown
    assert not lock.exists()
