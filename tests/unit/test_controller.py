# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Who runs a campaign, and how another controller knows that it has ended."""

import multiprocessing
import subprocess

from ansible.module_utils.scalebook.controller import gone, identity


def test_a_controller_that_runs_is_not_gone():
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


def test_a_later_process_with_the_same_number_is_not_the_controller():
    assert gone({**identity(), "started": "1"})


def test_a_controller_before_the_last_boot_is_gone():
    here = identity()
    assert gone({**here, "boot": "an earlier one"}) == bool(here["machine"])


def test_of_a_controller_on_another_host_nothing_is_known():
    assert not gone({**identity(), "host": "elsewhere", "boot": "its own", "pid": 1})


def test_of_a_controller_in_another_container_nothing_is_known():
    assert not gone({**identity(), "namespace": "pid:[1]", "pid": 1})


def test_a_holder_that_says_nothing_is_not_gone():
    assert not gone({})
