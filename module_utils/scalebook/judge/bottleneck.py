# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What a case is likely held back by: rules with thresholds over what was measured within the window.

Every rule that applies is a cause; RULES has them with the most specific first, and the first one makes the
sentence.  What was not measured makes no cause, and is named.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ansible.module_utils.scalebook.contracts import BASELINE, IDENTITY, Bottleneck, Case, Row, Run
from ansible.module_utils.scalebook.judge import utilisation, weak_scaling
from ansible.module_utils.scalebook.judge.thresholds import THRESHOLDS
from ansible.module_utils.scalebook.workloads import idle_settings, settings_of

Evidence = Mapping[str, float]


NAMES = {
    # name of the evidence: (what it is called, unit)
    "gpu": ("GPU utilisation", "%"),
    "sm_active": ("SM active", "%"),
    "dram_active": ("DRAM active", "%"),
    "gpu_memory": ("GPU memory", "%"),
    "power_capped": ("time at the power limit", "%"),
    "power_used": ("GPU power relative to its limit", "%"),
    "job_processors": ("processors that the job kept busy per device", ""),
    "process_processors": ("per process", ""),
    "cpu": ("CPU", "%"),
    "job_cpu": ("processors that the job may use", "%"),
    "job_queued": ("processors that the job waited for per device", ""),
    "busiest_thread": ("busiest thread of the job", "%"),
    "next_thread": ("next busiest thread", "%"),
    "storage_waits": ("processors that waited for storage", ""),
    "disk_busy": ("busiest disk", "%"),
    "network_link": ("busiest network link", "%"),
    "efficiency": ("efficiency", "%"),
    "sm_active_of_one": ("SM active of 1n1g", "%"),
    "beyond_slowest": ("step beyond that of the slowest device", "%"),
    "job_processors_of_one": ("processors of 1n1g that the job kept busy", ""),
    "job_queued_of_one": ("processors of 1n1g that the job waited for", ""),
    "memory": ("memory", "%"),
    "job_share": ("the job's part of the busy processors", "%"),
    "busiest_core": ("busiest processor", "%"),
}
ON_GPUS = (
    "gpu",
    "sm_active",
    "dram_active",
    "gpu_memory",
    "power_capped",
    "job_processors",
    "cpu",
    "disk_busy",
)
SAME = tuple(
    field for field in IDENTITY if field not in ("bsz", "accumulation", "warmup", "window", "epoch_samples")
)
"""Fields in which cases agree that need equal memory for a batch."""
ON_CPUS = ("cpu", "job_share", "job_processors", "memory", "disk_busy")
PER_DEVICE = ("job_processors", "job_queued")
"""What is measured of a node, and shared out over its devices."""
OF_ONE = ("sm_active", "job_processors", "job_queued")
"""What is compared with the run of 1n1g."""


def _above(evidence: Evidence, name: str, threshold: str) -> bool:
    return name in evidence and evidence[name] >= THRESHOLDS[threshold].value


def _below(evidence: Evidence, name: str, threshold: str) -> bool:
    return name in evidence and evidence[name] < THRESHOLDS[threshold].value


def _host_works(evidence: Evidence) -> bool:
    """Return whether the host does more than one thread can that starts kernels."""
    return (
        (_cpu_above(evidence, "host-busy") and not _below(evidence, "job_share", "own-share"))
        or _storage_works(evidence)
        or _above(evidence, "job_processors", "workers")
    )


def _cpu_above(evidence: Evidence, threshold: str) -> bool:
    """Return whether the processors are busy, those that the job may use where that is not all of them."""
    return _above(evidence, "job_cpu" if "job_cpu" in evidence else "cpu", threshold)


def _storage_works(evidence: Evidence) -> bool:
    """Return whether a disk is busy, or processes wait for one that is not read, as in the network."""
    return _above(evidence, "disk_busy", "host-busy") or _above(evidence, "storage_waits", "storage")


def _others_work(evidence: Evidence, threshold: str = "host-busy") -> bool:
    """Return whether other programs keep the processors busy while the job waits, if that is known."""
    taken = _cpu_above(evidence, threshold) and _below(evidence, "job_share", "own-share")
    queued, busy = evidence.get("job_queued"), evidence.get("job_processors", 0.0)
    # What is left of a processor per device is spent asleep.
    return taken and (queued is None or queued >= max(THRESHOLDS["queued"].value, 1 - busy - queued))


def _of_process(evidence: Evidence) -> str:
    """Return the name of the evidence that is about 1 where one thread of each process never waits."""
    return "process_processors" if "process_processors" in evidence else "job_processors"


def _one_thread(evidence: Evidence) -> bool:
    return _above(evidence, _of_process(evidence), "one-thread") and not _host_works(evidence)


def _launches(evidence: Evidence) -> bool:
    """Return whether kernels follow each other, but are too small to fill the GPU."""
    return (
        _above(evidence, "gpu", "gpu-often")
        and _below(evidence, "sm_active", "sm-low")
        and _one_thread(evidence)
    )


def _thread_busy(evidence: Evidence) -> bool:
    """Return whether a thread never waits; with several devices it may be one that polls for the others."""
    return evidence["devices"] == 1 and _above(evidence, "busiest_thread", "thread-busy")


def _thread_delays_gpu(evidence: Evidence) -> bool:
    """Return whether the GPU waits for a thread at a time; kernels too small to fill it are another cause."""
    thread = _one_thread(evidence) or (_thread_busy(evidence) and not _host_works(evidence))
    return _below(evidence, "gpu", "gpu-waits") and thread and not _launches(evidence)


def _thread_delays_others(evidence: Evidence) -> bool:
    """Return whether all threads of a run on CPUs but one wait, and not for processors."""
    wait = _thread_busy(evidence) and _below(evidence, "next_thread", "threads-wait")
    taken = evidence.get("job_cpu", evidence.get("cpu", 100.0)) * evidence.get("job_share", 100.0) / 100
    return wait and _below(evidence, "job_queued", "queued") and taken < THRESHOLDS["cpu-bound"].value


def _scales_badly(evidence: Evidence) -> bool:
    return _below(evidence, "efficiency", "efficiency")


def _link_full(evidence: Evidence) -> bool:
    return _scales_badly(evidence) and _above(evidence, "network_link", "link")


def _sm_lost(evidence: Evidence) -> bool:
    """Return whether kernels run all the time, on fewer multiprocessors than without other devices."""
    lost = evidence.get("sm_active_of_one", 0.0) - evidence.get("sm_active", 100.0)
    waits = lost >= THRESHOLDS["sm-loss"].value and not _below(evidence, "gpu", "gpu-waits")
    return _scales_badly(evidence) and waits and not _link_full(evidence)


def _idle(evidence: Evidence) -> bool:
    """Return whether the processes of a run on CPUs wait, for something other than a processor or a disk."""
    wants = _wanted(evidence)
    sleeps = wants is not None and wants < THRESHOLDS["one-thread"].value
    return sleeps and not _storage_works(evidence) and not _others_work(evidence)


def _wanted(evidence: Evidence, of: str = "") -> float | None:
    """Return the processors per device that the job kept busy or, as far as known, waited for."""
    busy = evidence.get(f"job_processors{of}")
    return None if busy is None else busy + evidence.get(f"job_queued{of}", 0.0)


def _lost(evidence: Evidence) -> float | None:
    """Return by how much less the job wants processors than without other devices, None if unknown."""
    alone, wants = _wanted(evidence, "_of_one"), _wanted(evidence)
    return None if alone is None or wants is None else alone - wants


def _idle_alone(evidence: Evidence) -> bool:
    """Return whether they wait without other devices too, where a step waits for nothing but its input."""
    lost = 0.0 if evidence["devices"] == 1 else _lost(evidence)
    return _idle(evidence) and lost is not None and lost < THRESHOLDS["idle-loss"].value


def _idle_by_others(evidence: Evidence) -> bool:
    """Return whether they wait more than without other devices."""
    waits = (_lost(evidence) or 0.0) >= THRESHOLDS["idle-loss"].value and not _others_work(evidence)
    return _scales_badly(evidence) and waits and not _link_full(evidence)


class Rule(NamedTuple):
    """A cause: when it applies, what it is called, and by which evidence."""

    cause: str
    applies: Callable[[Evidence], bool]
    says: str
    shows: tuple[str, ...]


GPU_RULES = (
    Rule(
        "power-limited",
        lambda it: _above(it, "power_capped", "power") and _above(it, "power_used", "power-near"),
        "Power-limited: the power limit held the clocks of the GPUs down",
        ("power_capped", "power_used", "sm_active"),
    ),
    Rule(
        "communication-bound",
        _link_full,
        "Communication-bound: efficiency is lost while a network link is near its capacity",
        ("efficiency", "network_link"),
    ),
    Rule(
        "memory-capacity-bound",
        lambda it: "out_of_memory_from" in it and _below(it, "sm_active", "gpu-bound"),
        "Memory-capacity-bound: the GPUs are not full, and a larger batch ran out of memory",
        ("sm_active", "gpu_memory"),
    ),
    Rule(
        "memory-bound",
        lambda it: _above(it, "dram_active", "memory-bound"),
        "Memory-bound: the GPUs move data most of the time",
        ("dram_active", "sm_active"),
    ),
    Rule(
        "gpu-bound",
        lambda it: _above(it, "sm_active", "gpu-bound"),
        "GPU-bound: the GPUs compute nearly all the time",
        ("sm_active", "dram_active"),
    ),
    Rule(
        "communication-bound",
        _sm_lost,
        "Communication-bound, likely: kernels run all the time, but use less of the GPU than on one device",
        ("efficiency", "gpu", "sm_active", "sm_active_of_one"),
    ),
    Rule(
        "input-bound",
        lambda it: _below(it, "gpu", "gpu-waits") and _host_works(it),
        "Input-bound, likely: the GPUs wait part of the time while the host works",
        ("gpu", "job_processors", "cpu", "disk_busy", "storage_waits"),
    ),
    Rule(
        "shared-processors",
        lambda it: _below(it, "gpu", "gpu-waits") and _others_work(it),
        "Short of processors: the GPUs wait part of the time while other programs keep the processors busy",
        ("gpu", "cpu", "job_cpu", "job_share", "job_queued"),
    ),
    Rule(
        "launch-bound",
        _launches,
        "Launch-bound, likely: small kernels follow each other, and the thread that starts them never waits",
        ("gpu", "sm_active", "job_processors", "process_processors"),
    ),
    Rule(
        "host-bound",
        _thread_delays_gpu,
        "Host-bound: the GPUs wait for the host, where one thread at a time prepares input or starts kernels",
        ("gpu", "job_processors", "process_processors", "busiest_thread", "next_thread"),
    ),
    Rule(
        "waiting",
        lambda it: (
            _below(it, "gpu", "gpu-waits")
            and _below(it, _of_process(it), "one-thread")
            and not _thread_busy(it)
            and not _host_works(it)
            and not _others_work(it)
        ),
        "Waiting: the GPUs are idle part of the time while processors and disks are not busy; what they "
        "wait for was not measured",
        ("gpu", "job_processors", "process_processors", "cpu", "disk_busy"),
    ),
)
CPU_RULES = (
    Rule(
        "thread-bound",
        _thread_delays_others,
        "Thread-bound: one thread of the job never waits, while its others do, and not for processors; it "
        "prepares input, or computes what the others wait for",
        ("busiest_thread", "next_thread", "job_processors", "job_queued"),
    ),
    Rule(
        "shared-processors",
        lambda it: _others_work(it, "cpu-bound"),
        "Short of processors: they are busy, mostly with other programs or other simulated nodes",
        ("cpu", "job_cpu", "job_share", "job_queued"),
    ),
    Rule(
        "processor-bound",
        lambda it: (
            _cpu_above(it, "cpu-bound")
            and not _below(it, "job_share", "own-share")
            and not _thread_delays_others(it)
        ),
        "Processor-bound: the processors are busy nearly all the time",
        ("cpu", "job_cpu", "job_share"),
    ),
    Rule(
        "communication-bound",
        _link_full,
        "Communication-bound: efficiency is lost while a network link is near its capacity",
        ("efficiency", "network_link"),
    ),
    Rule(
        "memory-capacity-bound",
        lambda it: _above(it, "memory", "memory-full"),
        "Memory-capacity-bound: the memory of the nodes is full",
        ("memory",),
    ),
    Rule(
        "input-bound",
        _storage_works,
        "Input-bound, likely: a disk is busy, or processors wait for one, most of the time",
        ("disk_busy", "storage_waits", "cpu"),
    ),
    Rule(
        "communication-bound",
        _idle_by_others,
        "Communication-bound, likely: efficiency is lost, and the processes wait more than on one device",
        ("efficiency", "job_processors", "job_queued", "job_processors_of_one", "job_queued_of_one"),
    ),
    Rule(
        "input-bound",
        _idle_alone,
        "Input-bound, likely: the processes wait, and neither for processors nor for other devices",
        ("job_processors", "job_queued", "disk_busy"),
    ),
    Rule(
        "waiting",
        lambda it: _idle(it) and not _idle_alone(it) and not _idle_by_others(it) and not _link_full(it),
        "Waiting: the processes of the job are idle part of the time while disks are not busy; what they "
        "wait for was not measured",
        ("job_processors", "cpu", "disk_busy"),
    ),
)


def tabulate(
    rows: Sequence[Row],
    runs: Sequence[Run],
    cases: Mapping[str, Case],
    workloads: Mapping[str, Mapping[str, Any]],
) -> list[Bottleneck]:
    """Return the judgement of each case whose runs have telemetry.

    `cases` are those of all runs, so that the batch that ran out of memory is known.
    """
    by_case = utilisation.valid_by_case(runs)
    measured = {row["case"]: _measured(row, by_case.get(row["case"], [])) for row in rows}
    out_of_memory = [cases[run["case"]] for run in runs if run["status"] == "oom" and run["case"] in cases]
    alone = {row["group"]: measured[row["case"]] for row in rows if row["label"] == BASELINE}
    made = []
    for row in rows:
        evidence = measured[row["case"]]
        if not evidence:
            continue
        if row["devices"] > 1 and row["efficiency"] is not None:
            evidence["efficiency"] = row["efficiency"]
        of_one = alone.get(row["group"], {}) if row["devices"] > 1 else {}
        evidence.update({f"{name}_of_one": of_one[name] for name in OF_ONE if name in of_one})
        workload = workloads.get(row["workload"], {})
        if workload.get("drives_all_devices") and row["gpus"] > 1 and "job_processors" in evidence:
            evidence["process_processors"] = row["gpus"] * evidence["job_processors"]
        beyond = weak_scaling.beyond_slowest(row["steps"]) if row["steps"] else None
        if row["device"] != "cpu" and beyond is not None:
            evidence["beyond_slowest"] = 100 * beyond
        too_large = _out_of_memory(row, out_of_memory)
        if too_large:
            evidence["out_of_memory_from"] = float(too_large)
        made.append(_judge(row, evidence, workload))
    return made


def _measured(row: Row, runs: Iterable[Run]) -> dict[str, float]:
    """Return the means over the valid runs of a case, of each over the nodes or devices that have it."""
    values: dict[str, list[float]] = {}
    for run in runs:
        for name, each in (run.get("utilisation") or {}).items():
            if name in NAMES and each:
                share = row["nodes"] / row["devices"] if name in PER_DEVICE else 1
                values.setdefault(name, []).append(statistics.fmean(each) * share)
    return {name: statistics.fmean(each) for name, each in values.items()}


def _out_of_memory(row: Row, cases: Iterable[Case]) -> int | None:
    """Return the smallest batch, at most twice that of `row`, that ran out of memory; `cases` did."""
    of_row: Mapping[str, Any] = row
    of_cases: Iterable[Mapping[str, Any]] = cases
    found = [case["bsz"] for case in of_cases if all(case.get(key) == of_row.get(key) for key in SAME)]
    return min((bsz for bsz in found if row["bsz"] < bsz <= 2 * row["bsz"]), default=None)


def _judge(row: Row, evidence: Evidence, workload: Mapping[str, Any]) -> Bottleneck:
    on_gpus = row["device"] != "cpu"
    rules = GPU_RULES if on_gpus else CPU_RULES
    needed = [*(ON_GPUS if on_gpus else ON_CPUS)]
    if row["devices"] > 1:
        needed += ["efficiency", *(["network_link"] if row["nodes"] > 1 else [])]
    missing = [NAMES[name][0] for name in needed if name not in evidence]
    known = {**evidence, "devices": float(row["devices"])}
    found = [rule for rule in rules if rule.applies(known)]
    if found:
        words = [f"{found[0].says} ({_list(evidence, found[0].shows)})."]
        more = [
            f"{rule.cause} ({_list(evidence, rule.shows[:1])})"
            for rule in found[1:]
            if rule.cause != found[0].cause
        ]
        words += [f"Also {' and '.join(more)}."] if more else []
        advice = _advice(found[0].cause, row, evidence, workload)
        words += [f"Try {'; '.join(advice)}."] if advice else []
    else:
        shown = [name for name in (*needed, "busiest_core") if name in evidence]
        words = [f"No bottleneck is evident ({_list(evidence, shown)})."]
    if "communication-bound" not in (rule.cause for rule in found):
        words += _exchange(row, evidence, workload)
    words += [f"Not measured: {', '.join(missing)}."] if missing else []
    return {
        "case": row["case"],
        "label": row["label"],
        "causes": list(dict.fromkeys(rule.cause for rule in found)),
        "sentence": " ".join(words),
        "evidence": dict(evidence),
        "missing": missing,
    }


def _list(evidence: Evidence, names: Iterable[str]) -> str:
    return ", ".join(f"{NAMES[name][0]} {_value(evidence, name)}" for name in names if name in evidence)


def _value(evidence: Evidence, name: str) -> str:
    if name == "efficiency":
        return f"{100 * evidence[name]:.3g} %"
    return f"{evidence[name]:.3g} {NAMES[name][1]}".rstrip()


def _advice(cause: str, row: Row, evidence: Evidence, workload: Mapping[str, Any]) -> list[str]:
    """Return what to try against a cause, of what this case does not have yet."""
    compiles = not row["xla"] and True in workload.get("xla", [True])
    fused = ["fused operations (xla=true)"] if compiles else []
    known = workload.get("dtypes", {}).get(row["device"] or "gpu", ["bf16", "fp16"])
    short = [dtype for dtype in ("bf16", "fp16") if dtype in known] if row["dtype"] == "fp32" else []
    bits = [f"16 bits (dtype={short[0]})"] if short else []
    larger = _larger_batch(row, evidence, workload)
    loops = _steps_per_loop(row, workload)
    smaller = [*_checkpointing(row, workload), f"half the batch with accumulation={2 * row['accumulation']}"]
    return {
        "power-limited": [
            *bits,
            "a higher power limit where the site allows one, judged by samples per joule",
        ],
        "communication-bound": [_accumulation(row), *larger, *bits],
        "memory-capacity-bound": [*bits, *smaller],
        "memory-bound": [*fused, *bits],
        "gpu-bound": [*bits, *fused, "more devices"],
        "input-bound": [
            "faster storage" if _storage_works(evidence) else "more loader processes",
            "input data prepared beforehand or kept in memory",
        ],
        "launch-bound": [*larger, *fused, *loops],
        "host-bound": [*loops, "a profile of that thread", *larger, *fused],
        "thread-bound": [
            "a profile of that thread",
            "more threads per process where it computes, more loader processes where it prepares input",
        ],
        "waiting": ["a look at the input data, storage in the network, locks and other nodes", *larger],
        "shared-processors": ["machines that run nothing else"],
        "processor-bound": [*fused, "more processors or nodes"],
    }[cause]


def _larger_batch(row: Row, evidence: Evidence, workload: Mapping[str, Any]) -> list[str]:
    """Return twice the batch, where it fits into the memory of the GPUs as far as is known."""
    if row["device"] == "cpu" or "out_of_memory_from" in evidence:
        return []
    if workload.get("reserves_gpu_memory"):
        return [f"a larger batch (bsz={2 * row['bsz']}; bsz=max finds the largest that fits)"]
    if _below(evidence, "gpu_memory", "memory-free"):
        return [f"a larger batch (bsz={2 * row['bsz']}; {_list(evidence, ['gpu_memory'])})"]
    return []


def _exchange(row: Row, evidence: Evidence, workload: Mapping[str, Any]) -> list[str]:
    """Return what the exchange costs GPUs that run kernels all the time, too little for a cause."""
    busy = "gpu" in evidence and not _below(evidence, "gpu", "gpu-waits")
    if not busy or not _above(evidence, "beyond_slowest", "exchange"):
        return []
    idle = "bucket_mb" in idle_settings(workload, row["xla"])
    variable = None if idle else _variable_at(row, workload, "bucket_mb", 25)
    pieces = [f"larger pieces of gradients ({variable}=200)"] if variable else []
    return [
        f"Part of each step is exchange between devices, likely ({_list(evidence, ['beyond_slowest'])}).",
        f"Try {'; '.join([*pieces, _accumulation(row)])}.",
    ]


def _accumulation(row: Row) -> str:
    return f"gradient accumulation (accumulation={2 * row['accumulation']}), which exchanges less often"


def _steps_per_loop(row: Row, workload: Mapping[str, Any]) -> list[str]:
    """Return several steps in one call with the variable of the workload, where it has one and it is 1."""
    variable = _variable_at(row, workload, "steps_per_loop", 1)
    return [f"several steps in one call of the framework ({variable}=10)"] if variable else []


def _checkpointing(row: Row, workload: Mapping[str, Any]) -> list[str]:
    """Return gradient checkpointing with the variable of the workload, where it has one and it is off."""
    if "settings" not in workload:
        return ["gradient checkpointing"]
    variable = _variable_at(row, workload, "checkpointing", False)
    return [f"gradient checkpointing ({variable}=true)"] if variable else []


def _variable_at(row: Row, workload: Mapping[str, Any], setting: str, value: Any) -> str | None:
    """Return the variable of a setting where the workload has it and the case has it at `value`."""
    variable = f"{row['workload']}_{setting}"
    settings = settings_of(workload, row.get("settings"))
    has = variable in workload.get("settings", ()) and settings.get(setting, value) == value
    return variable if has else None
