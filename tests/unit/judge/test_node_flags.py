# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Flags of nodes: processor time that a hypervisor took, and another machine than before."""

import printed
import pytest
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.pages.catalogue import sentence
from ansible.module_utils.scalebook.report import csv_sheet, environment, first_screen, scaling
from ansible.module_utils.scalebook.report.view import View
from ansible.module_utils.scalebook.store.load import load_campaign
from report_records import campaign, case, record


def node(name, busy, steal):
    """Return telemetry of a node with its processors' time: seconds per second."""
    quantities = {"cpu::busy": {"mean": busy}, "cpu::steal": {"mean": steal}}
    return {"node": name, "quantities": quantities, "about": {"cores": 32}}


def flags(tmp_path, *records, code="stolen"):
    made = build_results(load_campaign(campaign(tmp_path, records)))
    return [
        sentence(flag["message"]) for row in made["rows"] for flag in row["flags"] if flag["code"] == code
    ]


def run_on(of, repeat, *boots):
    """Return a record whose nodes were started as `boots` say, None for one that does not know."""
    made = record(of, repeat)
    [first] = made["nodes"]
    ends = [{"host": "vm", "boot": boot} if boot else {"host": "vm"} for boot in boots]
    names = [f"NODE{number}" for number in range(1, len(boots) + 1)]
    nodes = [{**first, "node": name, "exit": end} for name, end in zip(names, ends, strict=True)]
    return {**made, "nodes": nodes}


def changed(tmp_path, *records):
    return flags(tmp_path, *records, code="machine-changed")


def test_the_repeats_that_a_hypervisor_slowed_are_named_with_the_worst_share(tmp_path):
    """The four runs of tf2_bert in fp16 on two H100, whose rates were 869, 848, 750 and 771 samples/s."""
    of = case()
    readings = [(1.723, 0.086), (1.773, 0.184), (1.689, 0.447), (1.655, 0.382)]
    records = [record(of, n, 100.0, telemetry=[node("A", *each)]) for n, each in enumerate(readings, 1)]
    assert flags(tmp_path, *records) == [
        "the hypervisor took up to 20.9 % of a node's processor time (repeat 2, 3, 4)"
    ]


def test_the_node_that_lost_most_decides(tmp_path):
    nodes = [node("A", 1.0, 0.0), node("B", 9.0, 1.0)]
    assert flags(tmp_path, record(case(2, 1), 1, telemetry=nodes)) == [
        "the hypervisor took up to 10 % of a node's processor time (repeat 1)"
    ]


@pytest.mark.parametrize("reading", [(1.0, 0.0), (0.0, 0.0), (1.0, 0.05)])
def test_a_node_that_lost_little_is_not_flagged(tmp_path, reading):
    assert flags(tmp_path, record(case(), 1, telemetry=[node("A", *reading)])) == []


def test_a_node_that_does_not_know_is_not_flagged(tmp_path):
    unknown = {"node": "A", "quantities": {"cpu::busy": {"mean": 1.0}}, "about": {"cores": 32}}
    assert flags(tmp_path, record(case(), 1, telemetry=[unknown])) == []


def test_a_run_that_does_not_count_is_not_named(tmp_path):
    of = case()
    records = [
        record(of, 1, 100.0, telemetry=[node("A", 1.0, 0.0)]),
        record(of, 2, None, telemetry=[node("A", 1.0, 1.0)]),
    ]
    assert flags(tmp_path, *records) == []


def test_repeats_on_another_machine_than_the_first_are_named(tmp_path):
    """A virtual machine that is made again has the same name, and the processors of another host."""
    of = case()
    records = [run_on(of, 1, "a"), run_on(of, 2, "a"), run_on(of, 3, "b"), run_on(of, 4, "c")]
    assert changed(tmp_path, *records) == [
        "not all repeats ran on the same machines, or one was started again in between (repeat 3, 4)"
    ]


def test_a_speedup_over_a_run_on_another_machine_is_flagged(tmp_path):
    records = [run_on(case(), 1, "a"), run_on(case(1, 2), 1, "b")]
    assert changed(tmp_path, *records) == [
        "1n1g (repeat 1) ran on a machine that this case did not use, or before it was started again: "
        "the speedup compares different machines"
    ]


def test_a_speedup_over_repeats_of_which_some_ran_on_another_machine_is_flagged(tmp_path):
    """torch_gpt2 with 64 sequences on two hosts of one kind: 201 sequences/s on one GPU of the first, where
    all runs of 1n4g were made, and 193 on the second. The median over both gives 98.6 instead of 97.5 %."""
    records = [run_on(case(), 1, "a"), run_on(case(), 2, "b"), run_on(case(1, 4), 1, "a")]
    assert changed(tmp_path, *records) == [
        "not all repeats ran on the same machines, or one was started again in between (repeat 2)",
        "1n1g (repeat 2) ran on a machine that this case did not use, or before it was started again: "
        "the speedup compares different machines",
    ]


def test_a_speedup_over_a_run_on_one_of_the_machines_is_not_flagged(tmp_path):
    assert changed(tmp_path, run_on(case(), 1, "a"), run_on(case(2, 1), 1, "a", "b")) == []


def test_machines_that_are_not_known_are_not_flagged(tmp_path):
    of = case()
    records = [run_on(of, 1, None), run_on(of, 2, "a"), run_on(case(2, 1), 1, "b", None)]
    assert changed(tmp_path, *records) == []


def shared(tmp_path, *records):
    return flags(tmp_path, *records, code="shared-machine")


def two_containers(boots, virtual="container"):
    made = run_on(case(2, 1), 1, *boots)
    names = [node["node"] for node in made["nodes"]]
    nodes = [{**node, "exit": {**node["exit"], "host": node["node"]}} for node in made["nodes"]]
    return {**made, "nodes": nodes, "hardware": [{"nodes": names, "virtual": virtual}]}


def test_containers_that_were_started_with_one_kernel_are_on_one_machine(tmp_path):
    assert shared(tmp_path, two_containers("aa")) == [
        "2 nodes, 1 machine: this says nothing about a network between machines"
    ]


def test_simulated_nodes_are_on_one_machine(tmp_path):
    assert shared(tmp_path, run_on(case(2, 1), 1, None, None)) == [
        "2 nodes, 1 machine: this says nothing about a network between machines"
    ]


def test_containers_of_two_hosts_have_no_flag(tmp_path):
    assert shared(tmp_path, two_containers("ab")) == []


def test_containers_that_do_not_tell_their_host_are_not_taken_for_machines(tmp_path):
    assert shared(tmp_path, two_containers([None, None])) == [
        "2 nodes in containers: no record says on how many machines"
    ]


def test_the_machines_of_such_containers_are_not_recorded(tmp_path):
    made = build_results(load_campaign(campaign(tmp_path, [two_containers([None, None])])))
    assert csv_sheet.sheet(made).rows[0]["machines"] == "not recorded"
    assert environment.simulated(made) is None


def test_hosts_with_names_of_their_own_are_machines(tmp_path):
    assert shared(tmp_path, two_containers([None, None], virtual="")) == []


def test_the_head_and_the_table_say_that_containers_share_a_machine(tmp_path):
    made = build_results(load_campaign(campaign(tmp_path, [two_containers("aa")])))
    assert "2 nodes, 1 machine" in first_screen.blocks(View(made))[0].text
    assert "2 nodes, 1 machine" in printed.rows(scaling.weak(View(made)))[0]["flags"]
    assert csv_sheet.sheet(made).rows[0]["machines"] == "2 nodes, 1 machine"
