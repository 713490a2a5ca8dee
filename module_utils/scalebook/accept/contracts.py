# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The shape of acceptance.json, of what it is made of, and the names in it."""

from __future__ import annotations

from typing import Any, TypedDict

from ansible.module_utils.scalebook.accept.verdict import BAD, GOOD, NO_REFERENCE, OPEN, UNCLEAR
from ansible.module_utils.scalebook.contracts import Interconnect, Message

SCHEMA = 4
OLDEST_SCHEMA = 3
"""The first schema that is read; it had English sentences, and the commands for Slurm."""
WORST = (BAD, UNCLEAR, OPEN, GOOD, NO_REFERENCE)
LINK = "link"
RAIL = "rail"
"""The pair of GPUs with the same number in two nodes."""
PAIR = "pair"
HOST = "host"
ALL_NODES = "all nodes"
"""The part that all nodes are together, measured after each of them and each link."""
TOGETHER = "together"
"""The criterion of groups of nodes, the whole among them; its rate is that of the all-reduce of all nodes."""
HALF = "half"
"""The reference of groups: the faster half of the nodes."""
ALONE = " alone"
"""How the part ends that a group is which measured while no other one did."""
LAUNCH = "launch"
TRACE = "trace"
EQUALS = "equals"
CRITERIA = "criteria"
"""The source of a rate that the file of criteria asks for."""


class _Printed(TypedDict, total=False):
    nccl: Interconnect
    rails: dict[str, list[float]]
    group: list[list[str]]


class Measurement(_Printed):
    """What a node, or the first of several nodes, printed; the other keys are those of measure_parts.py.

    `nccl` is what NCCL connected the GPUs by, where it said it, `rails` the rates from the first GPU of one
    node to the first of the other one, the second and so on, by direction. `group` is there where a group of
    the nodes measured collectives: all groups that did so at the same time.
    """

    nodes: list[str]
    name: str | None
    rates: dict[str, Any]
    traces: dict[str, str]
    problems: dict[str, Message]
    gpus: list[str]
    processor: str
    pairs: list[dict[str, Any]]
    sizes: list[dict[str, Any]]


class CriteriaUsed(TypedDict):
    """What a part has to reach, and how often the verdict may be wrong; see docs/reference/acceptance.md.

    `title` is that of the file of criteria; `by_quantity` has the share (`least`) and rate (`at_least`) of
    quantities that have their own.
    """

    title: str
    by_quantity: dict[str, dict[str, float]]
    least: float
    false_alarms: float
    misses: float
    most: int


class PartFinding(TypedDict):
    """The verdict on one quantity of a part, which is on `nodes`.

    `rate` is the median of `measurements`, `ratio` that relative to the reference: the median of equals
    in the fleet, or the published value of `against`, a source.  They are null for a trace of a training.
    All nodes together and groups of them, which have the names of their nodes, are compared with the faster
    half of the nodes.
    """

    part: str
    nodes: list[str]
    quantity: str
    verdict: str
    against: str | None
    rate: float | None
    unit: str
    ratio: float | None
    measurements: int


class _Rail(TypedDict, total=False):
    rail: int


class Fault(_Rail):
    """What explains slow links: a node, its outgoing or incoming direction, a link or its direction, a rail.

    A rail is what connects the GPUs with the number `rail` of all nodes: only that is slow at `nodes`. Of a
    rail that is slow everywhere, `nodes` is empty. What explains slow groups is a straggler, a node that is
    slow only in groups, or nodes that are slow only together.
    """

    kind: str
    nodes: list[str]


class Problem(TypedDict):
    """What could not be measured, or drifted or failed in the burn-in, and why."""

    part: str
    nodes: list[str]
    reason: Message


class Judged(TypedDict):
    """A node that was judged: its address, and the UUIDs of its GPUs as the driver lists them."""

    address: str
    gpus: list[str]


class Worst(TypedDict):
    """The quantity of a part that lost most of what its criterion allows: last rounds relative to first."""

    part: str
    quantity: str
    ratio: float


class Watched(TypedDict):
    """A GPU at the ends of the rounds: highest temperature, corrected memory errors, `clocks` in MHz.

    Clocks are the lowest and the highest of its processors.  What the driver does not tell is null.
    """

    degrees: float | None
    clocks: list[float] | None
    corrected: float


class BurnIn(TypedDict):
    """The burn-in: its `hours`, the seconds and rounds so far, and what was seen; `problems` has the errors.

    `before` is what the GPUs had reported already before the first round, `watched` are the GPUs.
    """

    hours: float
    seconds: float
    rounds: int
    errors: int
    worst: Worst | None
    before: list[Message]
    watched: dict[str, Watched]


class Connection(TypedDict):
    """What NCCL connected GPUs by, alike in so many `measurements` of `nodes`.

    `between` is node (the GPUs of a node), link (those of two nodes) or all nodes.
    """

    between: str
    nodes: list[str]
    measurements: int
    nccl: Interconnect


class _OfGpus(TypedDict, total=False):
    connections: list[Connection]


class Acceptance(_OfGpus):
    """acceptance.json: whether a cluster is accepted, the verdict on each part, what to do about bad ones.

    `accepted` is true where every part is good.  `bad` are the nodes to take out, each with its reason in
    `reasons`, `unclear` those without a verdict; `limit` is for Ansible, without the bad ones.  `time` is
    when it was written, in UTC, `machines` are the nodes by name.  `burnin` is null without hours.
    `connections` are there where NCCL said what it connected the GPUs by.
    """

    schema: int
    time: str
    machines: dict[str, Judged]
    accepted: bool
    criteria: CriteriaUsed
    nodes: list[str]
    findings: list[PartFinding]
    faults: list[Fault]
    problems: list[Problem]
    good: list[str]
    bad: list[str]
    unclear: list[str]
    reasons: dict[str, Message]
    limit: str
    burnin: BurnIn | None
    scalebook: dict[str, str]
    command: str
