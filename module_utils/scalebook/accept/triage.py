# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Finds the part behind slow measurements of several: the node, one of its directions or rails, or a link.

Either all pairs of nodes are measured, in rounds of disjoint pairs, and the fewest causes are taken that
explain the slow ones; or groups are tested, and a slow one is cut in halves down to its cause.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import NamedTuple

MOST_OF = 0.8
"""Share of a cause's measurements that have to be slow."""
WITNESSES = 3
"""Other nodes with which each of two suspects is tested."""


class Link(NamedTuple):
    """What is measured between two nodes: one direction, over one rail (the networks of a node's devices)."""

    source: str
    target: str
    rail: int = 0


class Cause(NamedTuple):
    """A part that explains slow links; `kind` is node, outgoing, incoming, rail, link or direction."""

    kind: str
    nodes: tuple[str, ...]
    rail: int | None = None


KINDS = ("link", "direction", "node", "outgoing", "incoming", "rail")
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


def locate(nodes: Sequence[str], slow: Callable[[Sequence[str]], bool]) -> list[Cause]:
    """Return the nodes and links that make the group `nodes` slow, by tests of parts of it.

    `slow` measures a group together and says whether it is slow; a group with a slow part has to be slow.
    A cause takes 2 log2 n tests and a few more, where all pairs take n - 1 rounds.
    """
    causes: list[Cause] = []
    rest = list(nodes)
    while rest and slow(rest):
        last = rest[_shortest(rest, slow) - 1]
        if slow([last]):
            cause = Cause("node", (last,))
        else:
            others = [node for node in rest if node != last]
            first = others[_shortest(others, partial(_slow_with, slow, last)) - 1]
            witnesses = [node for node in rest if node not in (first, last)][:WITNESSES]
            cause = _of_two(last, first, witnesses, slow)
        causes.append(cause)
        rest.remove(cause.nodes[-1])
    return causes


def _slow_with(slow: Callable[[Sequence[str]], bool], last: str, group: Sequence[str]) -> bool:
    return slow([*group, last])


def _shortest(nodes: Sequence[str], slow: Callable[[Sequence[str]], bool]) -> int:
    """Return the number of nodes of the shortest slow beginning; all of them are known to be slow."""
    fast, least = 0, len(nodes)
    while least - fast > 1:
        middle = (fast + least) // 2
        if slow(nodes[:middle]):
            least = middle
        else:
            fast = middle
    return least


def _of_two(one: str, other: str, witnesses: Sequence[str], slow: Callable[[Sequence[str]], bool]) -> Cause:
    """Return which of two nodes is slow with most witnesses, or the link between them."""
    for node in (one, other):
        if sum(slow([node, witness]) for witness in witnesses) * 2 > len(witnesses):
            return Cause("node", (node,))
    return Cause("link", (min(one, other), max(one, other)))
