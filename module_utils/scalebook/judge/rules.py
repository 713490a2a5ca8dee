# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The rules of the bottleneck, as data: a cause, the conditions that make it one, and what to try then.

GPU_RULES and CPU_RULES have the most specific first.  What was not measured is neither at a threshold nor
below it.  docs/utilisation.md prints these tables, so a condition that has a name is printed by it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ansible.module_utils.scalebook.judge.thresholds import THRESHOLDS

Evidence = Mapping[str, float]


class Limit(NamedTuple):
    """An evidence that has to be at a threshold or above it, or below it."""

    evidence: str
    threshold: str
    above: bool


class Fact(NamedTuple):
    """What no single threshold says."""

    name: str
    holds: Callable[[Evidence], bool]


class Condition(NamedTuple):
    """Conditions of which all, any or none have to hold, with a name where several rules share them."""

    how: Callable[[list[bool]], bool]
    of: tuple[Part, ...]
    name: str = ""


Part = Limit | Fact | Condition


class Rule(NamedTuple):
    """A cause: the word of its message, when it applies, the evidence that it shows, and what to try."""

    cause: str
    says: str
    when: Condition
    shows: tuple[str, ...]
    advice: tuple[str, ...]


def none(results: list[bool]) -> bool:
    """Return whether no condition holds."""
    return not any(results)


def above(evidence: str, threshold: str) -> Limit:
    """Return the condition that an evidence is at a threshold or above it."""
    return Limit(evidence, threshold, above=True)


def below(evidence: str, threshold: str) -> Limit:
    """Return the condition that an evidence is below a threshold."""
    return Limit(evidence, threshold, above=False)


def every(*parts: Part, name: str = "") -> Condition:
    """Return the condition that all of some hold."""
    return Condition(all, parts, name)


def either(*parts: Part, name: str = "") -> Condition:
    """Return the condition that one of some holds."""
    return Condition(any, parts, name)


def neither(*parts: Part) -> Condition:
    """Return the condition that none of some holds."""
    return Condition(none, parts)


def holds(part: Part, evidence: Evidence) -> bool:
    """Return whether a condition holds."""
    if isinstance(part, Limit):
        value = evidence.get(part.evidence)
        return value is not None and (value >= THRESHOLDS[part.threshold].value) == part.above
    if isinstance(part, Fact):
        return part.holds(evidence)
    return part.how([holds(each, evidence) for each in part.of])


def complete(evidence: Evidence, devices: int) -> dict[str, float]:
    """Return the evidence with the number of devices and with what follows from several of its values."""
    values = {**evidence, "devices": float(devices)}

    def add(name: str, value: float | None) -> None:
        values.update({} if value is None else {name: value})

    add("usable_cpu", evidence.get("job_cpu", evidence.get("cpu")))
    values["own_cpu"] = values.get("usable_cpu", 100.0) * evidence.get("job_share", 100.0) / 100
    add("thread", evidence.get("process_processors", evidence.get("job_processors")))
    add("wanted", _processors_wanted(evidence))
    wanted_of_one = _processors_wanted(evidence, "_of_one")
    if wanted_of_one is not None and "wanted" in values:
        values["wanted_less"] = wanted_of_one - values["wanted"]
    if "sm_active" in evidence and "sm_active_of_one" in evidence:
        values["sm_less"] = evidence["sm_active_of_one"] - evidence["sm_active"]
    return values


def _processors_wanted(evidence: Evidence, suffix: str = "") -> float | None:
    """Return the processors per device that the job kept busy or, as far as known, waited for."""
    busy = evidence.get(f"job_processors{suffix}")
    return None if busy is None else busy + evidence.get(f"job_queued{suffix}", 0.0)


def _queued(evidence: Evidence) -> bool:
    """Return whether the job waits for processors, if that is known; else it is taken to."""
    queued, busy = evidence.get("job_queued"), evidence.get("job_processors", 0.0)
    # What is left of a processor per device is spent asleep.
    return queued is None or queued >= max(THRESHOLDS["queued"].value, 1 - busy - queued)


NEEDED_ON_GPUS = (
    "gpu",
    "sm_active",
    "dram_active",
    "gpu_memory",
    "power_capped",
    "job_processors",
    "cpu",
    "disk_busy",
)
NEEDED_ON_CPUS = ("cpu", "job_share", "job_processors", "memory", "disk_busy")
"""What is named where it was not measured."""
WITHOUT_A_RULE = "busiest_core"
"""What is shown besides where no rule applies."""
PER_DEVICE = ("job_processors", "job_queued")
"""What is measured of a node, and shared out over its devices."""
OF_ONE = ("sm_active", "job_processors", "job_queued")
"""What is compared with the run of 1n1g."""

QUEUED = Fact("the job waits for `queued` processors per device and not longer for anything else", _queued)
ONE_DEVICE = Fact("the case has one device", lambda it: it["devices"] == 1)
OUT_OF_MEMORY = Fact(
    "a run with up to twice the batch ran out of memory", lambda it: "out_of_memory_from" in it
)

# Processes wait for a disk that is not read, as in the network.
STORAGE_WORKS = either(
    above("disk_busy", "host-busy"), above("storage_waits", "storage"), name="storage is busy"
)
# More than the one thread that starts kernels.
HOST_WORKS = either(
    every(above("usable_cpu", "host-busy"), neither(below("job_share", "own-share"))),
    STORAGE_WORKS,
    above("job_processors", "workers"),
    name="the host is busy",
)
OTHERS_WORK = every(
    above("usable_cpu", "host-busy"),
    below("job_share", "own-share"),
    QUEUED,
    name="other programs are busy",
)
# Kernels follow each other, but are too small to fill the GPU.
LAUNCHES = every(
    above("gpu", "gpu-often"),
    below("sm_active", "sm-low"),
    above("thread", "one-thread"),
    neither(HOST_WORKS),
    name="small kernels follow each other",
)
# With several devices it may be one that polls for the others.
THREAD_BUSY = every(ONE_DEVICE, above("busiest_thread", "thread-busy"), name="one thread never waits")
OTHER_THREADS_WAIT = every(
    THREAD_BUSY,
    below("next_thread", "threads-wait"),
    below("job_queued", "queued"),
    below("own_cpu", "cpu-bound"),
    name="all threads but one wait",
)
LINK_FULL = every(
    below("efficiency", "efficiency"), above("network_link", "link"), name="the network is full"
)
IDLE = every(
    below("wanted", "one-thread"), neither(STORAGE_WORKS, OTHERS_WORK), name="the processes are idle"
)
# Without other devices a step waits for nothing but its input.
IDLE_ALONE = every(
    IDLE,
    either(ONE_DEVICE, below("wanted_less", "idle-loss")),
    name="the processes are idle without other devices too",
)
IDLE_BY_OTHERS = every(
    below("efficiency", "efficiency"),
    above("wanted_less", "idle-loss"),
    neither(OTHERS_WORK, LINK_FULL),
    name="the processes wait more than without other devices",
)

OVER_THE_LINK = Rule(
    "communication-bound", "link_full",
    LINK_FULL,
    shows=("efficiency", "network_link"),
    advice=("accumulation", "larger_batch", "bits"),
)  # fmt: skip
GPU_RULES = (
    Rule(
        "power-limited", "power_limited",
        every(above("power_capped", "power"), above("power_used", "power-near")),
        shows=("power_capped", "power_used", "sm_active"),
        advice=("bits", "power_limit"),
    ),
    OVER_THE_LINK,
    Rule(
        "memory-capacity-bound", "gpu_memory_full",
        every(OUT_OF_MEMORY, below("sm_active", "gpu-bound")),
        shows=("sm_active", "gpu_memory"),
        advice=("bits", "checkpointing", "half_batch"),
    ),
    Rule(
        "memory-bound", "memory_bound",
        every(above("dram_active", "memory-bound")),
        shows=("dram_active", "sm_active"),
        advice=("fused", "bits"),
    ),
    Rule(
        "gpu-bound", "gpu_bound",
        every(above("sm_active", "gpu-bound")),
        shows=("sm_active", "dram_active"),
        advice=("bits", "fused", "more_devices"),
    ),
    Rule(
        # Kernels run all the time, on fewer multiprocessors than without other devices.
        "communication-bound", "sm_lost",
        every(
            below("efficiency", "efficiency"), above("sm_less", "sm-loss"),
            neither(below("gpu", "gpu-waits"), LINK_FULL),
        ),
        shows=("efficiency", "gpu", "sm_active", "sm_active_of_one"),
        advice=("accumulation", "larger_batch", "bits"),
    ),
    Rule(
        "input-bound", "gpus_wait_for_input",
        every(below("gpu", "gpu-waits"), HOST_WORKS),
        shows=("gpu", "job_processors", "cpu", "disk_busy", "storage_waits"),
        advice=("storage_or_loaders", "prepared_input"),
    ),
    Rule(
        "shared-processors", "gpus_short_of_processors",
        every(below("gpu", "gpu-waits"), OTHERS_WORK),
        shows=("gpu", "cpu", "job_cpu", "job_share", "job_queued"),
        advice=("own_machines",),
    ),
    Rule(
        "launch-bound", "launch_bound",
        LAUNCHES,
        shows=("gpu", "sm_active", "job_processors", "process_processors"),
        advice=("larger_batch", "fused", "steps_per_loop"),
    ),
    Rule(
        "host-bound", "host_bound",
        every(
            below("gpu", "gpu-waits"), either(above("thread", "one-thread"), THREAD_BUSY),
            neither(HOST_WORKS, LAUNCHES),
        ),
        shows=("gpu", "job_processors", "process_processors", "busiest_thread", "next_thread"),
        advice=("steps_per_loop", "profile", "larger_batch", "fused"),
    ),
    Rule(
        "waiting", "gpus_wait",
        every(
            below("gpu", "gpu-waits"), below("thread", "one-thread"),
            neither(THREAD_BUSY, HOST_WORKS, OTHERS_WORK),
        ),
        shows=("gpu", "job_processors", "process_processors", "cpu", "disk_busy"),
        advice=("look", "larger_batch"),
    ),
)  # fmt: skip
CPU_RULES = (
    Rule(
        # Simulated nodes, or containers of one host, compete for its processors before anything else.
        "shared-processors", "one_machine",
        every(above("nodes_per_machine", "several"), below("efficiency", "efficiency")),
        shows=("efficiency", "nodes_per_machine"),
        advice=("own_machines",),
    ),
    Rule(
        "thread-bound", "thread_bound",
        OTHER_THREADS_WAIT,
        shows=("busiest_thread", "next_thread", "job_processors", "job_queued"),
        advice=("profile", "threads"),
    ),
    Rule(
        "shared-processors", "short_of_processors",
        every(above("usable_cpu", "cpu-bound"), below("job_share", "own-share"), QUEUED),
        shows=("cpu", "job_cpu", "job_share", "job_queued"),
        advice=("own_machines",),
    ),
    Rule(
        "processor-bound", "processor_bound",
        every(above("usable_cpu", "cpu-bound"), neither(below("job_share", "own-share"), OTHER_THREADS_WAIT)),
        shows=("cpu", "job_cpu", "job_share"),
        advice=("fused", "more_processors"),
    ),
    OVER_THE_LINK,
    Rule(
        "memory-capacity-bound", "memory_full",
        every(above("memory", "memory-full")),
        shows=("memory",),
        advice=("bits", "checkpointing", "half_batch"),
    ),
    Rule(
        "input-bound", "storage_bound",
        STORAGE_WORKS,
        shows=("disk_busy", "storage_waits", "cpu"),
        advice=("storage_or_loaders", "prepared_input"),
    ),
    Rule(
        "communication-bound", "processes_wait_for_others",
        IDLE_BY_OTHERS,
        shows=("efficiency", "job_processors", "job_queued", "job_processors_of_one", "job_queued_of_one"),
        advice=("accumulation", "larger_batch", "bits"),
    ),
    Rule(
        "input-bound", "processes_wait_for_input",
        IDLE_ALONE,
        shows=("job_processors", "job_queued", "disk_busy"),
        advice=("storage_or_loaders", "prepared_input"),
    ),
    Rule(
        "waiting", "processes_wait",
        every(IDLE, neither(IDLE_ALONE, IDLE_BY_OTHERS, LINK_FULL)),
        shows=("job_processors", "cpu", "disk_busy"),
        advice=("look", "larger_batch"),
    ),
)  # fmt: skip
EVIDENCE = {
    *NEEDED_ON_GPUS,
    *NEEDED_ON_CPUS,
    *(name for rule in (*GPU_RULES, *CPU_RULES) for name in rule.shows),
    WITHOUT_A_RULE,
}
"""What judgements keep of what was measured."""
MEMORY_FREE = every(below("gpu_memory", "memory-free"))
"""When twice the batch fits."""
EXCHANGE = every(
    # GPUs run kernels all the time; too little for a cause.
    above("gpu", "gpu-waits"),
    above("beyond_slowest", "exchange"),
)
"""When part of each step is exchange: said beside other causes."""
