# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What the logs of all trainers of the kit show: `log: {kit: PREFIX}` of a declaration stands for it, and
`log: {tensorflow: true}` for what `tensorflow_run.py` shows of a trainer that is not of the kit.

The functions that trainers share print these lines (`trainer_kit.Say`, `torch_run.announce`,
`paddle_run.Group`, `oneflow_run.begin` …), and trainers that have functions of their own print the same.
"""

from __future__ import annotations

from typing import Any

FORM = {
    "literal": "PREFIX step=",
    "step": r"PREFIX step=(?P<step>\d+)/(?P<last>\d+) loss=(?P<loss>\S+) time=(?P<time>\d+\.\d+)",
    "time": "unix",
}
"""How the lines of steps are read."""

SANITY: tuple[dict[str, Any], ...] = (
    # Processes count themselves: a launcher that formed no group shows here.
    {"name": "devices", "pattern": r"PREFIX world_size=(?P<value>\d+) ", "expect": "devices"},
    {"name": "nodes", "pattern": r"PREFIX world_size=.* nodes=(?P<value>\d+) ", "expect": "nodes"},
    {"name": "task", "pattern": r"PREFIX world_size=.* node_rank=(?P<value>\d+) ", "expect": "task_index"},
    # One process may form no group.
    {
        "name": "backend",
        "pattern": r"PREFIX world_size=(1 (.* )?backend=none|\d+ (.* )?backend=(nccl|gloo|mpi))( |$)",
    },
    {
        "name": "accumulation",
        "pattern": r"PREFIX batch=.* accumulation=(?P<value>\d+) ",
        "expect": "accumulation",
    },
    {
        "name": "global_batch",
        "pattern": r"PREFIX batch=.* global_batch=(?P<value>\d+)( |$)",
        "expect": "global_batch",
    },
    {"name": "dtype", "pattern": r"PREFIX dtype=(?P<value>\w+)( |$)", "expect": "dtype"},
    {"name": "steps", "pattern": r"PREFIX steps_done=(?P<value>\d+)( |$)", "expect": "steps"},
    # All ranks hold the same weights at the end: gradients were summed.
    {"name": "weights", "pattern": "PREFIX weights=agree end=true", "where": "end"},
)
"""The sanity rules; the literal of each is its pattern up to the first `=`."""

_SHOWS = {"if": "TENSORFLOW shows="}  # which run.sh prints since tensorflow_run.py does the rest
_GRAPH = {"literal": "TENSORFLOW replicas=", **_SHOWS}
_END = {"literal": "TENSORFLOW weights=", "where": "end", **_SHOWS}
TENSORFLOW: tuple[dict[str, Any], ...] = (
    # Of the graph of a step: the arguments of the trainer are only what was asked for.
    {"name": "graph_batch", "pattern": r" global_batch=(?P<value>\S+) ", "expect": "global_batch", **_GRAPH},
    {
        "name": "graph_dtype",
        "pattern": r" dtype=(?P<value>\S+) ",
        "expect": "dtype",
        "means": {"float32": "fp32", "float16": "fp16"},
        **_GRAPH,
    },
    {"name": "graph_xla", "pattern": r" xla=(?P<value>\w+)", "expect": "xla", **_GRAPH},
    {"name": "replicas", "pattern": r" compared=(?P<value>\d+)", "expect": "gpus", **_END},
    # Gradients that were not summed leave other weights on every node.
    {"name": "weights", "pattern": r" weights=(?P<value>\w+) ", "expect": "other_nodes", **_END},
)
"""The sanity rules of a trainer that `tensorflow_run.py` starts."""


def form(prefix: str) -> dict[str, str]:
    """Return how the lines of steps of a trainer are read, as its declaration would say it."""
    return {key: text.replace("PREFIX", prefix) for key, text in FORM.items()}


def sanity(prefix: str, nodes: str) -> list[dict[str, Any]]:
    """Return the sanity rules of a trainer, as its declaration would say them; `nodes` print the lines."""
    rules = []
    for rule in SANITY:
        pattern = rule["pattern"].replace("PREFIX", prefix)
        literal = pattern[: pattern.index("=") + 1]
        rules.append({**rule, "literal": literal, "pattern": pattern, "nodes": nodes})
    return rules
