# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What is slow only in groups of nodes is named, by groups of half of them, and healthy nodes are not."""

import json

import fleets
import jsonschema
import pytest
from acceptance_site import NODES, Site
from ansible.module_utils.scalebook.accept import whole
from ansible.module_utils.scalebook.accept.criteria import Wanted
from ansible.module_utils.scalebook.accept.verdict import Criteria
from ansible.module_utils.scalebook.accept.whole import Cause
from ansible.module_utils.scalebook.pages.wording import ENGLISH
from chinese import faults, texts_of
from run_module import ROOT
from sentences import sentences_in

LIMITS = Wanted(Criteria()).for_quantity("together")


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["NODE1", "NODE2", "NODE3"], "NODE[1-3]"), (["NODE1", "NODE3", "NODE4"], "NODE[1,3-4]"),
        (["n08", "n09", "n10"], "n[08-10]"), (["n9", "n10"], "n[9-10]"), (["n09", "n010"], "n[09,010]"),
        (["a1", "b1", "b2"], "a1,b[1-2]"), (["login", "n1"], "login,n1"), (["NODE1"], "NODE1"), ([], ""),
    ],
)  # fmt: skip
def test_names_of_nodes_are_short_as_in_slurm(names, short):
    assert whole.folded(names) == short


def test_all_nodes_and_halves_of_them_are_measured_at_first_one_after_the_other():
    assert whole.first(NODES) == [(tuple(NODES),), (tuple(NODES[:4]), tuple(NODES[4:]))]
    assert whole.first(NODES[:3]) == [(tuple(NODES[:3]),)]
    assert whole.first(NODES[:2]) == []


def test_a_healthy_cluster_takes_one_measurement_more_and_shows_no_line_more(site):
    made, result = site.judged()
    assert site.asked == [(8, 28)]
    groups = [row for row in made["findings"] if row["part"].startswith("NODE[")]
    assert {(row["part"], row["verdict"]) for row in groups} == {("NODE[1-4]", "good"), ("NODE[5-8]", "good")}
    assert not any("NODE[" in line for line in result["display"])
    assert any(line.startswith("good         all nodes: all_reduce 1.5 GB/s") for line in result["display"])


def test_a_node_that_is_slow_only_in_groups_is_bad_with_that_reason(site):
    site.straggling["NODE6"] = 0.7
    made, result = site.judged()
    assert made["faults"] == [{"kind": "straggler", "nodes": ["NODE6"]}]
    assert (made["accepted"], made["bad"], len(made["good"])) == (False, ["NODE6"], 7)
    assert ENGLISH.tell(made["reasons"]["NODE6"]) == "slow only in groups of nodes"
    line = "Groups of nodes are slow with NODE6, which is good alone and in pairs."
    assert line in result["display"]
    verdicts = {row["part"]: row["verdict"] for row in made["findings"]}
    assert (verdicts["all nodes"], verdicts["NODE[1-4]"], verdicts["NODE[5-8]"]) == ("bad", "good", "bad")


def test_nodes_that_are_slow_only_together_are_named_and_none_is_condemned(site):
    site.shared, site.carried = {*NODES[:4]}, 2
    made, result = site.judged()
    assert made["faults"] == [{"kind": "together", "nodes": NODES[:4]}]
    assert (made["accepted"], made["bad"], made["good"]) == (False, [], NODES)
    assert result["refusal"].startswith("NODE[1-4] are slow only together, each node and each link is good")
    assert not any("To take out one of them is enough" in line for line in result["display"])


@pytest.mark.parametrize("shared", [set(), {*NODES[:4]}])
def test_the_documents_say_what_is_slow_in_groups_in_each_language(tmp_path, shared):
    site = Site(tmp_path, templates=str(ROOT / "templates"))
    site.straggling, site.shared, site.carried = {} if shared else {"NODE6": 0.7}, shared, 2
    made, _ = site.judged()
    assert sentences_in(made) == []
    schema = json.loads((ROOT / "docs/reference/acceptance.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(made)
    chinese, english = (texts_of((tmp_path / f"acceptance.{name}.html").read_text()) for name in ("zh", "en"))
    assert faults(chinese) == []
    assert "较快的一半节点" in chinese
    assert "the faster half of the nodes" in english
    assert ("NODE[1-2,5-6]单独测量" if shared else "含NODE6的节点组慢") in "".join(chinese)


def test_a_search_that_was_not_ended_is_no_acceptance_and_says_what_to_do(site):
    site.straggling["NODE6"] = 0.7
    steps = site.report(again=False)["steps"]
    result = site.report(outputs=site.printed(steps), steps=steps)
    assert result["refusal"].startswith("all nodes: it is not known yet which groups of them are slow")


def test_nothing_is_said_of_all_nodes_where_one_is_slow_alone(site):
    site.rates["NODE3", "CPU"] = 0.9
    site.straggling["NODE3"] = 0.5
    made, _ = site.judged()
    of_groups = {(row["part"], row["verdict"]) for row in made["findings"] if len(row["nodes"]) > 2}
    assert (of_groups, made["faults"]) == ({("all nodes", "no reference")}, [])


def test_four_nodes_are_compared_in_groups_of_two_whose_links_stay_links(tmp_path):
    few = Site(tmp_path, NODES[:4])
    few.straggling["NODE2"] = 0.6
    made, _ = few.judged()
    assert made["faults"] == [{"kind": "straggler", "nodes": ["NODE2"]}]
    assert {row["verdict"] for row in made["findings"] if row["quantity"] == "link"} == {"good"}


def test_a_half_that_cannot_be_measured_fails_no_link_of_it(tmp_path):
    few = Site(tmp_path, NODES[:4])
    few.broken_groups = {("NODE1", "NODE2")}
    made, result = few.judged()
    assert (made["accepted"], made["bad"], made["faults"]) == (False, [], [])
    assert result["refusal"].startswith("NODE[1-2]: ")


def test_the_criteria_say_what_all_nodes_together_have_to_reach(tmp_path):
    for rate, accepted in ((1.4, True), (1.6, False)):
        file = tmp_path / "tender.yml"
        file.write_text(json.dumps({"quantities": {"together": {"at_least": rate}}}))
        made, result = Site(tmp_path, criteria=str(file)).judged()
        assert made["accepted"] == accepted
        assert made["criteria"]["by_quantity"]["together"] == {"least": 0.8, "at_least": rate}
    assert result["refusal"].startswith("all nodes all_reduce 1.5 of 1.6 GB/s expected")


def of_rates(nodes, devices, together, *of_groups):
    """Return the verdict on nodes, each with so many devices, by the rates of all and of groups."""
    names = tuple(fleets.names(nodes))
    rounds = [whole.halves(names), (names[::2], names[1::2])]
    measured = [{"nodes": [*names], "rates": {"all_to_all": together}}] * 4
    for groups, rate in zip(rounds, of_groups, strict=False):
        for group in groups:
            measurement = {
                "nodes": [*group],
                "rates": {"all_to_all": rate},
                "group": [[*each] for each in groups],
            }
            measured += [measurement] * 4
    return whole.judged(names, devices, measured, LIMITS)


def test_more_nodes_may_be_slower_by_what_stays_within_nodes_with_several_devices():
    """Of 16 GPUs of two nodes 8 are in the other one, of 32 of four nodes 24."""
    assert of_rates(4, 8, 0.7, 1.0).verdict == "good"
    found = of_rates(4, 1, 0.7, 1.0)
    assert (found.verdict, {*found.wanted}) == ("open", {(("NODE1", "NODE3"), ("NODE2", "NODE4"))})


def test_all_nodes_may_take_twice_as_long_as_half_of_them_where_no_group_is_slow():
    assert of_rates(4, 1, 0.7, 1.0, 1.0).verdict == "good"
    assert of_rates(4, 1, 0.4, 1.0, 1.0).verdict == "unclear"
    found = of_rates(4, 1, 0.7, 1.0, 0.7)
    assert found.causes == [Cause("together", tuple(fleets.names(4)))]


def test_groups_that_scatter_too_much_say_nothing_and_fail_nothing(site):
    site.together = lambda *_: site.source.uniform(0.2, 1)
    made, _ = site.judged()
    assert (made["accepted"], made["bad"], made["faults"]) == (True, [], [])
    assert {row["verdict"] for row in made["findings"] if row["part"] == "all nodes"} == {"unclear"}


def test_healthy_nodes_are_condemned_in_at_most_one_fleet_of_a_hundred_and_most_take_two_rounds():
    healthy = fleets.HealthyGroups(1000)
    assert healthy.condemned <= 0.01
    assert healthy.in_two_rounds >= 0.8


@pytest.mark.parametrize("kind", fleets.ONLY_IN_GROUPS)
def test_what_is_slow_only_in_groups_is_named_19_times_of_20(kind):
    """The starts are those of the programs, which load torch; 20 are allowed."""
    search = fleets.Searches(kind, 150)
    assert search.named >= 0.95
    assert search.starts <= (16 if kind == "two stragglers" else 9)
    assert search.rounds <= (64 if kind == "two stragglers" else 32)
