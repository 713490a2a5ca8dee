# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The node that holds the others up is named, though all steps take equally long."""

from ansible.module_utils.scalebook.pages.catalogue import sentence
from ansible.module_utils.scalebook.read.straggler import straggler


def record(*work, queued=None, seconds=10.0):
    exits = [None if each is None else {"busy": {"work": each, "seconds": seconds}} for each in work]
    for said, each in zip(exits, queued or [], strict=False):
        said["busy"]["queued"] = each
    return {"nodes": [{"node": f"NODE{number}", "exit": said} for number, said in enumerate(exits, 1)]}


def test_a_node_that_works_twice_as_long_as_the_others_is_named():
    assert sentence(straggler(record(4.0, 8.0, 4.2))) == (
        "NODE2 may hold the others up: it computed 8.0 s in the window of 10.0 s, the others 4.1 s"
    )


def test_a_node_with_twice_as_much_to_do_is_named_where_all_queue():
    """A soak on a loaded machine missed it: all queue for the same cores, and waiting evens them out."""
    assert sentence(straggler(record(7.9, 9.5, queued=[6.4, 6.5]))) == (
        "NODE2 may hold the others up: it computed 3.0 s in the window of 10.0 s, the others 1.5 s"
    )


def test_a_node_whose_processors_something_else_takes_is_named():
    assert sentence(straggler(record(3.0, 6.5, queued=[0.1, 3.6]))) == (
        "NODE2 may hold the others up: it computed or queued for a processor 6.5 s in the window of 10.0 s, "
        "the others 3.0 s"
    )


def test_nodes_that_work_alike_are_not():
    assert straggler(record(8.0, 8.4, 7.9)) is None


def test_a_first_node_with_a_little_more_to_do_is_not():
    assert straggler(record(5.5, 4.0, 4.0)) is None


def test_nodes_that_hardly_compute_are_not_compared():
    assert straggler(record(0.3, 0.1)) is None


def test_what_a_window_is_too_short_to_tell_is_not_said():
    """Two nodes alike, 0.1 and 0.0 s in a window of 0.3 s: the kernel counts in hundredths."""
    assert straggler(record(0.1, 0.0, seconds=0.3)) is None


def test_a_single_node_holds_nobody_up():
    assert straggler(record(8.0)) is None


def test_nothing_is_said_without_a_measurement_of_every_node():
    assert straggler(record(8.0, None)) is None
