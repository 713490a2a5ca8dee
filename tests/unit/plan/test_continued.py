# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Module campaign_plan: a campaign goes on with the machines that measured it, and with no others."""

import json
import re

import campaign_plan
import pytest
from ansible.module_utils.scalebook.files import write_json
from ansible.module_utils.scalebook.plan.resume import ResumeError
from cases import cluster, read_parameters
from declared import workload

WORKLOAD = workload(dtypes={"cpu": ["fp32"], "gpu": ["fp32"]}, xla=[False])
TWO = {"nodes": "1,2", "gpus": 1, "repeats": 1}


def host(number, boot=1, **other):
    """Return the identity of a machine; its disk is a copy of the others'."""
    return {"machine": "image", "addresses": [f"a{number}"], "boot": f"{number}-{boot}", **other}


def site(*numbers, names=None, boot=1):
    """Return nodes and their machines, by the numbers of these."""
    nodes = cluster(len(numbers), slots=1)
    for node, name in zip(nodes, names or [], strict=False):
        node["name"] = name
    hosts = (host(number, boot) for number in numbers)
    return nodes, {node["name"]: identity for node, identity in zip(nodes, hosts, strict=True)}


@pytest.fixture
def start(tmp_path):
    """Return a function that plans as a start of bench.yml does; with `measure` the runs count afterwards."""

    def planned(where, given=TWO, measure=True, asked=True, write=True, **params):
        nodes, machines = where
        result = campaign_plan.run(
            {
                "parameters": read_parameters(given, trainer=WORKLOAD),
                "workloads": {"trainer": WORKLOAD.as_data()},
                "device": "cpu",
                "nodes": nodes,
                "machines": machines if asked else {},
                "hardware": [],
                "inventory": "inventory/mine",
                "given": [],
                "results": str(tmp_path),
                "space": 0,
                "write": write,
                "searched": False,
                "launch": {},
                "holder": None,
                "takeover": False,
                **params,
            },
            check=False,
        )
        for run in result["pending"] if measure and write else ():
            record(tmp_path / result["campaign"], run, nodes, machines)
        return result

    return planned


def record(directory, run, nodes, machines):
    """Write the record of a run that counts."""
    used = [node["name"] for node in nodes[: run["case"]["nodes"]]]
    place = directory / run["folder"] / run["case"]["name"] / str(run["repeat"])
    write_json(
        place / "result.json",
        {
            "status": "ok",
            "machines": {name: machines[name] for name in used},
            "nodes": [{"node": name, "exit": {"boot": machines[name]["boot"]}} for name in used],
        },
    )


def forget_machines(directory):
    """Make what is in `directory` what an earlier version of scalebook wrote."""
    for path in (directory / "plan.json", *directory.glob("runs/*/*/result.json")):
        content = json.loads(path.read_text())
        del content["machines"]
        write_json(path, content)


NAMED = {**TWO, "campaign": "night"}


def test_the_same_machines_go_on(start):
    assert start(site(1, 2))["measured"] == 0
    assert start(site(1, 2))["measured"] == 2


def test_machines_that_were_started_again_go_on(start):
    start(site(1, 2))
    assert start(site(1, 2, boot=2))["measured"] == 2


@pytest.mark.parametrize(
    "other",
    [site(3, 4), site(2, 1), site(1, 3), site(3, 2), site(1, 2, names=["GPUHOST9", "GPUHOST10"])],
    ids=["other machines", "swapped", "the second replaced", "the first replaced", "other hosts"],
)
def test_other_machines_have_another_campaign(start, other):
    first = start(site(1, 2))
    second = start(other)
    assert second["campaign"] != first["campaign"]
    assert second["measured"] == 0


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (site(3, 4), "NODE1: other network devices; NODE2: other network devices"),
        (site(2, 1), "NODE1: other network devices; NODE2: other network devices"),
        (site(1, 3), "(NODE2: other network devices)"),
        (site(1, 2, names=["NODE1", "GPUHOST9"]), "(GPUHOST9: it was NODE2)"),
    ],
    ids=["other machines", "swapped", "one replaced", "another host"],
)
def test_a_named_campaign_of_other_machines_is_refused(start, other, why):
    start(site(1, 2), NAMED)
    with pytest.raises(ResumeError, match=re.escape(why)):
        start(other, NAMED)


def test_the_refusal_names_the_hosts_the_inventories_and_the_fix(start):
    start(site(1, 2), NAMED)
    with pytest.raises(ResumeError) as error:
        start(site(3, names=["GPUHOST9"]), {**NAMED, "nodes": 1}, inventory="inventory/other")
    assert "campaign=night: it was measured on NODE1, NODE2 (inventory/mine)" in str(error.value)
    assert "the nodes of today are GPUHOST9 (inventory/other)" in str(error.value)
    assert "campaign=NAME" in str(error.value)


def test_a_refused_start_changes_no_file(start, tmp_path):
    start(site(1, 2), NAMED)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.json")}
    with pytest.raises(ResumeError):
        start(site(3, 4), NAMED)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.json")} == before


def test_a_node_that_no_case_uses_may_be_any_machine(start):
    start(site(1, 2, 3))
    assert start(site(1, 2, 4))["measured"] == 2
    assert start(site(1, 2))["measured"] == 2


def test_a_campaign_may_grow_to_more_nodes_and_knows_them_from_then_on(start):
    start(site(1), {**NAMED, "nodes": 1})
    assert start(site(1, 2), NAMED)["measured"] == 1
    start(site(1), {**NAMED, "nodes": 1})
    with pytest.raises(ResumeError, match="NODE2: other network devices"):
        start(site(1, 3), NAMED)


def test_machines_that_measured_nothing_hinder_no_others(start):
    start(site(1, 2), NAMED, measure=False)
    assert start(site(3, 4), NAMED)["measured"] == 0


def test_a_campaign_whose_plan_is_lost_is_known_by_its_records(start, tmp_path):
    start(site(1, 2), NAMED)
    (tmp_path / "night/plan.json").unlink()
    with pytest.raises(ResumeError):
        start(site(3, 4), NAMED)
    assert start(site(1, 2, boot=2), NAMED)["measured"] == 2


def test_runs_of_other_machines_are_found_behind_a_plan_that_another_process_wrote(start, tmp_path):
    first, other = site(1, 2), site(3, 4)
    runs = start(first, NAMED, measure=False)["pending"]
    start(other, NAMED, measure=False)
    for run in runs:
        record(tmp_path / "night", run, *first)
    with pytest.raises(ResumeError, match="NODE1: other network devices"):
        start(other, NAMED)


def test_small_changes_do_not_add_up_to_another_machine(start):
    nodes, machines = site(1)
    one = {**NAMED, "nodes": 1}
    for addresses in (["a1", "a2"], ["a2", "a3"]):
        start((nodes, {"NODE1": {**machines["NODE1"], "addresses": addresses}}), one)
    with pytest.raises(ResumeError):
        start((nodes, {"NODE1": {**machines["NODE1"], "addresses": ["a3"]}}), one)


# Campaigns of earlier versions


def test_a_campaign_without_machines_goes_on_while_its_nodes_are_not_started_again(start, tmp_path):
    start(site(1, 2), NAMED)
    forget_machines(tmp_path / "night")
    first, second = start(site(1, 2), NAMED), start(site(1, 2), NAMED)
    assert (first["measured"], second["measured"]) == (2, 2)
    assert "do not name their machines" in first["display"]
    assert "do not name their machines" not in second["display"]


def test_a_campaign_without_machines_is_refused_after_a_restart(start, tmp_path):
    start(site(1, 2), NAMED)
    forget_machines(tmp_path / "night")
    with pytest.raises(
        ResumeError, match=r"recorded no machines.*report.yml -e campaign=night reports on it"
    ):
        start(site(1, 2, boot=2), NAMED)


def test_a_default_name_without_machines_gets_a_new_campaign_that_says_so_once(start, tmp_path):
    made = start(site(1, 2))["campaign"]
    old = made.rpartition("-")[0]
    (tmp_path / made).rename(tmp_path / old)
    forget_machines(tmp_path / old)
    first, second = (start(site(1, 2, boot=2)) for _ in range(2))
    assert first["campaign"] == second["campaign"] == made
    assert f"report.yml -e campaign={old} reports on that one" in first["display"]
    assert "reports on that one" not in second["display"]


# A plan that asks no node


def test_a_plan_that_asks_no_node_knows_the_campaign_by_the_names_of_its_nodes(start):
    made = start(site(1, 2))
    shown = start(site(1, 2), asked=False, write=False)
    assert (shown["campaign"], shown["measured"]) == (made["campaign"], 2)
    assert "no node was asked" in shown["display"]
    chinese = start(site(1, 2), {**TWO, "report_language": "zh"}, asked=False, write=False)["display"]
    assert "  注意：没有查询任何节点：如果节点仍是原来的机器，已测的结果就有效" in chinese.splitlines()


def test_a_plan_that_asks_no_node_counts_nothing_of_two_campaigns_on_nodes_of_these_names(start):
    start(site(1, 2))
    start(site(3, 4))
    shown = start(site(1, 2), asked=False, write=False)
    assert shown["measured"] == 0
    assert "the name gets a digest of the machines" in shown["display"]


def test_a_plan_that_asks_no_node_refuses_a_named_campaign_of_other_hosts(start):
    start(site(1, 2), NAMED)
    with pytest.raises(ResumeError, match="GPUHOST9: it was NODE1"):
        start(site(1, 2, names=["GPUHOST9", "GPUHOST10"]), NAMED, asked=False, write=False)


def test_the_plan_shows_what_the_nodes_compute_with(start):
    assert "  device cpu (1 worker per node), model tiny\n" in start(site(1, 2))["display"]
    gpus = [{"nodes": ["NODE1", "NODE2"], "gpus": [{"name": "NVIDIA H200"}] * 4}]
    nodes = [{**node, "slots": 4} for node in site(1, 2)[0]]
    shown = start((nodes, site(1, 2)[1]), device="gpu", hardware=gpus)["display"]
    assert "  device gpu (4 × NVIDIA H200 per node), model base\n" in shown


def test_gpus_that_simulated_nodes_share_are_those_of_their_machine(start):
    nodes = [{**node, "slots": 4, "machine": "localhost"} for node in site(1, 2)[0]]
    shown = start((nodes, site(1, 2)[1]), device="gpu", hardware=[])["display"]
    assert "  device gpu (4 × GPU per machine), model base\n" in shown


def test_the_command_is_that_of_this_start_and_not_of_the_plan_that_another_wrote(start, tmp_path):
    assert "inventory/mine" in start(site(1, 2), NAMED)["command"]
    other = start(site(1, 2), NAMED, inventory="inventory/other")["command"]
    assert "inventory/other" in other
