# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Says of each part of a fleet whether it is as fast as its equals, or as a published value.

A sequential test (Wald, Sequential Analysis, 1947) of two statements about a part: its rate is that of its
equals but for what healthy ones differ by (TOLERATED), or it is `least` of it.  Each measurement adds its log
likelihood ratio under a normal law, limited to MOST_EVIDENCE (Huber, Annals of Mathematical Statistics 36,
1965), so that no single disturbed measurement condemns a part.  The more measurements of healthy parts are
slow too, as on a machine that others use, the less a slow one says.  A part is good or bad as soon as the sum
leaves its limits; until then it is measured again.  tests/unit/accept/test_verdict.py and
tests/bench/acceptance measure how often the test is wrong.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

GOOD, BAD, UNCLEAR, OPEN, NO_REFERENCE = "good", "bad", "unclear", "open", "no reference"
"""`open` needs another measurement, `unclear` has had all of them and scatters too much."""

FEWEST_EQUALS = 3
"""Two parts that differ do not say which of them is wrong."""
APART = 0.8
"""Rate of the slower half, relative to the faster one, below which the faster half alone is the reference."""
FEWEST_VALUES = 8
"""Measurements of all parts together from which their scatter is known well enough."""
GRAVE = (0.5,)
"""Rates of a bad part that are tested besides: a great loss shows also where all scatter too much."""
FEWEST_OF_UNCLEAR = 6
"""Measurements after which a part is unclear if all scatter so much that the last one would not decide."""
MOST_EVIDENCE = 3.1
"""One good measurement accepts a part.  Three slow ones condemn it among 4 parts, four among 125."""
TOLERATED = 0.4
"""Share of the loss at which a part has to be found by which equal parts may differ: of 5 %, 2 %."""
LIMIT_OF_TEST = 0.03
"""A rate that has to be reached is tested as the middle between healthy parts and those 3 % slower."""
FEWEST_OF_ONE_TIME = 4
"""Of three rates of one time, one is always the median itself."""
LESS_SCATTER = 0.5
"""Share of the scatter below which rates are compared with those of the same time, not with all."""
LEAST_SCATTER = 0.002
"""Standard deviation of a measurement where fewer would make differences of no use decide."""
UNKNOWN_SCATTER = 0.01
"""Standard deviation of a measurement where there are no equals to see it from."""
NORMAL_MAD = 1.4826
"""Standard deviation of a normal law, as a multiple of the median distance from its middle."""


class Criteria(NamedTuple):
    """What a part has to reach, and how often the verdict may be wrong.

    `least` is the rate, relative to that of its equals, at which a part has to be found.  Healthy parts are
    condemned in at most `false_alarms` of all fleets, a part at `least` is accepted in at most `misses` of
    all cases.  After `most` measurements a part without a verdict is unclear.
    """

    least: float = 0.95
    false_alarms: float = 0.01
    misses: float = 0.05
    most: int = 20


class Finding(NamedTuple):
    """The verdict on one part; `ratio` is its median rate relative to the reference, None without one."""

    verdict: str
    ratio: float | None
    measurements: int


def against_equals(
    rates: Mapping[str, Sequence[float]], criteria: Criteria, tests: int
) -> dict[str, Finding]:
    """Return the finding on each part, from its rates in the order in which they were measured.

    The reference is the median of all parts; or of the faster half where the halves are far APART, as nothing
    makes a part faster than its equals.  So at most half of the parts may be bad, and fewer where they are
    not far slower.  `tests` is the number of verdicts on the whole fleet, over which its false alarms are
    shared.
    """
    checked(rates)
    if len(rates) < FEWEST_EQUALS:
        return {part: Finding(NO_REFERENCE, None, len(values)) for part, values in rates.items()}
    middles, reference, spread = _equals(rates)
    together = at_one_time(rates)
    of_together = _equals(together)
    if spread and of_together[2] and of_together[2] < LESS_SCATTER * spread:
        rates, (middles, reference, spread) = together, of_together
    tested = [(criteria, tests)]
    tested += [(criteria._replace(least=each), 2 * tests) for each in GRAVE if each < criteria.least]
    losses = [(*each, Disturbances(rates, slow_below(reference, each[0]))) for each in tested]
    findings = {}
    for part, values in rates.items():
        verdict = OPEN
        if spread:
            verdict, *of_graver = (
                decide(values, reference, spread, each, share, disturbances.most_evidence(part))
                for each, share, disturbances in losses
            )
            if verdict in (OPEN, UNCLEAR) and BAD in of_graver:
                verdict = BAD
            elif verdict == UNCLEAR and OPEN in of_graver:
                verdict = OPEN
        findings[part] = Finding(verdict, middles[part] / reference, len(values))
    return findings


def _equals(rates: Mapping[str, Sequence[float]]) -> tuple[dict[str, float], float, float | None]:
    """Return the median rate of each part, that of the reference, and the scatter."""
    middles = {part: median(values) for part, values in rates.items()}
    equals = _reference_parts(middles)
    reference = median(middles[part] for part in equals)
    return middles, reference, scatter({part: rates[part] for part in equals}, reference)


def _reference_parts(middles: Mapping[str, float]) -> list[str]:
    """Return the parts that the reference is of: the faster half where halves are far apart, else all."""
    ordered = sorted(middles, key=lambda part: middles[part])
    half, rest = divmod(len(ordered), 2)
    apart = not rest and middles[ordered[half - 1]] < APART * middles[ordered[half]]
    return ordered[half:] if apart else ordered


def at_one_time(rates: Mapping[str, Sequence[float]]) -> Mapping[str, Sequence[float]]:
    """Return the rates without what changed for all parts from one measurement to the next.

    Where all parts were measured equally often, their measurements of one number were made at the same time:
    the median of a time is made that of all.
    """
    if len(rates) < FEWEST_OF_ONE_TIME or len({len(values) for values in rates.values()}) > 1:
        return rates
    middles = [median(values) for values in zip(*rates.values(), strict=True)]
    common = median(middles)
    return {
        part: [value * common / middle for value, middle in zip(values, middles, strict=True)]
        for part, values in rates.items()
    }


def against_value(
    rates: Mapping[str, Sequence[float]], value: float, criteria: Criteria, tests: int
) -> dict[str, Finding]:
    """Return the finding on each part compared with a published value; criteria.least is its tolerance."""
    checked(rates)
    spread = max(UNKNOWN_SCATTER, scatter(rates, median(map(median, rates.values()))) or 0)
    return {
        part: Finding(decide(values, value, spread, criteria, tests), median(values) / value, len(values))
        for part, values in rates.items()
    }


def against_rate(
    rates: Mapping[str, Sequence[float]], rate: float, criteria: Criteria, tests: int
) -> dict[str, Finding]:
    """Return the finding on each part compared with the rate that it has to reach."""
    least = 1 - LIMIT_OF_TEST
    # The verdict changes in the middle between what equal parts may differ by and `least`.
    reference = rate / least ** ((1 + TOLERATED) / 2)
    tested = against_value(rates, reference, criteria._replace(least=least), tests)
    return {
        part: each._replace(ratio=each.ratio and each.ratio * reference / rate)
        for part, each in tested.items()
    }


def checked(rates: Mapping[str, Sequence[float]]) -> None:
    """Raise ValueError unless each part has a rate, and each rate is a number above zero."""
    for part, values in rates.items():
        wrong = [value for value in values if not (math.isfinite(value) and value > 0)]
        if wrong or not values:
            value = wrong[0] if wrong else "no rate"
            raise ValueError(f"{part}: {value}; a part is judged by rates above zero, measure it again")


def scatter(rates: Mapping[str, Sequence[float]], reference: float) -> float | None:
    """Return the standard deviation of a measurement of a healthy part; None where too few are known.

    That is how far the first measurements are from the reference, each part counted alike: the scatter of
    repeated measurements and the difference between equal parts together.  The median of the distances is
    robust to the bad ones.
    """
    rounds = min(map(len, rates.values()), default=0)
    distances = [abs(math.log(value / reference)) for values in rates.values() for value in values[:rounds]]
    if len(distances) < FEWEST_VALUES:
        return None
    # Of few values the median distance is often too small.
    few = 1 + FEWEST_VALUES / 2 / len(distances)
    return max(LEAST_SCATTER, NORMAL_MAD * median(distances) * few)


def slow_below(reference: float, criteria: Criteria) -> float:
    """Return the rate below which a measurement speaks against a part."""
    share: float = criteria.least ** ((1 + TOLERATED) / 2)
    return reference * share


class Disturbances:
    """How often measurements of healthy parts are slow: those of parts that were not slow every time.

    A part that is slow every time may be bad, and says nothing of it.
    """

    def __init__(self, rates: Mapping[str, Sequence[float]], below: float) -> None:
        slow = {part: sum(value < below for value in values) for part, values in rates.items()}
        self.slow = {part: count for part, count in slow.items() if count < len(rates[part])}
        self.all = {part: len(rates[part]) for part in self.slow}
        self.slow_of_all, self.count = sum(self.slow.values()), sum(self.all.values())

    def most_evidence(self, part: str) -> float:
        """Return what one slow measurement of a part says at most, by the share of slow ones of the others.

        The likelihood ratio of a slow measurement is at most one over that share.
        """
        slow = self.slow_of_all - self.slow.get(part, 0)
        count = self.count - self.all.get(part, 0)
        # One more than was seen: of few measurements none may have been disturbed by chance.
        return min(MOST_EVIDENCE, math.log((count + 1) / (slow + 1)))


def decide(
    values: Iterable[float],
    reference: float,
    spread: float,
    criteria: Criteria,
    tests: int,
    most_evidence: float = MOST_EVIDENCE,
) -> str:
    """Return the verdict of the sequential test on one part.

    A slow measurement adds `most_evidence` at most.
    """
    drop = -math.log(criteria.least)
    tolerated = TOLERATED * drop
    upper = math.log((1 - criteria.misses) * max(tests, 1) / criteria.false_alarms)
    lower = math.log(criteria.misses)
    total, count = 0.0, 0
    for value in values:
        count += 1
        evidence = (drop - tolerated) / spread**2 * (-math.log(value / reference) - (drop + tolerated) / 2)
        total += min(max(evidence, -MOST_EVIDENCE), most_evidence)
        if total >= upper or total <= lower:
            return BAD if total > 0 else GOOD
    if count >= criteria.most:
        return UNCLEAR
    # So much scatter that four times the evidence of a healthy part would not accept it in the end, and twice
    # that of this part would not decide.
    of_healthy = -criteria.most * (drop**2 - tolerated**2) / 2 / spread**2
    undecided = lower < 2 * total * criteria.most / max(count, 1) < upper
    return UNCLEAR if count >= FEWEST_OF_UNCLEAR and lower < 4 * of_healthy and undecided else OPEN


def of_traces(traces: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the verdict on each part by the digests of its trainings: equal parts have one and the same.

    That of more than half of at least FEWEST_EQUALS parts is right.  A part that gives two is bad anyway.
    """
    counts = Counter(digest for digests in traces.values() for digest in set(digests))
    [(right, most)] = counts.most_common(1) or [("", 0)]
    has_reference = len(traces) >= FEWEST_EQUALS and most * 2 > len(traces)
    return {
        part: BAD
        if len(set(digests)) > 1 or (has_reference and right not in digests)
        else (GOOD if has_reference else NO_REFERENCE)
        for part, digests in traces.items()
    }
