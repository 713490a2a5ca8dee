# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Who runs a campaign, and how another control node knows that it has stopped."""

import json
import multiprocessing
import os
import subprocess

import pytest
from ansible.module_utils.scalebook.launch import lock_holder
from ansible.module_utils.scalebook.launch.lock_holder import gone, holders, identity, taken_by


def test_a_control_node_that_runs_is_not_gone():
    assert not gone(identity())


def test_a_child_of_the_controller_speaks_for_it():
    fork = multiprocessing.get_context("fork")
    queue = fork.SimpleQueue()
    child = fork.Process(target=lambda: queue.put(identity()["id"]))
    child.start()
    assert queue.get() == identity()["id"]
    child.join()


def test_a_controller_whose_process_ended_is_gone():
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert gone({**identity(), "pid": ended.pid})


def test_a_controller_that_had_ended_when_its_child_took_the_lock_is_gone():
    """Killed between the start of a task and its work, it leaves a child that no longer finds it."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert gone({**identity(), "pid": ended.pid, "started": None})


def test_a_later_process_with_the_same_number_is_not_the_controller():
    assert gone({**identity(), "started": "1"})


@pytest.fixture
def here(monkeypatch):
    """A control node whose machine can be recognised."""
    about = {
        **identity(),
        "machine": "m",
        "boot": "b",
        "hardware": "00:16:3e:00:00:01",
        "namespace": lock_holder.FIRST_NAMESPACE,
    }
    monkeypatch.setattr(lock_holder, "identity", lambda: about)
    return about


def test_a_controller_before_the_last_boot_is_gone(here):
    assert gone({**here, "boot": "an earlier one"})


@pytest.mark.parametrize(
    "other", [{"hardware": "00:16:3e:00:00:02"}, {"hardware": ""}, {"namespace": "pid:[7]"}]
)
def test_a_copy_of_this_machine_is_not_this_machine_before_its_last_boot(here, other):
    assert not gone({**here, "boot": "another", **other})


@pytest.mark.parametrize("pid", [None, 0, -1, True, "1", 1 << 80, [1]])
def test_a_holder_whose_process_cannot_be_asked_for_is_not_gone(pid):
    assert not gone({**identity(), "pid": pid})


def test_a_process_whose_start_is_hidden_is_not_gone(monkeypatch):
    """/proc mounted with hidepid hides it, the kernel still says that the process is there."""
    here = identity()
    monkeypatch.setattr(lock_holder, "identity", lambda: here)
    monkeypatch.setattr(lock_holder, "_text", lambda path: "")
    assert not gone({**here, "pid": 1, "started": "5"})


def test_a_user_without_an_entry_has_a_number(monkeypatch):
    def getuser():
        raise KeyError("getpwuid(): uid not found: 4711")

    monkeypatch.setattr(lock_holder.getpass, "getuser", getuser)
    assert identity()["user"] == f"user {os.getuid()}"


def test_of_a_controller_on_another_host_nothing_is_known():
    assert not gone({**identity(), "host": "elsewhere", "boot": "its own", "pid": 1})


def test_of_a_controller_in_another_container_nothing_is_known():
    assert not gone({**identity(), "namespace": "pid:[1]", "pid": 1})


def test_a_holder_that_says_nothing_is_not_gone():
    assert not gone({})


def test_a_node_is_held_by_who_is_there():
    here = identity()
    ended = {**here, "started": "1"}
    locks = {
        "NODE1": "Welcome to {here}\r\n" + json.dumps(here) + "\r\n",
        "NODE2": json.dumps(ended),
        "NODE3": "cat: lock.json: No such file or directory\n",
        "NODE4": "motd {with} braces",
        "NODE5": "{}",
    }
    assert holders(locks) == {"NODE1": here}


def test_nodes_of_one_holder_are_named_together():
    first = {"id": "1", "user": "ann", "host": "desk", "pid": 7, "since": "noon"}
    other = {"id": "2", "user": "bob", "host": "lap", "pid": 8, "since": "one"}
    said = taken_by({"NODE1": first, "NODE2": other, "NODE3": {**first, "since": "noon and a second"}})
    assert said.startswith(
        "NODE1, NODE3 are in use by ann@desk, process 7, since noon. "
        "NODE2 is in use by bob@lap, process 8, since one. Wait for it or stop it"
    )


def test_a_lock_with_escapes_and_newlines_is_told_on_one_line_without_them():
    hostile = {
        "id": 1,
        "user": "\x1b]0;owned\x07\x1b[2J",
        "host": "h\nfatal: fake line",
        "pid": 1,
        "since": "now",
    }
    assert taken_by({"NODE2": hostile}).isprintable()


def test_a_lock_that_cannot_be_read_is_somebody_s():
    assert "NODE1 is in use by somebody unknown" in taken_by({"NODE1": {"id": "unreadable"}})


IN_SLURM = {"SLURM_JOB_ID": "17", "SLURM_CLUSTER_NAME": "one", "SLURMD_NODENAME": "NODE1"}


@pytest.fixture
def later(monkeypatch, tmp_path):
    """A later job of Slurm on other nodes, with a stand-in for scontrol that prints what Slurm 22.05 does."""

    def later(shown, **changed):
        for name, value in {**IN_SLURM, **changed}.items():
            monkeypatch.setenv(name, value)
        holder = {**identity(), "boot": "that of NODE1", "host": "NODE1"}
        monkeypatch.setenv("SLURM_JOB_ID", "18")
        monkeypatch.setenv("SLURM_CLUSTER_NAME", "one")
        lines = [f"echo '{shown}'"]
        if "error" in shown:
            lines = [f"echo '{shown}' >&2", "exit 1"]
        (tmp_path / "scontrol").write_text("\n".join(["#!/bin/sh", *lines, ""]))
        (tmp_path / "scontrol").chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
        return holder

    return later


UNKNOWN = "slurm_load_jobs error: Invalid job id specified"


@pytest.mark.parametrize(
    "shown",
    ["JobId=17 JobState=TIMEOUT Restarts=0", "JobId=17 JobState=RUNNING Restarts=1", UNKNOWN],
)
def test_a_control_node_that_slurm_has_ended_with_its_job_is_gone_wherever_it_was(later, shown):
    assert gone(later(shown))


@pytest.mark.parametrize(
    "shown",
    [
        "JobId=17 JobState=RUNNING Restarts=0",
        "JobId=17 JobState=COMPLETING Restarts=0",
        "slurm_load_jobs error: Socket timed out on send/recv operation",
    ],
)
def test_a_control_node_whose_job_may_still_run_is_not_gone(later, shown):
    assert not gone(later(shown))


def test_a_control_node_of_another_cluster_or_beside_its_job_is_not_gone(later, monkeypatch):
    ended = "JobId=17 JobState=COMPLETED Restarts=0"
    assert not gone(later(ended, SLURM_CLUSTER_NAME="two"))
    monkeypatch.delenv("SLURMD_NODENAME")  # on a login node it outlives its allocation
    holder = {**later(ended), "slurm": {"job": "17", "cluster": "one", "restarts": "0", "inside": False}}
    assert not gone(holder)
    assert ", in Slurm's job 17." in taken_by({"NODE1": holder})


def test_a_job_that_slurm_hides_from_other_users_is_not_gone(later):
    assert not gone({**later(UNKNOWN), "user": "somebody else"})
