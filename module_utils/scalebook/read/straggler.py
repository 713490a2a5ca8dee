# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Which node holds the others up, though all of them take equally long for a step.

In a synchronised job everybody waits for the slowest, so step times say nothing.  What run_node
measures without the framework does: the seconds that a node's processes computed, or queued for a
processor, in the window.  Who waits for a peer does neither.  Looked at are the computing alone, which
shows a node with more to do also where all nodes queue, and both together, which shows one whose
processors something else takes.  Where waiting is done by spinning (some MPI and NCCL settings) and on
GPUs all nodes are busy all the time, and nothing is said.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from ansible.module_utils.scalebook.contracts import Message, Record, message

MORE, SHARE, LEAST = 1.5, 0.1, 1.0
"""How many times the others' work, what part of the window more, and how many seconds, cause a warning."""


def straggler(record: Record) -> Message | None:
    """Return a message that names the node that works far more than the others, None when none does."""
    times = {}
    for node in record["nodes"]:
        busy = (node.get("exit") or {}).get("busy")
        if not isinstance(busy, Mapping):
            return None
        times[node["node"]] = (float(busy["work"]), float(busy.get("queued", 0)), float(busy["seconds"]))
    if len(times) < 2:
        return None
    computed = {name: work_seconds - queued for name, (work_seconds, queued, _) in times.items()}
    both = {name: work_seconds for name, (work_seconds, _, _) in times.items()}
    for code, seconds in (("computed", computed), ("computed-or-queued", both)):
        name = max(seconds, key=lambda node: seconds[node])
        mine, window = seconds[name], times[name][2]
        others = statistics.median(each for node, each in seconds.items() if node != name)
        if mine >= MORE * others and mine - others >= max(LEAST, SHARE * window):
            return message(f"run.straggler-{code}", node=name, mine=mine, window=window, others=others)
    return None
