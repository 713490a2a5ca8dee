# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The twelve keys in which nodes that train together must agree: which differ, and a table of them.

`rows` is {node: {key: value}} everywhere, with all of KEYS for each node, as role proof reads them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

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
NAMED = 8  # names of a long list; of the others the number will do

Rows = Mapping[str, Mapping[str, str]]


class ProofError(ValueError):
    """Rows that cannot be compared."""


def check(rows: Rows, may_differ: Collection[str] = ()) -> None:
    """Raise ProofError where a key is missing or unknown, so that no node agrees by having said nothing."""
    for node, row in rows.items():
        missing = [key for key in KEYS if not isinstance(row.get(key), str)]
        if missing:
            raise ProofError(f"{node} did not tell its {', '.join(missing)}")
    unknown = sorted(set(may_differ) - set(KEYS))
    if unknown:
        raise ProofError(f"proof_may_differ={', '.join(unknown)}: allowed are {', '.join(KEYS)}")


def by_value(rows: Rows, key: str) -> list[tuple[str, list[str]]]:
    """Return (value, nodes) of a key, the value that most nodes have first."""
    nodes: dict[str, list[str]] = {}
    for node, row in rows.items():
        nodes.setdefault(row[key], []).append(node)
    return sorted(nodes.items(), key=lambda item: -len(item[1]))


def differences(rows: Rows, may_differ: Collection[str] = ()) -> list[str]:
    """Return a sentence for each key that differs, such as `NCCL: 2.7.3 on NODE1, NODE2; 2.7.8 on NODE3`."""
    check(rows, may_differ)
    said = []
    for key, title in KEYS.items():
        groups = by_value(rows, key)
        if len(groups) > 1 and key not in may_differ:
            # All of the few, and of the many enough to know which they are.
            named = [_names(groups[0][1])] + [", ".join(nodes) for _, nodes in groups[1:]]
            pairs = zip((short(value) for value, _ in groups), named, strict=True)
            said.append(f"{title}: " + "; ".join(f"{value} on {nodes}" for value, nodes in pairs))
    return said


def table(rows: Rows, may_differ: Collection[str] = ()) -> str:
    """Return the table as text: a line per key, or one per value with its nodes where they differ."""
    check(rows, may_differ)
    width = max(len(title) for title in KEYS.values())
    lines = [f"The stack of {_names(list(rows))}:"]
    for key, title in KEYS.items():
        groups = by_value(rows, key)
        for place, (value, nodes) in enumerate(groups):
            line = f"  {'' if place else title:<{width}}  {short(value)}"
            if len(groups) > 1:
                line += f"   {_names(nodes)}" + (" (may differ)" if key in may_differ else "")
            lines.append(line)
    return "\n".join(lines)


def short(value: str) -> str:
    """Return a checksum's first digits; anything else as it is, on one line."""
    if re.fullmatch(r"[0-9a-f]{64}", value):
        return value[:12]
    return " ".join(value.split())


def _names(nodes: list[str]) -> str:
    rest = len(nodes) - NAMED
    return ", ".join(nodes) if rest <= 1 else f"{', '.join(nodes[:NAMED])} and {rest} more"
