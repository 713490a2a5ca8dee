# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What nodes measure next: each pair in turn, what is open alone, and never more than the test can take."""

import json

import pytest
from acceptance_site import NODES
from ansible.module_utils.scalebook.accept import printed, schedule, triage
from ansible.module_utils.scalebook.accept.criteria import Wanted
from ansible.module_utils.scalebook.accept.schedule import Times
from ansible.module_utils.scalebook.accept.verdict import Criteria
from ansible.module_utils.scalebook.contracts import as_message, message

PLACES = {node: (f"10.0.0.{index}", 11111 + index) for index, node in enumerate(NODES)}


def row(quantity, measurements=1, part="NODE1 GPU0", verdict="open"):
    nodes = part.split(" → ") if quantity == "link" else [part.split()[0]]
    return {
        "part": part,
        "nodes": nodes,
        "quantity": quantity,
        "verdict": verdict,
        "against": "equals",
        "measurements": measurements,
    }


def test_all_is_a_schedule_in_which_no_node_is_in_two_places_at_once():
    taken = schedule.steps(
        dict.fromkeys(NODES, ()), [*triage.rounds(NODES)], [(NODES,)], [], Times(1, 1), PLACES
    )
    places = [[step["at"] for step in of_node] for of_node in taken.values()]
    assert places == [[0, 1, 2, 3, 4, 5, 6, 7, 8]] * 8
    pairs = {tuple(step["nodes"]) for of_node in taken.values() for step in of_node[1:-1]}
    assert len({frozenset(pair) for pair in pairs}) == len(pairs) == 28


def test_nodes_find_each_other_at_the_first_of_them():
    taken = schedule.steps({}, [[("NODE2", "NODE5")]], [], [], Times(1, 1), PLACES)
    step = {"at": 0, "nodes": ["NODE2", "NODE5"], "address": "10.0.0.1", "port": 11112}
    assert taken == {"NODE2": [step], "NODE5": [step]}


def test_repeated_measurements_of_a_node_and_of_a_link_take_turns():
    """A disturbance of a moment then slows one measurement of a part, not all."""
    taken = schedule.steps({"NODE1": (), "NODE2": ()}, [[("NODE1", "NODE2")]], [], [], Times(3, 2), PLACES)
    assert ["nodes" in step for step in taken["NODE1"]] == [False, True, False, True, False]


@pytest.mark.parametrize(
    ("nodes", "device", "times"),
    [
        (1, "cpu", (1, 1)), (2, "cpu", (1, 1)), (3, "cpu", (3, 2)), (4, "cpu", (2, 1)), (8, "cpu", (1, 1)),
        (4, "gpu", (1, 1)),
    ],
)  # fmt: skip
def test_at_first_all_is_measured_until_the_scatter_can_be_known(nodes, device, times):
    assert schedule.first(NODES[:nodes], device) == times


@pytest.mark.parametrize(("before", "more"), [(1, 1), (2, 1), (3, 1), (4, 2), (8, 4), (18, 2), (20, 1)])
def test_what_is_open_is_measured_half_as_often_again_but_no_more_than_is_allowed(before, more):
    assert schedule.again([row("copy", before), row("launch", 1)], 20) == Times(more, 1)


@pytest.mark.parametrize(
    ("part", "quantity", "name"),
    [
        ("NODE1 GPU0", "matmul_fp32", "matmul"), ("NODE1 CPU", "best_bf16", "products"),
        ("NODE1 GPU0", "from_device", "memory"), ("NODE1 GPU0", "launch", "launch"),
        ("NODE1 host", "memory", "host"), ("NODE1 host", "disk_read", "host"),
        ("NODE1 GPUs", "all_reduce", "GPUs"), ("NODE1 GPU0 → GPU1", "pair", "GPUs"),
    ],
)  # fmt: skip
def test_a_quantity_is_measured_again_by_the_program_that_measures_it(part, quantity, name):
    assert schedule.measured_by(part, quantity) == name


def asked(nodes, rows):
    """Return what each node measures alone again."""
    acceptance = {"nodes": nodes, "findings": rows, "problems": [], "criteria": {"most": 20}}
    known = [{"nodes": group, "rates": {}, "problems": {}} for group in (*([node] for node in nodes), nodes)]
    taken = schedule.next_steps(acceptance, known, "gpu", PLACES, Wanted(Criteria()))
    return {node: of_node[0].get("only") for node, of_node in taken.items() if "nodes" not in of_node[0]}


def judged(nodes, quantity, open_node):
    """Return the rows of a quantity that is open on one node, and of all links, which are good."""
    rows = [
        row(quantity, part=f"{node} GPU0", verdict="open" if node == open_node else "good") for node in nodes
    ]
    links = [f"{one} → {other}" for one in nodes for other in nodes if one < other]
    return rows + [row("link", part=part, verdict="good") for part in links]


def test_of_many_nodes_one_measures_again_what_is_open_of_it_and_of_few_all():
    assert asked(NODES, judged(NODES, "copy", "NODE3")) == {"NODE3": ["memory"]}
    assert asked(NODES[:4], judged(NODES[:4], "launch", "NODE3")) == dict.fromkeys(NODES[:4], ["launch"])


def test_nothing_is_asked_for_when_each_part_has_a_verdict():
    assert asked(NODES, judged(NODES, "copy", None)) == {}


class Group:
    """Two nodes that measured their link, and what each printed."""

    STEPS = {node: [{"at": 3, "nodes": ["NODE1", "NODE2"]}] for node in ("NODE1", "NODE2")}  # noqa: RUF012

    @staticmethod
    def line(**content):
        return {"stdout": json.dumps({"at": 3, "rates": {}, "traces": {}, "problems": {}, **content})}

    @classmethod
    def problem(cls, first, second):
        [measurement] = printed.of_steps(cls.STEPS, {"NODE1": first, "NODE2": second}, 60)
        return measurement["problems"].get("node")


def test_the_reason_of_a_link_is_that_of_the_node_that_has_one():
    lost = as_message("lost")
    assert Group.problem(Group.line(), Group.line(problems={"node": lost})) == lost


def test_a_node_that_died_is_the_reason_of_its_link():
    dead = {"unreachable": True, "msg": "No route to host"}
    assert (
        Group.problem(Group.line(), dead)
        == Group.problem(dead, Group.line())
        == as_message("No route to host")
    )


def test_a_link_of_which_nobody_says_anything_is_not_good():
    assert Group.problem(Group.line(), Group.line()) == message("acceptance.no-answer")


def test_what_a_node_has_measured_before_it_died_is_kept():
    steps = {"NODE1": [{"at": 0}, {"at": 1}]}
    line = {"at": 0, "name": "A", "rates": {"CPU": {"copy": 1.0}}, "traces": {}, "problems": {}}
    result = {"rc": 137, "stdout": json.dumps(line)}
    kept, lost = printed.of_steps(steps, {"NODE1": result}, 60)
    assert (kept["rates"], kept["problems"]) == ({"CPU": {"copy": 1.0}}, {})
    assert lost["problems"] == {"node": message("acceptance.not-ended", seconds=60)}
