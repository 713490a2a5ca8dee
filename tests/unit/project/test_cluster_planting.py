# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""When a verdict names a planted fault, and how sure a count is: tests/cluster/planted."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "cluster"))

from testcluster import planting  # noqa: E402

SLOW_NODE = planting.Planted("slow node", ("NODE3",))


def verdict(*findings, bad=("NODE3",), faults=()):
    rows = [{"verdict": "bad", "quantity": quantity, "nodes": nodes} for quantity, nodes in findings]
    return {"findings": rows, "bad": [*bad], "faults": [*faults]}


def cause(kind, *nodes):
    return {"kind": kind, "nodes": [*nodes]}


def test_a_slow_node_is_named_by_what_it_computes_and_may_send_slowly_too():
    assert planting.named(SLOW_NODE, verdict(("processor", ["NODE3"])))
    assert planting.named(SLOW_NODE, verdict(("copy", ["NODE3"]), ("link", ["NODE3", "NODE1"])))
    assert not planting.named(SLOW_NODE, verdict(("link", ["NODE3", "NODE1"])))
    assert not planting.named(SLOW_NODE, verdict(bad=()))


def test_a_second_node_that_is_condemned_beside_it_is_not_the_fault():
    both = verdict(("processor", ["NODE3"]), ("copy", ["NODE2"]), bad=("NODE2", "NODE3"))
    assert not planting.named(SLOW_NODE, both)


def test_of_the_nodes_on_a_core_that_is_taken_one_is_enough():
    taken = planting.Planted("core taken", ("NODE1", "NODE3"))
    assert planting.named(taken, verdict(("processor", ["NODE3"])))
    assert not planting.named(taken, verdict(("processor", ["NODE3"]), bad=("NODE2",)))


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        (planting.Planted("outgoing", ("NODE3",)), cause("outgoing", "NODE3")),
        (planting.Planted("incoming", ("NODE3",)), cause("incoming", "NODE3")),
        (planting.Planted("direction", ("NODE3", "NODE1")), cause("direction", "NODE3", "NODE1")),
        # A link has no direction: its nodes are in the order of their names.
        (planting.Planted("link", ("NODE3", "NODE1")), cause("link", "NODE1", "NODE3")),
    ],
)
def test_a_slow_network_is_named_by_its_cause_alone(fault, named):
    assert planting.named(fault, verdict(faults=[named]))
    assert not planting.named(fault, verdict(faults=[cause("node", "NODE3")]))
    assert not planting.named(fault, verdict(faults=[named, cause("outgoing", "NODE2")]))
    assert not planting.named(fault, verdict(("copy", ["NODE2"]), bad=("NODE2", "NODE3"), faults=[named]))


@pytest.mark.parametrize(
    ("count", "total", "interval"),
    # The rule of three, (1 - share) ** total = 0.025, gives those without and with all.
    [(0, 200, (0.0, 0.01828)), (50, 50, (0.92888, 1.0)), (45, 50, (0.78186, 0.96672))],
)
def test_an_interval_of_a_proportion_is_exact(count, total, interval):
    assert planting.proportion(count, total) == pytest.approx(interval, abs=1e-5)
