# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Simulated fleets: parts that differ a little, measurements that scatter, and some that are disturbed.

Equal parts differ by a standard deviation of 0.5 %, measurements of one part by 0.1 to 1 % (those of runs in
docs/results by 0.02 to 1 %, see noise.py), and two measurements of a hundred are 3 to 30 % slow because
something else used the machine meanwhile; on a busy machine many more are.
"""

from __future__ import annotations

import math
import random
from statistics import mean, median

from ansible.module_utils.scalebook.accept import criteria, document, triage, verdict, whole

DIFFERENCE = 0.005
SCATTER = (0.001, 0.01)
DISTURBED, SLOWED = 0.02, (0.03, 0.3)
CRITERIA = verdict.Criteria()


class Fleet:
    """Parts by name, each with its true rate; 1 is that of a healthy one."""

    def __init__(self, source, true, disturbed=DISTURBED):
        self.source, self.disturbed = source, disturbed
        self.scatter = source.uniform(*SCATTER)
        self.true = {part: rate * (1 + DIFFERENCE * source.gauss(0, 1)) for part, rate in true.items()}

    @classmethod
    def of(cls, source, count, slow=None, disturbed=DISTURBED):
        """Return `count` parts, numbered, of which `slow` gives some their rate."""
        return cls(source, {index: (slow or {}).get(index, 1.0) for index in range(count)}, disturbed)

    def measured(self, part):
        rate = self.true[part] * (1 + self.scatter * self.source.gauss(0, 1))
        return rate * (1 - self.source.uniform(*SLOWED)) if self.source.random() < self.disturbed else rate

    def findings(self, criteria=CRITERIA, tests=None):
        """Measure in rounds, each time the parts that are open, of few parts all, and return the findings."""
        rates = {part: [] for part in self.true}
        still_open = list(rates)
        while still_open:
            for part in still_open:
                rates[part].append(self.measured(part))
            findings = verdict.against_equals(rates, criteria, tests or len(rates))
            still_open = [part for part, each in findings.items() if each.verdict == verdict.OPEN]
            if still_open and len(rates) <= document.FEW_NODES:
                still_open = list(rates)
        return findings

    def bad(self, **options):
        return {part for part, each in self.findings(**options).items() if each.verdict == verdict.BAD}

    def bad_by_fixed(self, count, least=0.965):
        """Return the parts that the medians of `count` measurements of each condemn."""
        middles = {part: median(self.measured(part) for _ in range(count)) for part in self.true}
        reference = median(middles.values())
        return {part for part, each in middles.items() if each < least * reference}


SIZES = (4, 5, 6, 8, 12, 16, 24, 32, 64, 96, 125)


def fleets(count, seed=48, sizes=SIZES):
    """Yield `count` sources of randomness and sizes of fleets."""
    source = random.Random(seed)
    for _ in range(count):
        yield source, source.choice(sizes)


class Errors:
    """How often a verdict is wrong on `count` fleets, and after how many measurements it is given.

    `disturbed` is the share of measurements that something else slows down.
    """

    def __init__(self, count, disturbed=DISTURBED, sizes=SIZES):
        drawn, others = fleets(count, sizes=sizes), fleets(count, seed=45, sizes=sizes)
        healthy = [Fleet.of(*each, disturbed=disturbed).findings() for each in drawn]
        slow = [Fleet.of(*each, {0: 0.95}, disturbed).findings() for each in others]
        self.condemned = sum(any(map(is_bad, each.values())) for each in healthy) / count
        self.found = sum(is_bad(each[0]) for each in slow) / count
        self.measurements = mean(part.measurements for each in healthy for part in each.values())
        self.measurements_of_slow = mean(each[0].measurements for each in slow)


def errors_of_fixed(count, measurements):
    """Return (fleets with a healthy part condemned, slow parts found) by medians of so many measurements."""
    condemned = sum(bool(Fleet.of(*each).bad_by_fixed(measurements)) for each in fleets(count))
    found = sum(0 in Fleet.of(*each, {0: 0.95}).bad_by_fixed(measurements) for each in fleets(count, seed=45))
    return condemned / count, found / count


def is_bad(finding):
    return finding.verdict == verdict.BAD


class Cluster:
    """Nodes with GPUs, processors and rails between them, and planted faults, each with its rate."""

    def __init__(self, source, nodes, faults, gpus=8, rails=2):
        self.names = [f"NODE{index + 1}" for index in range(nodes)]
        self.faults = faults
        self.gpus = Fleet(
            source, {(name, gpu): self.rate(("gpu", name, gpu)) for name in self.names for gpu in range(gpus)}
        )
        self.processors = Fleet(source, {name: self.rate(("processor", name)) for name in self.names})
        links = [
            triage.Link(*ends, rail)
            for pairs in triage.rounds(self.names)
            for one, other in pairs
            for ends in ((one, other), (other, one))
            for rail in range(rails)
        ]
        self.links = Fleet(source, {link: min(map(self.rate, triage._causes(link))) for link in links})

    def rate(self, part):
        return self.faults.get(part, 1.0)

    def blamed(self):
        """Return the parts that acceptance names, as keys of `faults`."""
        return {
            *(("gpu", *part) for part in self.gpus.bad()),
            *(("processor", name) for name in self.processors.bad()),
            *triage.explain(self.links.bad(), set(self.links.true)),
        }


def names(count):
    return [f"NODE{index + 1}" for index in range(count)]


COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")


class Groups:
    """Nodes that are good alone and in pairs, and measure in groups, with a fault that only these show.

    `slowed` gives nodes the rate of a group that they are in; `shared` are nodes below a switch that carries
    what the share `carried` of them send at the same time, and `between` the rate of groups of both halves.
    """

    def __init__(self, source, count, slowed=None, shared=(), carried=1.0, between=1.0):
        self.source, self.scatter = source, source.uniform(*SCATTER)
        self.nodes = names(count)
        self.slowed, self.shared, self.carried, self.between = slowed or {}, {*shared}, carried, between
        self.differences = {}
        self.measurements, self.rounds, self.starts = [], 0, 0

    def rate(self, group, at_once):
        """Return the true rate of a group, `at_once` are all nodes that measure at the same time."""
        rate = min(self.slowed.get(node, 1.0) for node in group)
        if self.shared & {*group}:
            rate *= min(1, self.carried * len(self.shared) / len(self.shared & {*at_once}))
        if not any({*group} <= {*half} for half in whole.halves(self.nodes)):
            rate *= self.between
        return rate * self.differences.setdefault(group, 1 + DIFFERENCE * self.source.gauss(0, 1))

    def measure(self, groups):
        """Measure a round of groups."""
        self.rounds += 1
        at_once = [node for group in groups for node in group]
        for group in groups:
            rates = {}
            for name in COLLECTIVES:
                rate = self.rate(group, at_once) * math.exp(self.scatter * self.source.gauss(0, 1))
                disturbed = self.source.random() < DISTURBED
                rates[name] = rate * (1 - self.source.uniform(*SLOWED)) if disturbed else rate
            beside = {} if list(group) == self.nodes else {"group": [[*each] for each in groups]}
            self.measurements.append({"nodes": [*group], "rates": rates, **beside})

    def judged(self):
        """Measure until there is a verdict, and return it."""
        wanted, limits = whole.first(self.nodes), criteria.Wanted(CRITERIA).for_quantity("together")
        while wanted:
            self.starts += 1
            for groups in wanted:
                self.measure(groups)
            found = whole.judged(self.nodes, 1, self.measurements, limits)
            wanted = found.wanted
        return found


def straggler(source, count):
    node = source.choice(names(count))
    return Groups(source, count, {node: source.uniform(*SLOW)}), {whole.Cause("straggler", (node,))}


def oversubscribed(source, count):
    half = source.choice(whole.halves(names(count)))
    groups = Groups(source, count, shared=half, carried=source.uniform(*SLOW))
    return groups, {whole.Cause("together", half)}


def between_halves(source, count):
    groups = Groups(source, count, between=source.uniform(*SLOW))
    return groups, {whole.Cause("together", tuple(names(count)))}


def two_stragglers(source, count):
    count = max(count, 8)
    nodes = source.sample(source.choice(whole.halves(names(count))), 2)
    groups = Groups(source, count, {node: source.uniform(*SLOW) for node in nodes})
    return groups, {whole.Cause("straggler", (node,)) for node in nodes}


SLOW = (0.3, 0.8)
ONLY_IN_GROUPS = {
    "straggler": straggler,
    "oversubscribed half": oversubscribed,
    "between the halves": between_halves,
    "two stragglers": two_stragglers,
}
"""Faults that only groups of nodes show: each makes a fleet, and the causes that have to be named."""


class Searches:
    """How often a fault of groups is named on `count` fleets; the most starts and rounds that one takes."""

    def __init__(self, kind, count):
        named = self.starts = self.rounds = 0
        for source, nodes in fleets(count, seed=45):
            groups, causes = ONLY_IN_GROUPS[kind](source, nodes)
            named += set(groups.judged().causes) == causes
            self.starts, self.rounds = max(self.starts, groups.starts), max(self.rounds, groups.rounds)
        self.named = named / count


class HealthyGroups:
    """The share of `count` healthy fleets of which groups are said to be slow, and that took two rounds."""

    def __init__(self, count):
        made = [Groups(*each) for each in fleets(count)]
        self.condemned = sum(groups.judged().verdict != verdict.GOOD for groups in made) / count
        self.in_two_rounds = sum(groups.rounds == 2 for groups in made) / count
