# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The data that passes between the parts of scalebook, each defined once.

A case is described by the table CASE; every list of its fields is derived from it.  The TypedDicts are
the contents of plan.json, result.json and results.json and of what is made on the way; docs/reference
publishes their JSON schemas (scripts/generated/schemas.py).  `upgrade` reads what 0.1.0 wrote.

Times are in seconds, rates in samples (or the workload's unit) per second over all devices.
"""

from __future__ import annotations

import hashlib
import json
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypedDict

PLAN_SCHEMA = 3
RECORD_SCHEMA = 3
RESULTS_SCHEMA = 3
MICROBENCH_SCHEMA = 2
OLDEST_SCHEMA = 2
"""The first schema of plans, records and results that is read, that of 0.1.0."""
SCHEMAS_READ = f"this report reads {OLDEST_SCHEMA} to {RESULTS_SCHEMA}"

STATUSES = ("ok", "incomplete", "failed", "hung", "oom", "refused", "skipped")
"""What a run can end as; only `ok` counts."""

BASELINE = "1n1g"
"""The case that speedups are measured against."""

ENOUGH_RUNS = 3
"""Valid repeats below which a number is provisional."""


class Field(NamedTuple):
    """One field of a case.

    `identity`: cases that differ in it are different cases.  `group`: rows that differ in it are not
    divided by each other.  `variable`: its name in the environment of the node script, "" without one.
    `required`: a record without it is not a record.  `from_import`: an import of logs may set it, since
    the names of logs do not tell it.
    """

    name: str
    type: type
    identity: bool = False
    group: bool = False
    variable: str = ""
    required: bool = True
    from_import: bool = False


CASE = (
    Field("workload", str, identity=True, group=True, variable="WORKLOAD"),
    Field("model", str, identity=True, group=True, variable="MODEL"),
    Field("device", str, identity=True, group=True, variable="DEVICE", required=False, from_import=True),
    Field("dtype", str, identity=True, group=True, variable="DTYPE"),
    Field("xla", bool, identity=True, group=True, variable="XLA", from_import=True),
    Field("bsz", int, identity=True, group=True, variable="BSZ"),
    Field("accumulation", int, identity=True, group=True, variable="ACCUMULATION", from_import=True),
    Field("warmup", int, identity=True, group=True, variable="WARMUP", from_import=True),
    Field("window", int, identity=True, group=True, variable="WINDOW", from_import=True),
    Field("epoch_samples", int, identity=True, group=True, required=False),
    Field("settings", dict, identity=True, group=True, required=False),
    Field("nodes", int, identity=True, variable="NNODES"),
    Field("gpus", int, identity=True, variable="GPUS_PER_NODE"),
    # These follow from the others.
    Field("devices", int, variable="WORLD_SIZE"),
    Field("global_batch", int, variable="GLOBAL_BATCH", required=False),
    Field("label", str),
    Field("name", str),
)
"""The fields of a case, in the order of headings and CSV columns."""

IDENTITY = tuple(field.name for field in CASE if field.identity)
GROUP_FIELDS = tuple(field.name for field in CASE if field.group)
IMPORT_FIELDS = tuple(field.name for field in CASE if field.from_import)
REQUIRED_FIELDS = {field.name: field.type for field in CASE if field.required}
VARIABLES = {field.name: field.variable for field in CASE if field.variable}
LOGGED_FIELDS = frozenset(field.name for field in CASE if field.type in (str, int, bool))
"""Fields that a sanity rule of a workload can compare a log with."""


def import_fix(reasons: Iterable[Message]) -> Message | None:
    """Return what to do where one of the reasons why logs do not count is a field that an import may set."""
    parts = (part for reason in reasons for part in messages_in(reason))
    fixed = any(part["values"].get("field") in IMPORT_FIELDS for part in parts)
    return message("report.import-fix", fields=list(IMPORT_FIELDS)) if fixed else None


class Case(TypedDict, total=False):
    """One point of the matrix, e.g. `4n8g b64 fp16`.

    `bsz` is per device; `global_batch` is the samples of one update: bsz x devices x accumulation.
    `warmup` steps are dropped, the next `window` steps count.  `settings` are the workload's own
    variables that make it another case.
    """

    workload: str
    model: str
    device: str | None
    dtype: str
    xla: bool
    bsz: int
    accumulation: int
    warmup: int
    window: int
    epoch_samples: int
    settings: dict[str, Any]
    nodes: int
    gpus: int
    devices: int
    global_batch: int
    label: str
    name: str


KINDS = ("compute", "collectives")
"""The programs of the micro-benchmarks."""


class FileSum(TypedDict):
    """The checksum of a file; None where it cannot be read."""

    sha256: str | None
    bytes: int | None


class PlannedRun(TypedDict):
    """One run of the plan: the name of its case and which repeat it is, from 1."""

    case: str
    repeat: int


class PendingRun(TypedDict):
    """A run that is still to be made: number `number` of `total`, its results below `folder`."""

    case: Case
    repeat: int
    number: int
    total: int
    folder: str


class UnreadFile(TypedDict):
    """A file below the logs of an import that is not the log of a case, and why."""

    path: str
    reason: Statement


class SkippedCase(TypedDict):
    """A case of the matrix that cannot run here, with the reason."""

    case: Case
    reason: Statement


class Trial(TypedDict):
    """One short run of a search for the largest batch: its case, and what became of it."""

    case: str
    label: str
    bsz: int
    status: str
    reason: Statement | None


class BatchSearch(TypedDict):
    """The search for the largest batch per device of one workload in one precision (`bsz=max`).

    `points` are the topologies at which the batch has to fit, `first` is the batch that is tried first,
    and `limit` how many runs the search may make at each point.  `trials` are the runs so far, `next` is
    the case of the one to make.  When the search has ended, `largest` is its answer and `failed` the
    smallest batch that ran out of memory, at the point `failed_at`; `reason` says why there is no answer,
    or why there may be a larger one.
    """

    workload: str
    model: str
    device: str | None
    dtype: str
    xla: bool
    accumulation: int
    settings: dict[str, Any]
    points: list[str]
    first: int
    limit: int
    trials: list[Trial]
    next: Case | None
    largest: int | None
    failed: int | None
    failed_at: str | None
    reason: Statement | None


class MachineIdentity(TypedDict, total=False):
    """What tells the machine of a node from all others (machines.difference); what cannot be read is absent.

    `machine` is a digest of /etc/machine-id, `container` one of the layer and the name of a container,
    `board` one of the UUID of the mainboard or virtual machine.  `addresses` are digests of the permanent
    hardware addresses of the network devices.  What is not unique in the world begins with `local-`.
    `gpus` are the UUIDs of the GPUs, `boot` is Linux's boot_id, which all containers of a host share until
    it is started again.
    """

    machine: str
    container: str
    board: str
    addresses: list[str]
    gpus: list[str]
    boot: str


class Plan(TypedDict, total=False):
    """plan.json: what a campaign measures, in which order, and what it cannot.

    `parameters` are those of the campaign as they were read, `variables` those of workloads that were given
    with -e; an import has `source` (the name of its directory of logs) and `unread` (files that are not logs
    of a case) instead.  While a search goes on, the cases that wait for its answer are not in the plan yet.
    `machines` are those of the nodes that the cases use, in inventory order; plans of earlier versions have
    none.
    """

    schema: int
    campaign: str
    inventory: str
    machines: dict[str, MachineIdentity]
    parameters: dict[str, Any]
    variables: dict[str, Any]
    repeats: int
    cases: list[Case]
    skipped: list[SkippedCase]
    searches: list[BatchSearch]
    runs: list[PlannedRun]
    source: str
    overrides: dict[str, Any]
    unread: list[UnreadFile]


class Node(TypedDict, total=False):
    """A node in inventory order.

    `address` is where its processes listen, `slots` its devices, `machine` what it shares them with
    (`localhost` for simulated nodes), `host` the inventory's host that acts for it, `work` its directory
    for node jobs.
    """

    name: str
    address: str
    slots: int
    machine: str
    host: str
    work: str | None


class NodeJob(TypedDict):
    """One node's part of a job: its index, its directory on the node, and its environment."""

    node: str
    host: str
    task_index: int
    run: str
    dir: str
    env: dict[str, str]


class JobEnd(TypedDict, total=False):
    """How a job ended: the exit status of its launcher (mpirun or srun), and its start and end (UTC)."""

    launcher: str
    rc: int | None
    seconds: float | None
    started: str | None
    ended: str | None


class JobReport(JobEnd, total=False):
    """What the verdict on a run needs of its job besides: what its launcher printed, and what failed it.

    `unstarted` are nodes without a login; `lost` maps nodes that no longer answer to the reason, `unwritten`
    those that did not get their node jobs.  `unreported` says that run_job ended without a report,
    `unreachable` that the control node lost the first node.  `ended_by` is why run_job ended the launcher,
    None where it ended by itself; `lingered` says that this was after the first node's part had ended well,
    and `hosts` are the nodes that mpirun was still connected to, or that are lost where `ended_by` says so.
    """

    stderr: str
    ended_by: str | None
    lingered: bool
    hosts: list[str]
    timed_out: bool
    unstarted: list[str]
    unreported: bool
    unreachable: bool
    lost: dict[str, str]
    unwritten: dict[str, str]


class ProgramEnd(JobEnd, total=False):
    """How a program of the micro-benchmarks ended on its nodes, with the reason if it failed."""

    nodes: list[str]
    reason: Message | None


class NodeLog(TypedDict, total=False):
    """What one node's log shows: a time, a reception time or a rate for each of its steps.

    `times` are the trainer's own stamps, `received` those of the node script, both from the first step
    on; `rates` are printed samples per second, `None` where a step prints none.  `shown` are the values of
    the lines by which the log was accepted, such as its number of devices, by the names of the rules.
    """

    node: str
    task_index: int
    log: str
    sha256: str | None
    bytes: int | None
    steps: list[int]
    times: list[float] | None
    received: list[float] | None
    rates: list[float | None] | None
    loss: dict[str, Any]
    shown: dict[str, list[str]]
    exit: dict[str, Any] | None


class _Network(TypedDict):
    name: str
    kind: str


class Network(_Network, total=False):
    """A network device; `kind` is Ethernet, InfiniBand or RoCE."""

    speed_gbit: float


class _Gpu(TypedDict):
    name: str


class Gpu(_Gpu, total=False):
    """A GPU as nvidia-smi describes it."""

    memory_mib: int
    power_limit_w: int
    pcie_generation: int
    pcie_width: int


class _Hardware(TypedDict):
    nodes: list[str]


class Hardware(_Hardware, total=False):
    """What some nodes are made of, as module hardware_info returns it; what cannot be read is absent."""

    system: str
    kernel: str
    processor: str
    sockets: int
    cores: int
    threads: int
    memory_gib: float
    virtual: str
    networks: list[Network]
    gpus: list[Gpu]
    gpu_links: dict[str, int]
    gpu_topology: str
    driver: str
    cuda: str


class Quantity(TypedDict, total=False):
    """What one quantity of a node or device was over the window.

    Of a counter `total` is the difference between its two ends and the other numbers are rates, of a
    gauge they are values.  `mean` is weighted by time; the others are of its `samples`, weighted too.
    `seconds` is the time between the readings at the ends.
    """

    unit: str
    mean: float
    min: float
    max: float
    p50: float
    p95: float
    total: float
    seconds: float
    samples: int


class Timeline(TypedDict):
    """The course of a node's quantities around the window, for a chart.

    Times are in seconds; the window goes from 0 to `window`, the values of `columns` from `begin` on, one
    for each `step`: the mean of that time, null where nothing was read.  The names are those of
    `quantities`; a counter has its rate.
    """

    begin: float
    step: float
    window: float
    columns: dict[str, list[float | None]]


class NodeTelemetry(TypedDict, total=False):
    """How busy a node was over exactly the window, from the readings in `file`.

    The names of `quantities` are group:instance:quantity, for example `gpu:0:sm_active`; seconds per
    second (`s/s`) are processors, or disks, that were busy.  `cores` are the same means of each processor.
    `absent` maps a source or quantity that is not there to the reason; `reason` says why nothing is, or
    how the sampler ended.  `gpu_idle` is the part of the window in which a GPU's utilisation was below 10 %.
    The first node with readings has a `timeline`.  `covered` is the part of the window between the first
    and the last reading, `placed_by` what its ends are known from: the steps of this node
    (`own-steps`), or those of the first node by the time of day (`first-node`).  `about` are facts such as
    the size of the memory, `sampler` what measuring itself took.
    """

    node: str
    file: str | None
    sha256: str | None
    reason: Statement | None
    placed_by: str
    interval: float
    seconds: float
    covered: float
    quantities: dict[str, Quantity]
    cores: list[float | None]
    gpu_idle: dict[str, float]
    timeline: Timeline
    absent: dict[str, Statement]
    about: dict[str, Any]
    sampler: dict[str, float]


class FarAdapter(TypedDict):
    """A GPU that does not use the `nearest` adapter; the distances are NCCL's kinds of paths."""

    node: str
    rank: int
    adapter: str
    distance: str
    nearest: str
    nearest_distance: str


class Interconnect(TypedDict, total=False):
    """What connected the GPUs of a run, by the lines of NCCL.

    `transports` has the number of connections of each, `links` NCCL's kinds of paths between the GPUs of a
    node, `adapters` the devices that other nodes were reached through, `far` the GPUs for which a nearer one
    is there.  `gpudirect` says whether all connections through an adapter reached the memory of the GPU
    itself, where there are any; `nvls` whether the switch of NVLink reduces.
    """

    versions: list[str]
    transports: dict[str, int]
    links: list[str]
    adapters: list[str]
    far: list[FarAdapter]
    gpudirect: bool
    channels: int
    nvls: bool


class Record(TypedDict, total=False):
    """result.json: one run as it was seen, with a status and the reason for it.  No statistics.

    `hardware` and `software` have an entry for each kind of node; the software is what provenance.json says
    of the workload.  `machines` has the machine of each of its nodes.  `scalebook` has the commit or why it
    is not known, `command` measures the campaign again.  `telemetry` is there if the run counts and was made
    with it.  `micro_steps` is there, and true, where the steps are those of which `accumulation` make one of
    the optimizer.
    `printed_mean` is the rate over the window that follows from printed means of all steps so far, where no
    rates of steps are printed.  `nccl` is there where NCCL connected several GPUs and said so.
    """

    schema: int
    case: Case
    repeat: int
    status: str
    reason: Message | None
    notes: list[Message]
    unit: str
    nodes: list[NodeLog]
    rate_scope: str
    micro_steps: bool
    printed_mean: float
    job: JobEnd | None
    last_lines: list[str]
    self_reported: dict[str, str]
    hardware: list[Hardware]
    machines: dict[str, MachineIdentity]
    software: list[dict[str, Any]]
    scalebook: dict[str, Statement]
    command: str
    telemetry: list[NodeTelemetry]
    nccl: Interconnect
    source: str


class ProvenanceFile(TypedDict, total=False):
    """provenance.json: what the nodes have for each of `workloads`; `nodes` is that of the first one.

    `preflight` is the result of the preflight.  Early campaigns have neither `workloads` nor `scalebook`.
    """

    scalebook: dict[str, Any]
    preflight: Any
    nodes: dict[str, dict[str, Any]]
    workloads: dict[str, dict[str, dict[str, Any]]]


class Measurement(TypedDict):
    """One operation or collective of the micro-benchmarks, of one size.

    `benchmark` and `variant` name it, such as `matmul` and `fp16`, or `all_reduce`; `shape` is its size.
    `status` is ok, or oom; what was not measured, or does not apply, is null.
    """

    benchmark: str
    variant: str | None
    shape: dict[str, int]
    status: str
    reason: Message | None
    seconds: float | None
    tflops: float | None
    gbytes_per_second: float | None
    algbw_gb_per_second: float | None
    busbw_gb_per_second: float | None


class MicrobenchRecord(TypedDict, total=False):
    """What one program of microbench.yml measured, with a status and the reason for it.

    `kind` is compute (the operations of one device, on one node) or collectives (between the devices of all
    `nodes`), `device` the name of the device, `settings` is how it was measured.  The other keys are as in
    Record; results that were made without microbench.yml have neither nodes nor a command.
    """

    kind: str
    status: str
    reason: Message | None
    nodes: list[str]
    device: str
    settings: dict[str, Any]
    job: JobEnd | None
    hardware: list[Hardware]
    software: list[dict[str, Any]]
    scalebook: dict[str, Statement]
    command: str
    measurements: list[Measurement]
    nccl: Interconnect


class BestRate(TypedDict):
    """The best rate of an operation over its sizes, as the table has it, and the peak of the device."""

    benchmark: str
    variant: str
    tflops: float
    peak_tflops: float | None


class Microbench(TypedDict):
    """microbench.json: the records of the micro-benchmarks and the best rate of each operation."""

    schema: int
    name: str
    best: list[BestRate]
    records: list[MicrobenchRecord]


class Run(TypedDict, total=False):
    """What the report needs of one record; `rate` is None unless the run counts.

    `time_source` says where the rate comes from (`times`, `received` or `rates`), `second` is the
    rate by another one and `differs` how far it is off.  `steps` are the seconds of each step of the
    window; `hosts` maps nodes to the host names that their node scripts reported, `boots` to a word for
    the start of their machine (Linux's boot_id), `utilisation` quantities to the mean of each node or
    device that has them.  `hardware` is that of its nodes, `command` the command that made it.  `binding` is
    there, and numa, where ranks were bound to the processors of a NUMA node.  `log` is the path of the log of
    its first node, below the directory of the campaign or that of the logs that were imported.
    """

    case: str
    label: str
    repeat: int
    unit: str
    status: str
    reason: Message | None
    notes: list[Message]
    rate: float | None
    seconds: float | None
    time_source: str | None
    second: dict[str, Any] | None
    differs: float | None
    drift: float | None
    steady: str | None
    source: str | None
    log: str
    last_lines: list[str]
    started: str | None
    self_reported: dict[str, str]
    steps: list[float]
    course: list[float]
    hosts: dict[str, str]
    boots: dict[str, str]
    hardware: list[Hardware]
    command: str
    utilisation: dict[str, list[float]]
    gpus: list[GpuState]
    timeline: CaseTimeline | None
    nccl: Interconnect
    binding: str


class GpuState(TypedDict, total=False):
    """One GPU in one run: the `shares` of the window in which something was so (a column of the readings that
    is a reason to hold down the clocks, or `idle`), the `highest` utilisation of a sample, in per cent, and
    the power as a share of its limit.
    """

    node: str
    gpu: str
    shares: dict[str, float]
    highest: float
    power_used: float


class CaseTimeline(TypedDict, total=False):
    """The course of one run of a case around its window, of the node `node`.

    `lines` are quantities of the table of utilisation, the mean over `gpus` GPUs.  Times are as in Timeline.
    """

    case: str
    label: str
    repeat: int
    node: str
    gpus: int
    begin: float
    step: float
    window: float
    lines: dict[str, list[float | None]]


class Usage(TypedDict):
    """How busy the nodes or devices of a case were: one quantity over the windows of its valid runs.

    A resource is judged by its mean: `met` says whether that is at least `criterion`; both are null for what
    is not judged.
    """

    case: str
    label: str
    quantity: str
    unit: str
    mean: float
    min: float
    max: float
    of: int
    runs: int
    criterion: float | None
    met: bool | None


class Bound(TypedDict):
    """What a case is likely bound by, and what shows it, the first of it the clearest."""

    what: Message
    evidence: list[Message]


class Bottleneck(TypedDict):
    """What a case is likely held back by: `causes`, the likeliest first, none where that is not known.

    `bound` says the likeliest, `message` all of it with advice. `evidence` are means over runs, nodes and
    devices by name, `missing` names what was not measured.
    """

    case: str
    label: str
    causes: list[str]
    bound: Bound | None
    message: Message
    evidence: dict[str, float]
    missing: list[str]


class Mfu(TypedDict):
    """The arithmetic of a case: FLOP per sample, TFLOP/s per device, and its share of the peak `peak_of`.

    What is not known is null, and `reason` says why.
    """

    case: str
    label: str
    unit: str
    flop: float | None
    tflops: float | None
    peak_tflops: float | None
    peak_of: Message | None
    mfu: float | None
    reason: Message | None


class LargestBatch(TypedDict):
    """What a search for the largest batch found: the answer, and the smallest batch that was out of memory.

    Both are null where there is none; `runs` counts the runs of the search, and `reason` says why there is no
    answer, or why there may be a larger one.
    """

    title: Message
    points: list[str]
    largest: int | None
    failed: int | None
    failed_at: str | None
    runs: int
    reason: Message | None


class Message(TypedDict):
    """Something to tell, as data: the key of its sentence in the catalogues, and the values of the sentence.

    Values are text, unrounded numbers, other messages, or lists of any of them. `text` is the code of what
    has no sentence of ours, such as a line of a log or what an earlier version wrote (pages/catalogue.py).
    """

    code: str
    values: dict[str, Any]


Statement = str | Message
"""A message, or the sentence that an earlier version wrote."""


def message(code: str, **values: Any) -> Message:
    """Return a message."""
    return {"code": code, "values": values}


def as_message(statement: Statement) -> Message:
    """Return a message; what an earlier version wrote, a sentence, is text."""
    return message("text", text=statement) if isinstance(statement, str) else statement


def because(what: Statement, why: Statement | None) -> Message:
    """Return what is so, and why where that is known."""
    return message("reason.because", what=as_message(what), why=as_message(why)) if why else as_message(what)


def together(*parts: Message) -> Message:
    """Return several messages as one."""
    return message("reason.together", parts=list(parts)) if len(parts) > 1 else parts[0]


def messages_in(whole: Message) -> Iterator[Message]:
    """Yield a message and those that it is made of."""
    yield whole
    for value in whole["values"].values():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Mapping) and "values" in each:
                yield from messages_in(typing.cast(Message, each))


class MessageError(ValueError):
    """An error with a message."""

    def __init__(self, code: str, **values: Any) -> None:
        super().__init__(code, values)
        self.message = message(code, **values)


def why_of(error: Exception) -> Statement:
    """Return what an error says: its message, or its text."""
    return error.message if isinstance(error, MessageError) else str(error)


class Flag(TypedDict):
    """Something a reader must know about a row: a word for programs and a message for people."""

    code: str
    message: Message


class GroupFields(TypedDict, total=False):
    """The fields of a case that all rows of a group share."""

    workload: str
    model: str
    device: str | None
    dtype: str
    xla: bool
    bsz: int
    accumulation: int
    warmup: int | None
    window: int | None
    epoch_samples: int | None
    settings: dict[str, Any] | None


class StepTimes(TypedDict):
    """The steps of a case, in seconds, over all its valid runs.

    `slowest` is what a step would take if the devices only waited for the slowest of them: the mean of the
    longest of as many steps of 1n1g as the case has devices.
    """

    p50: float
    p95: float
    p99: float
    min: float
    max: float
    mean: float
    slowest: float | None
    count: int


class Row(GroupFields, total=False):
    """One case in the tables of the report; the fields of GROUP_FIELDS are the case's own.

    `median`, `mean`, `min` and `max` are rates of its runs, so `min` to `max` is their range; `interval` is
    the 95 % interval of the median by order statistics.  `speedup_range` has the least and the largest
    quotient of one of its runs and one of 1n1g, `speedup_interval` is the 95 % interval of Welch on the
    logarithms of the rates.  There is no range of one run, and no interval of fewer than six.
    Of its runs, `course` are the steps of the window in their order, in seconds: of many the least and the
    greatest of each stretch.
    `latency_ms` is the time of a step at the median rate, of workloads that declare `latency`.
    `tokens_per_second` is the median rate in tokens, of workloads that count sequences of a known length.
    `hardware` are the places of its nodes in the hardware of the report, empty where no record says it, and
    `machines` is on how many machines its nodes were, None where that is not known.
    """

    case: str
    group: str
    label: str
    nodes: int
    gpus: int
    devices: int
    unit: str
    status: str
    good: int
    planned: int
    hardware: list[int]
    machines: int | None
    runs: list[Run]
    outliers: list[int]
    interval: list[float] | None
    steps: StepTimes | None
    speedup: float | None
    speedup_range: list[float] | None
    speedup_interval: list[float] | None
    efficiency: float | None
    dlperf: dict[str, Any] | None
    latency_ms: float | None
    tokens_per_second: float | None
    flags: list[Flag]
    median: float | None
    mean: float | None
    min: float | None
    max: float | None
    cv: float | None
    spread: float | None


class Group(GroupFields, total=False):
    """Rows that may be divided by each other: one table of the report, by name of their cases.

    Its names are messages: `title` is all that identifies it, `short` what tells it apart, and `differing`
    those of its steps and settings in which the groups of its workload differ.
    """

    id: str
    unit: str
    rows: list[str]
    title: Message
    short: Message
    differing: Message
    family: str
    workload_title: str
    compiler: str


class Family(TypedDict):
    """The groups of one model family.

    Where it has several workloads, each line of `lines` is a topology with a precision, a size of the samples
    and a batch size.  Its `cells` are the results of the `columns`, None where a workload has no such case.
    """

    family: str
    groups: list[str]
    workloads: list[str]
    columns: list[dict[str, Any]]
    lines: list[dict[str, Any]]


class Command(TypedDict):
    """A command and the names of the cases that it measures; without any it searches the largest batch."""

    command: str
    cases: list[str]


class Conclusion(TypedDict):
    """A sentence that a report concludes from its rows, and the case of the row that it is about."""

    message: Message
    case: str | None


class Trust(TypedDict):
    """How far the rows can be trusted: `sound`, `care` or `stop`, and the reasons, the worst first."""

    level: str
    reasons: list[Message]


class Results(TypedDict, total=False):
    """results.json: the whole report as data, every number unrounded.

    `simulated` is the number of nodes and of machines of the largest run whose nodes shared machines.
    `hardware` has one entry for each kind of node, none where the records are from before it was read.
    `commands` measure the rows again, `plan` is what the last command planned.  `best` are the fastest cases
    of the workloads and models, the one at the most devices first.
    """

    schema: int
    kind: str
    campaign: str
    counts: dict[str, int]
    started: str | None
    simulated: dict[str, int] | None
    hardware: list[Hardware]
    families: list[Family]
    groups: list[Group]
    rows: list[Row]
    uncounted: list[dict[str, Any]]
    strong: list[dict[str, Any]]
    largest_batches: list[LargestBatch]
    self_reported: list[dict[str, Any]]
    mfu: list[Mfu]
    utilisation: list[Usage]
    bottlenecks: list[Bottleneck]
    best: list[str]
    conclusions: list[Conclusion]
    trust: Trust
    timelines: list[CaseTimeline]
    baseline: dict[str, Any] | None
    skipped: list[dict[str, Any]]
    notes: list[Message]
    compare: list[dict[str, Any]]
    only_published: list[dict[str, Any]]
    published: list[dict[str, Any]]
    result_files: dict[str, list[int]]
    plan: Plan
    commands: list[Command]
    provenance: dict[str, Any] | None
    files: list[str]


class Finding(TypedDict, total=False):
    """A result of a preflight check: what was found on which nodes, what is expected, and the fix."""

    check: str
    level: str
    nodes: list[str]
    message: Message
    expected: Message
    fix: Message


def case_name(values: Mapping[str, Any]) -> str:
    """Return the content-hashed name of the case with these values, which is also its directory.

    A changed case gets a new directory, so a resumed campaign never takes a stale result for it.
    """
    content = json.dumps({key: values.get(key) for key in IDENTITY}, sort_keys=True)
    digest = hashlib.sha256(content.encode()).hexdigest()[:8]
    xla = "-xla" if values.get("xla") else ""
    accumulation = f"-a{values['accumulation']}" if values.get("accumulation", 1) != 1 else ""
    return (
        f"{values['workload']}-{values['model']}-{values['nodes']}n{values['gpus']}g-b{values['bsz']}"
        f"-{values['dtype']}{xla}{accumulation}-{digest}"
    )


def make_case(values: Mapping[str, Any]) -> Case:
    """Return one case from its own values, with the fields that follow from them."""
    devices = values["nodes"] * values["gpus"]
    label = f"{values['nodes']}n{values['gpus']}g"
    case = typing.cast(Case, {"accumulation": 1, **values, "devices": devices, "label": label})
    return typing.cast(Case, {**case, "global_batch": global_batch(case), "name": case_name(case)})


def global_batch(case: Case | Row) -> int:
    """Return how many samples all devices take in one update of the weights."""
    return int(case["devices"] * case["bsz"] * case.get("accumulation", 1))


def vary_case(case: Case, **changes: Any) -> Case:
    """Return `case` with other values of some fields that identify it."""
    values: Mapping[str, Any] = case
    return make_case({**{name: values[name] for name in IDENTITY if name in values}, **changes})


# What earlier versions wrote

SENTENCES = ("reason", "why", "warning", "peak_of", "other_hardware", "notes")
"""Keys that had sentences before they had messages."""
NAMES = ("title", "short", "differing")
"""Keys that had the words of a name in one text."""
OF_OTHERS = ("plan", "provenance", "self_reported", "nodes", "job", "software")
"""Parts that are what others said, or numbers."""


def upgrade(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plan, record or results.json of schema 2, which 0.1.0 wrote, with its sentences as texts."""
    if document.get("schema") != OLDEST_SCHEMA:
        return dict(document)
    upgraded: dict[str, Any] = _with_messages({**document, "schema": OLDEST_SCHEMA + 1})
    return upgraded


def _with_messages(value: Any, key: str = "") -> Any:
    if isinstance(value, str) and key in SENTENCES:
        return as_message(value)
    if isinstance(value, str) and key in NAMES:
        return message("name.of", words=[value] if value else [])
    if isinstance(value, list):
        return [_with_messages(each, key) for each in value]
    if not isinstance(value, Mapping):
        return value
    if set(value) == {"code", "text"}:
        return {"code": value["code"], "message": message("text", text=value["text"])}
    if {"causes", "sentence"} <= set(value):
        return {**value, "message": as_message(value["sentence"])}
    return {name: each if name in OF_OTHERS else _with_messages(each, name) for name, each in value.items()}
