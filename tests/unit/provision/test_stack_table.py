# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Nodes that train together agree in twelve keys, or the table reports which differ and where."""

import pytest
from ansible.module_utils.scalebook.provision import stack_table

ROW = {
    "driver": "440.33.01",
    "cuda": "10.2.89-1",
    "cudnn": "7.6.5.32-1+cuda10.2",
    "nccl": "2.7.3-1+cuda10.2",
    "mpi": "Open MPI 4.1.8",
    "horovod": "none",
    "python": "3.8.18",
    "framework": "tensorflow 2.3.0",
    "kernel": "4.15.0-112-generic",
    "commit": "tf-models-official==2.3.0, patched",
    "data": "ab" * 32,
    "script": "cd" * 32,
}


def cluster(*rows):
    return {f"NODE{number}": {**ROW, **row} for number, row in enumerate(rows, 1)}


def test_there_are_twelve_keys():
    assert len(stack_table.KEYS) == 12 and set(stack_table.KEYS) == set(ROW)


def test_nodes_that_agree_have_no_differences():
    assert stack_table.differences(cluster({}, {}, {}, {})) == []


@pytest.mark.parametrize("key", stack_table.KEYS)
def test_each_key_that_differs_is_named_with_values_and_nodes(key):
    (said,) = stack_table.differences(cluster({}, {key: "other"}, {}))
    assert said == f"{stack_table.KEYS[key]}: {stack_table.short(ROW[key])} on NODE1, NODE3; other on NODE2"


def test_several_differences_are_all_named():
    said = stack_table.differences(cluster({}, {"nccl": "none"}, {"driver": "418.87"}))
    assert [line.split(":")[0] for line in said] == ["driver", "NCCL"]


def test_a_thing_that_is_not_there_differs_from_one_that_is():
    assert stack_table.differences(cluster({}, {"cudnn": "none"})) == [
        "cuDNN: 7.6.5.32-1+cuda10.2 on NODE1; none on NODE2"
    ]


def test_a_key_that_may_differ_is_shown_and_not_counted():
    rows = cluster({}, {"kernel": "5.4"})
    assert stack_table.differences(rows, ["kernel"]) == []
    assert "5.4   NODE2 (may differ)" in stack_table.table(rows, ["kernel"])


def test_a_node_that_did_not_tell_a_key_is_refused():
    rows = cluster({}, {})
    del rows["NODE2"]["mpi"]
    with pytest.raises(stack_table.StackError, match="NODE2 reported no mpi"):
        stack_table.differences(rows)


def test_an_unknown_key_that_may_differ_is_refused():
    with pytest.raises(stack_table.StackError, match="stack_check_may_differ=kernal: allowed are driver, "):
        stack_table.table(cluster({}), ["kernal"])


def test_of_the_many_some_are_named_and_of_the_few_all():
    rows = cluster(*[{"nccl": "2.8.3"} if number % 10 == 0 else {} for number in range(125)])
    (said,) = stack_table.differences(rows)
    assert "NODE2, NODE3" in said and " and 104 more; 2.8.3 on NODE1, NODE11, NODE21" in said
    assert said.endswith(", NODE121")


def test_the_table_has_a_line_a_key_where_nodes_agree():
    lines = stack_table.table(cluster({}, {}, {}, {})).splitlines()
    assert lines[0] == "Software stack of NODE1, NODE2, NODE3, NODE4:"
    assert lines[1] == "  driver         440.33.01"
    assert lines[-1] == "  script sha256  cdcdcdcdcdcd"
    assert len(lines) == 13


def test_the_table_shows_where_nodes_differ():
    lines = stack_table.table(cluster({}, {"nccl": "2.7.8"})).splitlines()
    assert lines[4:6] == [
        "  NCCL           2.7.3-1+cuda10.2   NODE1",
        "                 2.7.8   NODE2",
    ]


def test_a_value_of_several_lines_stays_on_one():
    assert stack_table.short("none (nvidia-smi: broken\nvery)") == "none (nvidia-smi: broken very)"
