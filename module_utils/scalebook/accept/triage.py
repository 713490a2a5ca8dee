# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Finds the part behind slow measurements of several: a node, one of its directions or rails, or a link.

All pairs of nodes are measured, in rounds of disjoint pairs, and the fewest causes are taken that explain
the slow ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

MOST_OF = 0.8
"""Share of a cause's measurements that have to be slow."""


class Link(NamedTuple):
    """What is measured between two nodes: one direction, over one rail (the networks of a node's devices)."""

    source: str
    target: str
    rail: int = 0


class Cause(NamedTuple):
    """A part that explains slow links; `kind` is one of KINDS, with a `rail` where only that is slow."""

    kind: str
    nodes: tuple[str, ...]
    rail: int | None = None


KINDS = (
    *("link", "direction", "node", "outgoing", "incoming"),
    *("rail", "rail-outgoing", "rail-incoming", "rail-link", "rail-direction"),
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


def explain(slow: Collection[Link], measured: Collection[Link]) -> list[Cause]:
    """Return the causes of the slow links, each time the one that explains most of those that are left.

    At least MOST_OF of the links of a cause are slow, those that earlier causes explain left out.
    """
    causes: list[Cause] = []
    slow_of, all_of = _by_cause(slow), _by_cause({*measured, *slow})
    left = set(slow)
    while left:
        fitting = [
            each for each, links in slow_of.items() if links and len(links) >= MOST_OF * len(all_of[each])
        ]
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


def _by_cause(links: Collection[Link]) -> dict[Cause, set[Link]]:
    links_of: dict[Cause, set[Link]] = defaultdict(set)
    for link in links:
        for cause in _causes(link):
            links_of[cause].add(link)
    return links_of
