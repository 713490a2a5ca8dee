# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Between two nodes each pair of GPUs with the same number is measured for itself: a slow rail is named."""

import pytest
from acceptance_site import NODES, Site


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path, NODES[:5], name="NVIDIA X", devices=("GPU0", "GPU1", "GPU2", "GPU3"))


def test_rails_that_are_good_are_not_listed(site):
    made, _ = site.judged()
    assert made["accepted"]
    assert [row for row in made["findings"] if row["quantity"] == "rail"] == []


def test_a_slow_rail_of_a_node_is_named_though_its_links_as_a_whole_are_not_slow(site):
    for node in NODES[:5]:
        site.rates["NODE3", node, 2] = site.rates[node, "NODE3", 2] = 0.9
    made, result = site.judged()
    assert made["faults"] == [{"kind": "rail", "nodes": ["NODE3"], "rail": 2}]
    assert (made["bad"], {row["quantity"] for row in made["findings"] if row["verdict"] == "bad"}) == (
        ["NODE3"],
        {"rail"},
    )
    assert "Slow links have one cause: the rail of GPU2, NODE3." in result["display"]


def test_one_rail_makes_its_link_slow_and_the_rail_is_the_cause(site):
    for node in NODES[:5]:
        site.rates["NODE2", node, 1] = site.rates[node, "NODE2", 1] = 0.5
        site.rates["NODE2", node] = site.rates[node, "NODE2"] = 0.85
    assert site.judged()[0]["faults"] == [{"kind": "rail", "nodes": ["NODE2"], "rail": 1}]


def test_a_node_whose_rails_are_all_slow_is_the_cause(site):
    for node in NODES[:5]:
        for rail in range(4):
            site.rates["NODE4", node, rail] = site.rates[node, "NODE4", rail] = 0.7
        site.rates["NODE4", node] = site.rates[node, "NODE4"] = 0.7
    assert site.judged()[0]["faults"] == [{"kind": "node", "nodes": ["NODE4"]}]


def test_a_rail_that_is_slow_everywhere_condemns_no_node_and_says_where_to_look(site):
    for one in NODES[:5]:
        for other in NODES[:5]:
            site.rates[one, other, 2] = 0.7
    made, result = site.judged()
    assert made["faults"] == [{"kind": "rail-everywhere", "nodes": [], "rail": 2}]
    assert (made["accepted"], made["bad"]) == (False, [])
    assert "The rail of GPU2 is slow between all nodes: look at the switch of this rail" in result["refusal"]
    assert any(line.startswith("The rail of GPU2 is slow between all nodes") for line in result["display"])


def test_two_nodes_are_enough_to_compare_their_rails(tmp_path):
    site = Site(tmp_path, NODES[:2], name="NVIDIA X", devices=("GPU0", "GPU1", "GPU2", "GPU3"))
    site.rates["NODE1", "NODE2", 3] = 0.5
    made, _ = site.judged()
    assert [row["part"] for row in made["findings"] if row["verdict"] == "bad"] == ["NODE1 → NODE2 rail 3"]
    assert [(each["kind"], each["rail"]) for each in made["faults"]] == [("rail-outgoing", 3)]


@pytest.mark.parametrize(
    ("slow", "cause"),
    [
        ([("NODE1", "NODE2")], ("rail-direction", ["NODE1", "NODE2"])),
        ([("NODE1", "NODE2"), ("NODE2", "NODE1")], ("rail-link", ["NODE1", "NODE2"])),
        ([("NODE3", node) for node in NODES[:5] if node != "NODE3"], ("rail-outgoing", ["NODE3"])),
        ([(node, "NODE3") for node in NODES[:5] if node != "NODE3"], ("rail-incoming", ["NODE3"])),
    ],
)
def test_what_of_a_rail_is_slow_is_named(site, slow, cause):
    for ends in slow:
        site.rates[(*ends, 1)] = 0.6
    made, result = site.judged()
    assert [(each["kind"], each["nodes"], each["rail"]) for each in made["faults"]] == [(*cause, 1)]
    assert made["bad"] == cause[1][-1:]
