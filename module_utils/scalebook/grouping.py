# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Items by what they have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

Item = TypeVar("Item")


def grouped(items: Iterable[Item], by: Callable[[Item], Any]) -> dict[Any, list[Item]]:
    """Return items by a property of theirs, in their order."""
    groups: dict[Any, list[Item]] = {}
    for item in items:
        groups.setdefault(by(item), []).append(item)
    return groups


def unique(items: Iterable[Item]) -> list[Item]:
    """Return items in their order, each once; they need not be hashable, as messages are not."""
    firsts: list[Item] = []
    for item in items:
        if item not in firsts:
            firsts.append(item)
    return firsts
