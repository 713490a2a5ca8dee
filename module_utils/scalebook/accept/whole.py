# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Finds what makes all nodes together slow where each node and each link is good.

All nodes measure, then both halves of them at the same time: the faster half is the reference.  Where a half
is slow, its nodes are distributed over two new groups, each filled up with good nodes, which measure at the
same time; and so on with those of the slow group, until one node is left, or neither group is slow any more:
then the nodes are slow only together, as below a switch that cannot carry what all of them send.  Where both
are slow, each measures without the other; what is faster then is slow for something that both share.  Where
only all nodes together are slow, groups with nodes of both halves measure.  A group is slow as verdict.decide
says it: again and again.

All follows from the measurements so far: a round of groups without a verdict is what has to be measured next.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from ansible.module_utils.scalebook.accept import verdict
from ansible.module_utils.scalebook.accept.contracts import ALONE, Measurement
from ansible.module_utils.scalebook.accept.verdict import BAD, GOOD, NO_REFERENCE, OPEN, UNCLEAR, Criteria

FEWEST_NODES = 4
"""Nodes of which halves can be measured together."""
IN_SEARCH = 4
"""Measurements of a group in the search: what condemns it, for which torch is loaded once."""
MOST_SCATTER = 0.08
"""Standard deviation of a measurement above which nothing is said of groups: it would take too many."""
OF_SIZE = 0.5
"""Where no group of half the nodes is slow, all nodes may take twice as long: each has twice as many others.

That is so where all of the time is latency; where all of it is bandwidth, they are as fast.
"""
STRAGGLER, TOGETHER = "straggler", "together"
"""A node with which groups are slow, and nodes that are slow only together."""

Nodes = tuple[str, ...]
Round = tuple[Nodes, ...]
"""The groups that measure at the same time; all nodes are a round alone."""


class Cause(NamedTuple):
    """What explains that groups are slow; `kind` is STRAGGLER or TOGETHER."""

    kind: str
    nodes: Nodes


class Group(NamedTuple):
    """A group that was measured `alone` or beside another: the verdict, rates and ratio of each quantity."""

    nodes: Nodes
    alone: bool
    verdicts: dict[str, verdict.Finding]
    rates: dict[str, list[float]]


class Whole(NamedTuple):
    """The verdict on all nodes together, the causes, the groups, and the rounds that are to be measured."""

    verdict: str
    causes: list[Cause]
    groups: list[Group]
    wanted: list[Round]


class _WantedError(Exception):
    """A verdict takes more measurements of a round."""

    def __init__(self, rounds: Round, times: int) -> None:
        super().__init__()
        self.rounds = [rounds] * times


class _UnclearError(Exception):
    """Measurements scatter too much, or contradict each other."""


def halves(nodes: Sequence[str]) -> Round:
    """Return the two halves of the nodes in their order, in which those below one switch are neighbours."""
    middle = (len(nodes) + 1) // 2
    return tuple(nodes[:middle]), tuple(nodes[middle:])


def first(nodes: Sequence[str], healthy: bool = True) -> list[Round]:
    """Return what is measured at first; halves only where nothing has failed."""
    if len(nodes) < FEWEST_NODES - 1:
        return []
    return [(tuple(nodes),), *([halves(nodes)] if healthy and len(nodes) >= FEWEST_NODES else [])]


def folded(nodes: Iterable[str]) -> str:
    """Return the names of nodes in the short form of Slurm: NODE[1-4,7]."""
    of_prefix: dict[str, list[str]] = {}
    for node in nodes:
        prefix, number = re.fullmatch(r"(.*?)(\d*)", node).groups()  # type: ignore[union-attr]
        of_prefix.setdefault(prefix, []).append(number)
    return ",".join(prefix + _ranges(numbers) for prefix, numbers in of_prefix.items())


def group_name(nodes: Sequence[str], without_others: bool = False) -> str:
    """Return the name of the part that a group of nodes is, which measured alone or beside another group."""
    return f"{folded(nodes)}{ALONE if without_others else ''}"


def _ranges(numbers: Sequence[str]) -> str:
    if len(numbers) == 1:
        return numbers[0]
    runs = [[numbers[0], numbers[0]]]
    for before, number in pairwise(numbers):
        padded = len(before) != len(number) and before.startswith("0")
        if before and int(number) == int(before) + 1 and not padded:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return "[" + ",".join(begin if begin == end else f"{begin}-{end}" for begin, end in runs) + "]"


def judged(
    nodes: Sequence[str], devices: int, measurements: Iterable[Measurement], criteria: Criteria
) -> Whole:
    """Return the verdict on all nodes together, each with so many devices; each is good, as is each link.

    The measurements of groups have the key `group`, the round.
    """
    search = _Search(tuple(nodes), devices, measurements, criteria)
    causes: list[Cause] = []
    rounds_wanted: list[Round] = []
    try:
        causes = search.causes()
        reached = BAD if causes else GOOD
    except _WantedError as wants:
        reached, rounds_wanted = OPEN, wants.rounds
    except _UnclearError:
        reached = UNCLEAR
    except LookupError:  # something was not measured
        reached = NO_REFERENCE
    return Whole(reached, causes, [] if reached == NO_REFERENCE else search.groups(), rounds_wanted)


class _Search:
    """What follows from the measurements of all nodes and of groups of them."""

    def __init__(
        self,
        nodes: Nodes,
        devices: int,
        measurements: Iterable[Measurement],
        criteria: Criteria,
    ) -> None:
        self.nodes, self.devices, self.criteria = nodes, devices, criteria
        self.halves = halves(nodes)
        # The rates of each group by round and quantity, each with its place in the order of all.
        self.rates: dict[tuple[Round, Nodes], dict[str, list[tuple[int, float]]]] = {}
        for place, each in enumerate(measurements):
            if "group" not in each and len(each["nodes"]) < FEWEST_NODES - 1:
                continue
            group = tuple(each["nodes"])
            key = (tuple(map(tuple, each.get("group", [group]))), group)
            for quantity, rate in each["rates"].items():
                self.rates.setdefault(key, {}).setdefault(quantity, []).append((place, rate))
        quantities = {quantity for rates in self.rates.values() for quantity in rates}
        # Each level of the search has two groups beside each other, and both alone.
        self.tests = max(1, len(quantities)) * (3 + 4 * math.ceil(math.log2(max(2, len(nodes)))))
        self.spread = self._spread()

    def _spread(self) -> float:
        """Return the standard deviation of a measurement, from those that were repeated."""
        repeated = {}
        for key, rates in self.rates.items():
            for quantity, placed in rates.items():
                if len(placed) >= verdict.FEWEST_EQUALS:
                    middle = median(rate for _, rate in placed)
                    repeated[f"{key} {quantity}"] = [rate / middle for _, rate in placed]
        return max(verdict.UNKNOWN_SCATTER, verdict.scatter(repeated, 1.0) or 0)

    def reference(self, quantity: str, count: int) -> float:
        """Return the rate that a group of so many nodes has to reach: that of the faster half.

        Of a larger group less of the traffic stays within nodes, if the network is the slowest part of it.
        """
        rates = {
            half: median(rate for _, rate in self.rates[self.halves, half][quantity]) for half in self.halves
        }
        faster = max(self.halves, key=lambda half: rates[half])
        return rates[faster] * min(1, self._crossing(count) / self._crossing(len(faster)))

    def _crossing(self, count: int) -> float:
        """Return the bandwidth on the bus by that of the network, where only what crosses it counts."""
        return (count * self.devices - 1) / (self.devices * (count - 1))

    def findings_on(self, rounds: Round, group: Nodes, since: int = -1) -> dict[str, verdict.Finding]:
        """Return the finding on each quantity of a group, from what was measured after the place `since`."""
        findings = {}
        for quantity, placed in self.rates[rounds, group].items():
            rates = [rate for place, rate in placed if place > since]
            reference = self.reference(quantity, len(group))
            reached = verdict.decide(rates, reference, self.spread, self.criteria, self.tests)
            middle = median(rates) if rates else 0.0
            findings[quantity] = verdict.Finding(reached, middle / reference, len(rates))
        return findings

    def slow(self, rounds: Round, times: int = IN_SEARCH) -> list[Nodes]:
        """Return the groups of a round that are slow; they are measured so many times at first."""
        if (rounds, rounds[0]) not in self.rates:
            raise _WantedError(rounds, times)
        worst = {group: _worst(self.findings_on(rounds, group)) for group in rounds}
        if self.spread > MOST_SCATTER and set(worst.values()) != {GOOD}:
            raise _UnclearError
        if OPEN in worst.values():
            raise _WantedError(rounds, IN_SEARCH - 1)
        if UNCLEAR in worst.values():
            raise _UnclearError
        return [group for group in rounds if worst[group] == BAD]

    def causes(self) -> list[Cause]:
        """Return what makes all nodes together slow."""
        whole = (self.nodes,)
        if len(self.nodes) < FEWEST_NODES or (whole, self.nodes) not in self.rates:
            raise LookupError
        slow = self.slow(self.halves, 1)
        if len(slow) == 2:  # each is the slower one in another quantity
            raise _UnclearError
        if slow:
            good = [node for node in self.nodes if node not in slow[0]]
            return self.causes_within(slow[0], good, (self.halves, slow[0]))
        return self.between() if self.slow(whole) else []

    def between(self) -> list[Cause]:
        """Return the causes where both halves are good, and all nodes together are slow."""
        parts = [halves(half) for half in self.halves]
        mixed = tuple(tuple(node for part in parts for node in part[number]) for number in (0, 1))
        slow = self.slow(mixed)
        if not slow:
            # It is so for the number of nodes, as nothing else is different.
            if (
                min(each.ratio or 0 for each in self.findings_on((self.nodes,), self.nodes).values())
                < OF_SIZE
            ):
                raise _UnclearError
            return []
        return [Cause(TOGETHER, self.nodes if len(slow) == 2 else slow[0])]

    def causes_within(
        self, suspects: Nodes, good: Sequence[str], slow_in: tuple[Round, Nodes]
    ) -> list[Cause]:
        """Return the causes among suspects, which are slow in a group of a round with good nodes."""
        if len(suspects) == 1:
            return [Cause(STRAGGLER, suspects)]
        parts = halves(suspects)
        count = (len(suspects) + len(good) + 1) // 2 - len(parts[0])
        groups = ((*parts[0], *good[:count]), (*parts[1], *good[count:]))
        slow = self.slow(groups)
        if len(slow) == 2:
            slow = [group for group in groups if not self.faster_alone(groups, group)]
            if not slow:
                return [Cause(TOGETHER, suspects)]
            if len(slow) == 2:
                return self.in_both(suspects, good, groups)
            slow_in = (slow[0],), slow[0]
        elif slow:
            slow_in = groups, slow[0]
        else:
            self.confirm(*slow_in, groups)
            return [Cause(TOGETHER, suspects)]
        chosen = groups.index(slow[0])
        return self.causes_within(parts[chosen], [*good, *parts[1 - chosen]], slow_in)

    def faster_alone(self, rounds: Round, group: Nodes) -> bool:
        """Return whether a slow group of a round is faster where the other one does not measure."""
        self.slow((group,))
        of_both, of_one = self.findings_on(rounds, group), self.findings_on((group,), group)
        worst = min(of_both, key=lambda quantity: of_both[quantity].ratio or 0)
        limit = verdict.slow_below(of_one[worst].ratio or 0, self.criteria)
        return (of_both[worst].ratio or 0) < limit

    def in_both(self, suspects: Nodes, good: Sequence[str], groups: Round) -> list[Cause]:
        """Return the causes where both groups with suspects are slow without the other."""
        causes = [
            cause
            for part, group in zip(halves(suspects), groups, strict=True)
            for cause in self.causes_within(part, good, ((group,), group))
        ]
        only_together = all(each.kind == TOGETHER for each in causes)
        return [Cause(TOGETHER, suspects)] if only_together else causes

    def confirm(self, rounds: Round, group: Nodes, later: Round) -> None:
        """Return if a group is still slow after a later round was good; nothing was only a moment's fault."""
        since = max(
            place
            for group_then in later
            for placed in self.rates[later, group_then].values()
            for place, _ in placed
        )
        reached = _worst(self.findings_on(rounds, group, since))
        if reached == OPEN:
            raise _WantedError(rounds, IN_SEARCH)
        if reached != BAD:
            raise _UnclearError

    def groups(self) -> list[Group]:
        """Return the findings on all that was measured."""
        return [
            Group(
                group,
                len(rounds) == 1,
                self.findings_on(rounds, group),
                {quantity: [rate for _, rate in placed] for quantity, placed in rates.items()},
            )
            for (rounds, group), rates in self.rates.items()
            if group != self.nodes or rounds == (self.nodes,)
        ]


def _worst(findings: Mapping[str, verdict.Finding]) -> str:
    """Return the verdict on a group by those on its quantities."""
    order = (BAD, UNCLEAR, OPEN, GOOD)
    return min((each.verdict for each in findings.values()), key=order.index, default=OPEN)
