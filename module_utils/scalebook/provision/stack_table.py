# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The twelve keys in which nodes that train together must agree: which differ, and a table of them.

`rows` is {node: {key: value}} everywhere, with all of KEYS for each node, as module stack_check_info returns
them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

KEYS = {
    "driver": "driver",
    "cuda": "CUDA",
    "cudnn": "cuDNN",
    "nccl": "NCCL",
    "mpi": "MPI",
    "horovod": "Horovod",
    "python": "Python",
    "framework": "framework",
    "kernel": "kernel",
    "commit": "commit",
    "data": "data sha256",
    "script": "script sha256",
}
NAMED = 8  # names that a long list shows; the others are counted

Rows = Mapping[str, Mapping[str, str]]


class StackError(ValueError):
    """Rows that cannot be compared."""


def compare(rows: Rows, may_differ: Collection[str] = ()) -> dict[str, Any]:
    """Return where the nodes differ, and the table; raise StackError."""
    return {
        "changed": False,
        "differences": differences(rows, may_differ),
        "display": table(rows, may_differ),
    }


def check(rows: Rows, may_differ: Collection[str] = ()) -> None:
    """Raise StackError where a key is missing or unknown: a node without a value must not count as equal."""
    for node, row in rows.items():
        missing = [key for key in KEYS if not isinstance(row.get(key), str)]
        if missing:
            raise StackError(f"{node} reported no {', '.join(missing)}")
    unknown = sorted(set(may_differ) - set(KEYS))
    if unknown:
        raise StackError(f"stack_check_may_differ={', '.join(unknown)}: allowed are {', '.join(KEYS)}")


def by_value(rows: Rows, key: str) -> list[tuple[str, list[str]]]:
    """Return (value, nodes) of a key, the value that most nodes have first."""
    nodes: dict[str, list[str]] = {}
    for node, row in rows.items():
        nodes.setdefault(row[key], []).append(node)
    return sorted(nodes.items(), key=lambda item: -len(item[1]))


def differences(rows: Rows, may_differ: Collection[str] = ()) -> list[str]:
    """Return a sentence for each key that differs, such as `NCCL: 2.7.3 on NODE1, NODE2; 2.7.8 on NODE3`."""
    check(rows, may_differ)
    sentences = []
    for key, title in KEYS.items():
        groups = by_value(rows, key)
        if len(groups) > 1 and key not in may_differ:
            # The nodes of the most frequent value are shortened, all others are named.
            groups_named = [_names(groups[0][1])] + [", ".join(nodes) for _, nodes in groups[1:]]
            pairs = zip((short(value) for value, _ in groups), groups_named, strict=True)
            sentences.append(f"{title}: " + "; ".join(f"{value} on {nodes}" for value, nodes in pairs))
    return sentences


def table(rows: Rows, may_differ: Collection[str] = ()) -> str:
    """Return the table as text: a line per key, or one per value with its nodes where they differ."""
    check(rows, may_differ)
    width = max(len(title) for title in KEYS.values())
    lines = [f"Software stack of {_names(list(rows))}:"]
    for key, title in KEYS.items():
        groups = by_value(rows, key)
        for place, (value, nodes) in enumerate(groups):
            line = f"  {'' if place else title:<{width}}  {short(value)}"
            if len(groups) > 1:
                line += f"   {_names(nodes)}" + (" (may differ)" if key in may_differ else "")
            lines.append(line)
    return "\n".join(lines)


def short(value: str) -> str:
    """Return the first digits of a checksum; anything else unchanged, on one line."""
    if re.fullmatch(r"[0-9a-f]{64}", value):
        return value[:12]
    return " ".join(value.split())


def _names(nodes: list[str]) -> str:
    rest = len(nodes) - NAMED
    return ", ".join(nodes) if rest <= 1 else f"{', '.join(nodes[:NAMED])} and {rest} more"
