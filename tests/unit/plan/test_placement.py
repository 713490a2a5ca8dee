# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The nodes of a run and the runs to skip, while a campaign goes on."""

from ansible.module_utils.scalebook.plan.placement import members, remark, why_not
from cases import cluster
from cases import gpu_case as case

NODES = cluster(4)


def of(nodes, bsz=64, **other):
    return {**case(nodes, 8), "bsz": bsz, **other}


def names(nodes):
    return [node["name"] for node in nodes]


def test_a_case_runs_on_the_first_nodes_of_the_inventory():
    assert names(members(of(2), NODES)) == ["NODE1", "NODE2"]


def test_a_case_that_fits_on_the_nodes_left_still_runs_on_as_many():
    assert names(members(of(3), NODES, ["NODE2"])) == ["NODE1", "NODE3", "NODE4"]
    assert why_not(of(3), NODES, ["NODE2"], []) == ""


def test_a_run_on_other_nodes_than_the_first_says_so():
    assert remark(of(2), NODES, ["NODE2"]) == "ran on NODE1, NODE3: NODE2 lost"


def test_a_run_on_the_first_nodes_has_nothing_to_say():
    assert remark(of(2), NODES, ["NODE3"]) == ""


def test_a_case_never_runs_on_fewer_nodes():
    assert why_not(of(4), NODES, ["NODE3"], []) == "NODE3 lost: 4 nodes are needed, 3 are left"


def test_a_batch_that_ran_out_of_memory_is_not_tried_again():
    assert why_not(of(2, 64), NODES, [], [of(2, 64)]) == "batch 64 ran out of memory"


def test_a_larger_batch_of_the_same_family_is_skipped():
    assert why_not(of(2, 128), NODES, [], [of(2, 64)]) == "batch 64 ran out of memory"


def test_a_smaller_batch_is_tried():
    assert why_not(of(2, 32), NODES, [], [of(2, 64)]) == ""


def test_another_family_is_tried():
    """What two nodes need says nothing certain of what one needs, nor fp32 of fp16."""
    oom = [of(2, 64)]
    assert why_not(of(1, 64), NODES, [], oom) == why_not(of(2, 64, dtype="fp16"), NODES, [], oom) == ""
