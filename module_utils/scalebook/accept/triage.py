# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Finds the part behind slow measurements of several: a node, one of its directions or rails, a link, a rail.

All pairs of nodes are measured, in rounds of disjoint pairs, and the fewest causes are taken that explain
the slow ones.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

MOST_OF = 0.8
"""Share of a cause's measurements that have to be slow."""
MOST_GOOD_PAIRS = 0.01
"""Share of the pairs of nodes that may seem good on a rail that is slow everywhere, as tests miss some."""


class Link(NamedTuple):
    """What is measured between two nodes: one direction, over one rail (the networks of a node's devices)."""

    source: str
    target: str
    rail: int = 0


class Cause(NamedTuple):
    """A part that explains slow links; `kind` is one of KINDS, with a `rail` where only that is slow.

    A rail that is slow at all nodes is RAIL_EVERYWHERE, which has no `nodes`.
    """

    kind: str
    nodes: tuple[str, ...]
    rail: int | None = None


RAIL_EVERYWHERE = "rail-everywhere"
KINDS = (
    *("link", "direction", "node", "outgoing", "incoming"),
    *("rail", "rail-outgoing", "rail-incoming", "rail-link", "rail-direction"),
    RAIL_EVERYWHERE,
)
"""Of causes with the same links, as two nodes alone have them, that of the earliest kind is named."""


def rounds(nodes: Sequence[str]) -> Iterator[list[tuple[str, str]]]:
    """Yield rounds of disjoint pairs in which each pair comes once: n - 1 for an even number, else n.

    The method of tournaments: the first node stays, the others move on by one place.
    """
    ring: list[str | None] = [*nodes, *([None] if len(nodes) % 2 else [])]
    for _ in range(len(ring) - 1):
        halves = zip(ring[: len(ring) // 2], reversed(ring), strict=False)
        pairs = [(one, other) for one, other in halves if one is not None and other is not None]
        if pairs:
            yield pairs
        ring = [ring[0], ring[-1], *ring[1:-1]]


def _causes(link: Link) -> Iterator[Cause]:
    """Yield the causes that can make this link slow."""
    source, target, rail = link
    yield Cause("outgoing", (source,))
    yield Cause("incoming", (target,))
    for node in (source, target):
        yield Cause("node", (node,))
        yield Cause("rail", (node,), rail)
    yield Cause("link", (min(source, target), max(source, target)))
    yield Cause("direction", (source, target))
    yield Cause("rail-outgoing", (source,), rail)
    yield Cause("rail-incoming", (target,), rail)
    yield Cause("rail-link", (min(source, target), max(source, target)), rail)
    yield Cause("rail-direction", (source, target), rail)
    yield Cause(RAIL_EVERYWHERE, (), rail)


def explain(slow: Collection[Link], measured: Collection[Link]) -> list[Cause]:
    """Return the causes of the slow links, each time the one that explains most of those that are left.

    At least MOST_OF of the links of a cause are slow, those that earlier causes explain left out.
    """
    causes: list[Cause] = []
    slow_of, all_of = _by_cause(slow), _by_cause({*measured, *slow})
    left = set(slow)
    while left:
        fitting = [each for each, links in slow_of.items() if links and _fits(each, links, all_of)]
        best = max(
            sorted(fitting),
            key=lambda cause: (len(slow_of[cause]), -len(all_of[cause]), -KINDS.index(cause.kind)),
        )
        causes.append(best)
        for link in list(all_of[best]):
            left.discard(link)
            for cause in _causes(link):
                all_of[cause].discard(link)
                slow_of[cause].discard(link)
    return causes


def _fits(cause: Cause, slow: Collection[Link], all_of: Mapping[Cause, Collection[Link]]) -> bool:
    """Return whether enough of the links of a cause are slow.

    A rail is not slow everywhere where two nodes have a good link on it in both directions: then some nodes
    are slow, and the others show it.
    """
    if len(slow) < MOST_OF * len(all_of[cause]):
        return False
    if cause.kind != RAIL_EVERYWHERE:
        return True
    good = Counter(frozenset(link[:2]) for link in set(all_of[cause]) - set(slow))
    both_ways = sum(count == 2 for count in good.values())
    return both_ways <= MOST_GOOD_PAIRS * len(all_of[cause]) / 2


def _by_cause(links: Collection[Link]) -> dict[Cause, set[Link]]:
    links_of: dict[Cause, set[Link]] = defaultdict(set)
    for link in links:
        for cause in _causes(link):
            links_of[cause].add(link)
    return links_of
