# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What nodes measure next: the steps that measure_parts.py takes on each of them, and when.

Nodes measure alone at the same time, then their links in rounds of disjoint pairs, then all together, and the
halves of them. What has no verdict yet is measured again, and as a process that measures has to load torch
first, several times in one: half as often as it was measured before, MOST_AT_ONCE times at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple, TypedDict

from ansible.module_utils.scalebook.accept import document, triage, verdict, whole
from ansible.module_utils.scalebook.accept.contracts import (
    HOST,
    LAUNCH,
    LINK,
    PAIR,
    RAIL,
    Measurement,
    PartFinding,
)
from ansible.module_utils.scalebook.accept.criteria import Wanted

MOST_AT_ONCE = 4
"""Measurements of a part that are asked for without looking at those before."""
OF_LINKS = (LINK, RAIL)
MEASURED_BY = {"matmul": "matmul", "best": "products", LAUNCH: "launch"}
"""What measure_parts.py calls the measurement of a quantity of a device, by how its name begins."""


class Step(TypedDict, total=False):
    """A step of a node: its place in the schedule of all, and what is measured.

    That is the node alone, `only` of it where that is there, or what `nodes` send each other; they find each
    other at the address and port of the first. `group` has all groups of nodes that measure at the same time,
    where they are not all nodes: what two of them do is then what more would.
    """

    at: int
    only: list[str]
    nodes: list[str]
    address: str
    port: int
    group: list[list[str]]


class Times(NamedTuple):
    """How often nodes and links have to be measured."""

    nodes: int
    links: int


Steps = dict[str, list[Step]]
"""The steps of each node."""
OfNodes = Mapping[str, Sequence[str]]
"""What each node measures alone; nothing is everything."""


def measured_by(part: str, quantity: str) -> str:
    """Return what measure_parts.py calls the measurement of a quantity of a part."""
    if part.endswith(f" {HOST}"):
        return HOST
    if part.endswith(" GPUs") or quantity == PAIR:
        return "GPUs"
    return MEASURED_BY.get(quantity.partition("_")[0], "memory")


def first(nodes: Sequence[str], device: str) -> Times:
    """Return how often all is measured at first: until the scatter of equal parts can be known.

    How many GPUs a node has is not known before.
    """
    if len(nodes) < verdict.FEWEST_EQUALS:
        return Times(1, 1)
    links = len(nodes) * (len(nodes) - 1)
    of_nodes = -(-verdict.FEWEST_VALUES // len(nodes)) if device == "cpu" else 1
    return Times(of_nodes, -(-verdict.FEWEST_VALUES // links))


def again(rows: Iterable[PartFinding], most: int) -> Times:
    """Return how often what is open is measured again, when the rows are those of open parts."""
    counts: dict[bool, int] = {}
    for row in rows:
        of_link = row["quantity"] in OF_LINKS
        counts[of_link] = max(counts.get(of_link, 0), row["measurements"])
    of_nodes, of_links = (
        max(1, min(counts[of_link] // 2, MOST_AT_ONCE, most - counts[of_link])) if of_link in counts else 1
        for of_link in (False, True)
    )
    return Times(of_nodes, of_links)


def steps(
    of_nodes: OfNodes,
    rounds: Sequence[Sequence[Sequence[str]]],
    together: Sequence[whole.Round],
    present: Sequence[str],
    times: Times,
    places: Mapping[str, tuple[str, int]],
) -> Steps:
    """Return the steps of each node; `places` are the address and port at which each is found.

    `together` are rounds of groups of the nodes that are `present`, which can be one of them.
    """
    asked_of: Steps = {}
    places_of_steps = count()

    def take(nodes: Sequence[str], step: Step) -> None:
        for node in nodes:
            asked_of.setdefault(node, []).append(step)

    def several(nodes_of: Sequence[Sequence[str]], beside: Step) -> None:
        place = next(places_of_steps)
        for nodes in nodes_of:
            address, port = places[nodes[0]]
            take(nodes, {"at": place, "nodes": [*nodes], "address": address, "port": port, **beside})

    for number in range(max(times)):
        if of_nodes and number < times.nodes:
            place = next(places_of_steps)
            for node, only in of_nodes.items():
                take([node], {"at": place, **({"only": [*only]} if only else {})})
        for pairs in rounds if number < times.links else ():
            several(pairs, {})
    for groups in together:
        several(groups, {"group": [[*group] for group in groups]} if groups != (tuple(present),) else {})
    return asked_of


def next_steps(
    acceptance: Mapping[str, Any],
    measurements: Sequence[Measurement],
    device: str,
    places: Mapping[str, tuple[str, int]],
    thresholds: Wanted,
) -> Steps:
    """Return the steps that bring verdicts on all parts nearer; none where each has one.

    `thresholds` say what groups of nodes have to reach.
    """
    nodes, rows, failed = (acceptance[key] for key in ("nodes", "findings", "problems"))
    open_nodes, rounds = document.still_open(nodes, rows, failed)
    waiting = [row for row in rows if row["verdict"] == verdict.OPEN and not document.is_of_group(row)]
    of_nodes = dict(_of_nodes(open_nodes, waiting, measurements))
    times = again(waiting, acceptance["criteria"]["most"]) if measurements else first(nodes, device)
    together = document.wanted_together(nodes, measurements, rows, failed, thresholds)
    return steps(of_nodes, rounds, together, document.measured_alone(nodes, failed), times, places)


def _of_nodes(
    open_nodes: Sequence[str],
    waiting: Sequence[PartFinding],
    measurements: Iterable[Measurement],
) -> Iterator[tuple[str, list[str]]]:
    """Yield what each node measures: what its open quantities take, of few nodes those of all of them."""
    measured = {each["nodes"][0] for each in measurements if len(each["nodes"]) == 1}
    of_node: dict[str, set[str]] = {}
    for row in waiting:
        if row["quantity"] not in OF_LINKS:
            name = measured_by(row["part"], row["quantity"])
            for node in open_nodes if len(open_nodes) <= document.FEW_NODES else row["nodes"]:
                of_node.setdefault(node, set()).add(name)
    for node in open_nodes:
        yield node, sorted(of_node.get(node, ())) if node in measured else []


def whole_round(nodes: Sequence[str], places: Mapping[str, tuple[str, int]]) -> Steps:
    """Return the steps that measure all nodes and all links once."""
    return steps(dict.fromkeys(nodes, ()), [*triage.rounds(nodes)], [], [], Times(1, 1), places)
