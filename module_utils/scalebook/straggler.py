# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Which node holds the others up, though all of them take equally long for a step.

In a synchronised gang everybody waits for the slowest, so step times say nothing.  What run_node
measures without the framework does: the seconds that a node's processes computed, or queued for a
processor, in the window.  Who waits for a peer does neither.  Where waiting is done by spinning
(some MPI and NCCL settings) and on GPUs all nodes are busy all the time, and nothing is said.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

MORE, SHARE = 1.5, 0.1
"""How many times the others' work, and what part of the window more, is worth a word."""


def straggler(record: Mapping[str, Any]) -> str | None:
    """Return a sentence that names the node that works far more than the others, None when none does."""
    work = {}
    for node in record["nodes"]:
        busy = (node.get("exit") or {}).get("busy")
        if not isinstance(busy, Mapping):
            return None
        work[node["node"]] = (float(busy["work"]), float(busy["seconds"]))
    if len(work) < 2:
        return None
    name = max(work, key=lambda node: work[node][0])
    mine, seconds = work.pop(name)
    others = statistics.median(each for each, _ in work.values())
    if mine < MORE * others or mine - others < SHARE * seconds:
        return None
    return (
        f"{name} may hold the others up: it computed {mine:.1f} s in the window of {seconds:.1f} s, "
        f"the others {others:.1f} s"
    )
