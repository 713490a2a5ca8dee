# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What a case is likely held back by, by the rules of rules.py over what was measured within the window.

Every rule that applies is a cause, and the first one makes the sentence.  What was not measured makes no
cause, and is named.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import (
    BASELINE,
    IDENTITY,
    Bottleneck,
    Bound,
    Case,
    Message,
    Row,
    Run,
    message,
)
from ansible.module_utils.scalebook.judge import effects, rules, utilisation, weak_scaling
from ansible.module_utils.scalebook.judge.effects import Effect
from ansible.module_utils.scalebook.judge.rules import Evidence, Rule
from ansible.module_utils.scalebook.quantities import QUANTITIES
from ansible.module_utils.scalebook.workload import UNKNOWN, Workload, Workloads

UNITS = {
    **{name: quantity.unit for name, quantity in QUANTITIES.items()},
    # What follows from the table of speedups, from 1n1g or from how a workload uses devices.
    "efficiency": "part",
    "sm_active_of_one": "%",
    "beyond_slowest": "%",
    "process_processors": "",
    "job_processors_of_one": "",
    "job_queued_of_one": "",
    "nodes_per_machine": "",
}
KINDS = {"%": "bottleneck.percent", "part": "bottleneck.part", "": "bottleneck.number"}
"""The message of an evidence, by its unit."""
SAME = tuple(
    field for field in IDENTITY if field not in ("bsz", "accumulation", "warmup", "window", "epoch_samples")
)
"""Fields in which cases agree that need equal memory for a batch."""


def tabulate(
    rows: Sequence[Row],
    runs: Sequence[Run],
    cases: Mapping[str, Case],
    workloads: Workloads,
) -> list[Bottleneck]:
    """Return the judgement of each case whose runs have telemetry.

    `cases` are those of all runs, so that the batch that ran out of memory is known.
    """
    by_case = utilisation.valid_by_case(runs)
    measured = {row["case"]: _measured(row, by_case.get(row["case"], [])) for row in rows}
    out_of_memory = [cases[run["case"]] for run in runs if run["status"] == "oom" and run["case"] in cases]
    evidence_of_one = {row["group"]: measured[row["case"]] for row in rows if row["label"] == BASELINE}
    measured_effects = effects.effects(rows)
    judgements = []
    for row in rows:
        evidence = measured[row["case"]]
        if not evidence:
            continue
        if row["devices"] > 1 and row["efficiency"] is not None:
            evidence["efficiency"] = row["efficiency"]
        if row["machines"] and row["machines"] < row["nodes"]:
            evidence["nodes_per_machine"] = row["nodes"] / row["machines"]
        of_one = evidence_of_one.get(row["group"], {}) if row["devices"] > 1 else {}
        evidence.update({f"{name}_of_one": of_one[name] for name in rules.OF_ONE if name in of_one})
        workload = workloads.get(row["workload"], UNKNOWN)
        if workload.drives_all_devices and row["gpus"] > 1 and "job_processors" in evidence:
            evidence["process_processors"] = row["gpus"] * evidence["job_processors"]
        beyond = weak_scaling.beyond_slowest(row["steps"]) if row["steps"] else None
        if row["device"] != "cpu" and beyond is not None:
            evidence["beyond_slowest"] = 100 * beyond
        too_large = _out_of_memory(row, out_of_memory)
        if too_large:
            evidence["out_of_memory_from"] = float(too_large)
        judgements.append(_judge(row, evidence, workload, measured_effects))
    return judgements


def _measured(row: Row, runs: Iterable[Run]) -> dict[str, float]:
    """Return the means over the valid runs of a case, of each over the nodes or devices that have it."""
    values: dict[str, list[float]] = {}
    for run in runs:
        for name, each in (run.get("utilisation") or {}).items():
            if name in rules.EVIDENCE and each:
                share = row["nodes"] / row["devices"] if name in rules.PER_DEVICE else 1
                values.setdefault(name, []).append(statistics.fmean(each) * share)
    return {name: statistics.fmean(each) for name, each in values.items()}


def _out_of_memory(row: Row, cases: Iterable[Case]) -> int | None:
    """Return the smallest batch, at most twice that of `row`, that ran out of memory; `cases` did."""
    of_row: Mapping[str, Any] = row
    of_cases: Iterable[Mapping[str, Any]] = cases
    batches = [case["bsz"] for case in of_cases if all(case.get(key) == of_row.get(key) for key in SAME)]
    return min((bsz for bsz in batches if row["bsz"] < bsz <= 2 * row["bsz"]), default=None)


def _judge(row: Row, evidence: Evidence, workload: Workload, measured: Sequence[Effect] = ()) -> Bottleneck:
    on_gpus = row["device"] != "cpu"
    needed = [*(rules.NEEDED_ON_GPUS if on_gpus else rules.NEEDED_ON_CPUS)]
    if row["devices"] > 1:
        needed += ["efficiency", *(["network_link"] if row["nodes"] > 1 else [])]
    missing = [name for name in needed if name not in evidence]
    values = rules.complete(evidence, row["devices"])
    possible = rules.GPU_RULES if on_gpus else rules.CPU_RULES
    applying = [rule for rule in possible if rules.holds(rule.when, values)]
    no_cause = message("bottleneck.none", evidence=_values(evidence, (*needed, rules.WITHOUT_A_RULE)))
    bound = _bound(applying[0], evidence) if applying else None
    sentences = _sentences(bound, applying, row, evidence, workload, measured) if bound else [no_cause]
    if "communication-bound" not in (rule.cause for rule in applying):
        sentences += _exchange(row, evidence, workload, measured)
    names = [message(f"quantity.{name}") for name in missing]
    sentences += [message("bottleneck.not_measured", names=names)] if names else []
    return {
        "case": row["case"],
        "label": row["label"],
        "causes": list(dict.fromkeys(rule.cause for rule in applying)),
        "bound": bound,
        "message": message("bottleneck.judged", sentences=sentences),
        "evidence": dict(evidence),
        "missing": missing,
    }


def _bound(rule: Rule, evidence: Evidence) -> Bound:
    return {"what": message(f"bottleneck.{rule.says}"), "evidence": _values(evidence, rule.shows)}


def _sentences(
    bound: Bound,
    applying: Sequence[Rule],
    row: Row,
    evidence: Evidence,
    workload: Workload,
    measured: Sequence[Effect],
) -> list[Message]:
    """Return the sentences on the rules that apply: the first, the other causes, and what to try."""
    first, *others = applying
    more = [
        message(
            "bottleneck.other",
            cause=message(f"cause.{rule.cause}"),
            evidence=_values(evidence, rule.shows[:1]),
        )
        for rule in others
        if rule.cause != first.cause
    ]
    also = [message("bottleneck.also", causes=more)] if more else []
    return [
        message("bottleneck.likely", **bound),
        *also,
        *_try(advised(first, row, evidence, workload, measured)),
    ]


def _values(evidence: Evidence, names: Iterable[str]) -> list[Message]:
    return [
        message(KINDS[UNITS[name]], of=message(f"quantity.{name}"), value=evidence[name])
        for name in names
        if name in evidence
    ]


def _try(advice: Sequence[Message]) -> list[Message]:
    return [message("bottleneck.try", advice=advice)] if advice else []


def advised(
    rule: Rule, row: Row, evidence: Evidence, workload: Workload, measured: Sequence[Effect] = ()
) -> list[Message]:
    """Return what to try against a cause, of what this case does not have yet.

    `measured` are the effects of settings in this campaign: what it measured already is said instead.
    """
    advice_list = []
    for name in rule.advice:
        advice = ADVICE[name](row, evidence, workload) if name in ADVICE else message(f"bottleneck.{name}")
        advice_list += _unless_measured(row, name, [advice] if advice else [], measured)
    return advice_list


def _unless_measured(row: Row, name: str, advice: list[Message], measured: Sequence[Effect]) -> list[Message]:
    """Return the advice, or what the campaign measured of its setting already: nothing if nothing won."""
    setting = SETTINGS.get(name, "")
    own = [each for each in effects.of_setting(measured, row, setting) if _raises(each, row)]
    gains = [each for each in own if each.clear and each.slower is row]
    if gains:
        return [
            message(
                "bottleneck.measured", setting=effects.named(gains[0].faster, setting), gain=gains[0].gain
            )
        ]
    return [] if own else advice


def _raises(effect: Effect, row: Row) -> bool:
    """Return whether the other row has what advice would set: more of a number, or another choice."""
    other = effect.slower if effect.faster is row else effect.faster
    mine, theirs = effect.value(row), effect.value(other)
    numbers = isinstance(mine, (int, float)) and not isinstance(mine, bool)
    return bool(theirs > mine) if numbers and isinstance(theirs, (int, float)) else True


def _fused(row: Row, evidence: Evidence, workload: Workload) -> Message | None:
    """Advise a compiler, where the workload has one and the case does not use it."""
    compiles = not workload.name or True in workload.xla
    return message("bottleneck.fused") if compiles and not row["xla"] else None


def _bits(row: Row, evidence: Evidence, workload: Workload) -> Message | None:
    """Advise the first format of 16 bits that the workload has on this device."""
    formats = workload.dtypes.get(row["device"] or "gpu", ("bf16", "fp16"))
    short = [dtype for dtype in ("bf16", "fp16") if dtype in formats] if row["dtype"] == "fp32" else []
    return message("bottleneck.bits", dtype=short[0]) if short else None


def _larger_batch(row: Row, evidence: Evidence, workload: Workload) -> Message | None:
    """Advise twice the batch, where it fits into the memory of the GPUs as far as is known."""
    if row["device"] == "cpu" or "out_of_memory_from" in evidence:
        return None
    if workload.reserves_gpu_memory:
        return message("bottleneck.larger_batch_unknown", bsz=2 * row["bsz"])
    if not rules.holds(rules.MEMORY_FREE, evidence):
        return None
    memory = _values(evidence, ["gpu_memory"])
    return message("bottleneck.larger_batch", bsz=2 * row["bsz"], evidence=memory)


def _accumulation(row: Row, evidence: Evidence, workload: Workload) -> Message:
    return message("bottleneck.accumulation", steps=2 * row["accumulation"])


def _storage_or_loaders(row: Row, evidence: Evidence, workload: Workload) -> Message:
    busy = rules.holds(rules.STORAGE_WORKS, evidence)
    return message("bottleneck.faster_storage" if busy else "bottleneck.more_loaders")


def _steps_per_loop(row: Row, evidence: Evidence, workload: Workload) -> Message | None:
    """Advise several steps in one call with the variable of the workload, where it has one and it is 1."""
    variable = _variable_at(row, workload, "steps_per_loop", 1)
    return message("bottleneck.steps_per_loop", variable=variable) if variable else None


def _checkpointing(row: Row, evidence: Evidence, workload: Workload) -> Message | None:
    """Advise gradient checkpointing with the variable of the workload, where it has one and it is off."""
    if not workload.name:
        return message("bottleneck.checkpointing")
    variable = _variable_at(row, workload, "checkpointing", False)
    return message("bottleneck.checkpointing_by", variable=variable) if variable else None


ADVICE: Mapping[str, Callable[[Row, Evidence, Workload], Message | None]] = {
    "fused": _fused,
    "bits": _bits,
    "larger_batch": _larger_batch,
    "half_batch": lambda row, *_: message("bottleneck.half_batch", steps=2 * row["accumulation"]),
    "accumulation": _accumulation,
    "storage_or_loaders": _storage_or_loaders,
    "steps_per_loop": _steps_per_loop,
    "checkpointing": _checkpointing,
}
"""Advice of rules that depends on the case; other advice is a message without values."""
SETTINGS = {
    "fused": "xla",
    "bits": "dtype",
    "larger_batch": "bsz",
    "accumulation": "accumulation",
    "steps_per_loop": "steps_per_loop",
    "checkpointing": "checkpointing",
    "larger_pieces": "bucket_mb",
}
"""The setting that an advice would change."""


def _exchange(row: Row, evidence: Evidence, workload: Workload, measured: Sequence[Effect]) -> list[Message]:
    """Return what the exchange costs GPUs that run kernels all the time, too little for a cause."""
    if not rules.holds(rules.EXCHANGE, evidence):
        return []
    idle = "bucket_mb" in workload.idle_settings(row["xla"])
    variable = None if idle else _variable_at(row, workload, "bucket_mb", 25)
    larger = [message("bottleneck.larger_pieces", variable=variable)] if variable else []
    advice = {"larger_pieces": larger, "accumulation": [_accumulation(row, evidence, workload)]}
    tried = [each for name, own in advice.items() for each in _unless_measured(row, name, own, measured)]
    return [message("bottleneck.exchange", evidence=_values(evidence, ["beyond_slowest"])), *_try(tried)]


def _variable_at(row: Row, workload: Workload, setting: str, value: Any) -> str | None:
    """Return the variable of a setting where the workload has it and the case has it at `value`."""
    variable = f"{row['workload']}_{setting}"
    settings = workload.settings_of(row.get("settings"))
    has = variable in workload.settings and settings.get(setting, value) == value
    return variable if has else None
