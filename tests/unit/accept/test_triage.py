# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The cause of slow measurements of several nodes is named, and nothing else is."""

import random
from itertools import combinations

import pytest
from ansible.module_utils.scalebook.accept.triage import Cause, Link, explain, rounds
from fleets import Cluster

NODES = [f"NODE{index}" for index in range(1, 7)]
LINKS = [Link(one, other, rail) for one in NODES for other in NODES if one != other for rail in (0, 1)]


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8, 125])
def test_each_pair_comes_once_in_rounds_of_disjoint_pairs(count):
    nodes = [f"NODE{index}" for index in range(count)]
    made = list(rounds(nodes))
    assert len(made) == (count - 1 if count % 2 == 0 else count)
    assert all(len({node for pair in pairs for node in pair}) == 2 * len(pairs) for pairs in made)
    pairs = [frozenset(pair) for pairs in made for pair in pairs]
    assert sorted(map(sorted, pairs)) == sorted(map(sorted, combinations(nodes, 2)))


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_nodes_have_no_pairs(count):
    assert list(rounds(NODES[:count])) == []


@pytest.mark.parametrize(
    ("slow", "cause"),
    [
        (lambda link: "NODE2" in link, Cause("node", ("NODE2",))),
        (lambda link: link.source == "NODE2", Cause("outgoing", ("NODE2",))),
        (lambda link: link.target == "NODE2", Cause("incoming", ("NODE2",))),
        (lambda link: "NODE2" in link and link.rail == 1, Cause("rail", ("NODE2",), 1)),
        (lambda link: {"NODE2", "NODE5"} <= set(link), Cause("link", ("NODE2", "NODE5"))),
        (lambda link: link[:2] == ("NODE5", "NODE2"), Cause("direction", ("NODE5", "NODE2"))),
    ],
    ids=lambda each: each.kind if isinstance(each, Cause) else "",
)
def test_the_least_cause_that_explains_all_slow_links_is_named(slow, cause):
    assert explain(list(filter(slow, LINKS)), LINKS) == [cause]


def on_rail(nodes, rail=1):
    """Return the links of these nodes on one rail, with all other nodes."""
    return [link for link in LINKS if link.rail == rail and {*nodes} & {*link[:2]}]


def test_a_rail_that_is_slow_between_all_nodes_is_named_once_not_node_by_node():
    assert explain(on_rail(NODES), LINKS) == [Cause("rail-everywhere", (), 1)]
    # One link of the rail seemed good.
    assert explain(on_rail(NODES)[1:], LINKS) == [Cause("rail-everywhere", (), 1)]


@pytest.mark.parametrize("slow", [NODES[:2], NODES[1:4], NODES[:4]])
def test_nodes_that_are_slow_on_a_rail_are_named_where_the_others_are_good_between_each_other(slow):
    assert set(explain(on_rail(slow), LINKS)) == {Cause("rail", (node,), 1) for node in slow}


def test_a_node_that_is_slow_on_the_other_rail_too_is_named_beside_a_rail_that_is_slow_everywhere():
    slow = {*on_rail(NODES), *on_rail(NODES[:1], rail=0)}
    assert explain(slow, LINKS) == [Cause("rail-everywhere", (), 1), Cause("node", ("NODE1",))]


def test_a_slow_pair_of_two_nodes_is_a_slow_link():
    links = [Link("NODE1", "NODE2"), Link("NODE2", "NODE1")]
    assert explain(links, links) == [Cause("link", ("NODE1", "NODE2"))]


def test_a_fast_cluster_has_no_cause():
    assert explain([], LINKS) == []


FAULTS = {
    ("gpu", "NODE3", 5): 0.93,
    ("processor", "NODE9"): 0.9,
    Cause("link", ("NODE1", "NODE7")): 0.8,
    Cause("outgoing", ("NODE4",)): 0.8,
    Cause("rail", ("NODE5",), 1): 0.7,
    Cause("node", ("NODE11",)): 0.9,
}


def test_planted_faults_of_every_kind_are_named_and_nothing_else_is():
    assert Cluster(random.Random(48), 24, FAULTS).blamed() == set(FAULTS)
