# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Parameters -> cases -> plan: what a campaign measures, in which order, and what cannot run."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import (
    BASELINE,
    PLAN_SCHEMA,
    Case,
    Node,
    Plan,
    SkippedCase,
    make_case,
)
from ansible.module_utils.scalebook.plan.parameters import (
    ParameterError,
    allowed_counts,
    parts,
    safe_name,
    text,
)
from ansible.module_utils.scalebook.workloads import refusal

MOST_RUNS = 100_000  # at a minute each that is two months

Workloads = Mapping[str, Mapping[str, Any]]


def powers_of_two(largest: int) -> list[int]:
    """Return 1, 2, 4 … up to `largest`, which is always the last: `6` gives 1, 2, 4, 6."""
    steps = list(itertools.takewhile(lambda n: n < largest, (2**i for i in itertools.count())))
    return [*steps, largest]


def plan(
    parameters: Mapping[str, Any],
    workloads: Workloads,
    nodes: Sequence[Node],
    device: str,
    inventory: str = "",
    given: Collection[str] = (),
) -> Plan:
    """Return the plan of a campaign or raise ParameterError.

    `parameters` are those that parameters.read returns, `workloads` the declarations of the chosen
    workloads with their settings resolved, `nodes` the nodes in inventory order; nodes of the same
    `machine` share its devices.  Cases that cannot run are listed under `skipped` with the reason, the
    variables of workloads that are `given` on the command line under `variables`.
    """
    if not nodes:
        raise ParameterError("nodes: the inventory has no host in the group `nodes`")
    for node in nodes:
        safe_name("host name", node["name"])
    if len({node["name"] for node in nodes}) != len(nodes):
        raise ParameterError("nodes: a host is listed twice")
    slots = min(int(node["slots"]) for node in nodes)
    _check_counts(parameters, len(nodes), slots)
    points = _topologies(parameters, len(nodes), slots)
    batches = len(parameters["bsz"] or [0]) * len(parameters["dtype"]) * len(parameters["xla"])
    runs = parameters["repeats"] * len(workloads) * batches * len(points)
    if runs > MOST_RUNS:
        raise ParameterError(f"these values make {runs} runs; allowed are {MOST_RUNS}")

    cases: list[Case] = []
    skipped: list[SkippedCase] = []
    for name, workload in workloads.items():
        for case in _cases(parameters, name, workload, device, points):
            reason = _why_not(case, workload, nodes, parameters)
            if reason:
                skipped.append({"case": case, "reason": reason})
            else:
                cases.append(case)
    every = cases or [entry["case"] for entry in skipped]
    campaign = parameters.get("campaign") or _campaign_name(every, parameters)
    return {
        "schema": PLAN_SCHEMA,
        "campaign": safe_name("campaign", campaign),
        "inventory": inventory,
        "parameters": {**parameters, "workload": list(workloads), "device": device},
        "variables": {
            f"{name}_{setting}": value
            for name, workload in workloads.items()
            for setting, value in workload.get("settings", {}).items()
            if f"{name}_{setting}" in given
        },
        "repeats": parameters["repeats"],
        "cases": cases,
        "skipped": skipped,
        # Repeats are interleaved over the cases of all workloads, so that drift does not fall on one of them.
        "runs": [
            {"case": case["name"], "repeat": repeat}
            for repeat in range(1, parameters["repeats"] + 1)
            for case in cases
        ],
    }


def describe(
    plan: Plan, done: Iterable[tuple[str, int]] = (), seconds: Mapping[str, float] | None = None
) -> str:
    """Return the plan as plain text.

    `done` are the (case, repeat) pairs already measured, `seconds` how long runs of a case took before.
    """
    finished = set(done)
    pending = [run for run in plan["runs"] if (run["case"], run["repeat"]) not in finished]
    measured = len(plan["runs"]) - len(pending)
    cases, repeats = plan["cases"], plan["repeats"]
    several = len({case["workload"] for case in [*cases, *(entry["case"] for entry in plan["skipped"])]}) > 1
    lines = [
        f"Campaign {plan['campaign']}: {_many(len(cases), 'case')} x {_many(repeats, 'repeat')} = "
        f"{_many(len(plan['runs']), 'run')}" + (f", {measured} already measured" if measured else "")
    ]
    for case in cases:
        have = sum((case["name"], repeat) in finished for repeat in range(1, repeats + 1))
        lines.append(
            f"  run   {_row(case, case['label'], several)}  global batch {case['global_batch']}"
            + (f"  ({have} of {repeats} measured)" if have else "")
        )
    reasons: dict[tuple[str, str], list[Case]] = {}
    for entry in plan["skipped"]:
        reasons.setdefault((_row(entry["case"], "", several), entry["reason"]), []).append(entry["case"])
    for (_, reason), same in reasons.items():
        labels = ",".join(case["label"] for case in same)
        lines.append(f"  skip  {_row(same[0], labels, several)}  {reason}")
    if cases and not any(case["label"] == BASELINE for case in cases):
        lines.append(f"  note: {BASELINE} is not in the plan, so speedups will be n/a")
    if pending and seconds is not None:
        lines.append(f"  {_estimate([run['case'] for run in pending], seconds)}")
    return "\n".join(lines)


def why_nothing_runs(plan: Plan) -> str:
    """Return why a plan has no runs."""
    reasons = dict.fromkeys(f"{entry['case']['workload']}: {entry['reason']}" for entry in plan["skipped"])
    return f"There is nothing to run. {'. '.join(reasons)}."


def _estimate(pending: Sequence[str], seconds: Mapping[str, float]) -> str:
    known = [seconds[name] for name in pending if name in seconds]
    if not known:
        return "estimate: none, no run of these cases has been measured before"
    minutes = sum(known) / 60
    length = f"{minutes:.0f} min" if minutes >= 1 else "less than a minute"
    rest = len(pending) - len(known)
    unknown = f"; {_many(rest, 'more run')} without an earlier one" if rest else ""
    return f"estimate: about {length} for {_many(len(known), 'run')}, as earlier runs took{unknown}"


def _row(case: Case, label: str, several: bool) -> str:
    name = f"{case['workload']:<12} " if several else ""
    return f"{name}{label:>7}  b{case['bsz']:<4} {case['dtype']}{' xla' if case['xla'] else ''}"


def _check_counts(parameters: Mapping[str, Any], count: int, slots: int) -> None:
    """Raise ParameterError where no value fits: that is a mistake, not a matrix of skipped cases."""
    points = [parts(point) for point in parameters.get("topology") or ()]
    axes = (
        ("nodes", parameters["nodes"], count, "the nodes of this inventory"),
        ("gpus", parameters["gpus"], slots, "the devices of each node"),
        ("topology", [nodes for nodes, _ in points], count, "nodes of this inventory"),
        ("topology", [gpus for _, gpus in points], slots, "devices of each node"),
    )
    problems = [
        f"{name}={text(parameters[name])}: {allowed_counts(largest)}, {meaning}"
        for name, values, largest, meaning in axes
        if values and min(values) > largest
    ]
    if problems:
        raise ParameterError("; ".join(problems))


def _topologies(parameters: Mapping[str, Any], count: int, slots: int) -> list[tuple[int, int]]:
    """Return the (nodes, devices per node) of a campaign."""
    if parameters.get("topology"):
        return [parts(point) for point in parameters["topology"]]
    return [
        (nodes, gpus)
        for nodes in parameters["nodes"] or powers_of_two(count)
        # DLPerf's own table: one node is scaled over its GPUs, several nodes use all of theirs.
        for gpus in parameters["gpus"] or (powers_of_two(slots) if nodes == 1 else [slots])
    ]


def _cases(
    parameters: Mapping[str, Any],
    name: str,
    workload: Mapping[str, Any],
    device: str,
    points: Sequence[tuple[int, int]],
) -> Iterator[Case]:
    """Yield the cases of one workload; what is not given is the workload's own."""
    batches = parameters["bsz"] or [workload.get("bsz", {}).get(device, 32)]
    for dtype, xla, bsz in itertools.product(parameters["dtype"], parameters["xla"], batches):
        for nodes, gpus in points:
            values = {
                "bsz": bsz,
                "nodes": nodes,
                "gpus": gpus,
                "accumulation": parameters["accumulation"] or workload.get("accumulation", 1),
            }
            yield make_case(
                {
                    "workload": name,
                    "model": parameters["model"] or workload["models"][device],
                    "dtype": dtype,
                    "xla": xla,
                    **values,
                    "device": device,
                    **_steps(parameters, workload, values),
                    "settings": dict(workload.get("settings", {})),
                }
            )


def _steps(
    parameters: Mapping[str, Any], workload: Mapping[str, Any], values: Mapping[str, int]
) -> dict[str, int]:
    """Return the `warmup` and `window` of a case.

    They are the ones given, else the workload's own; where it declares `epoch_samples` they are the steps of
    its `epochs`: the last one is the window, and the case says so.
    """
    if "epoch_samples" not in workload:
        return {step: int(parameters[step] or workload[step]) for step in ("warmup", "window")}
    samples = int(workload["epoch_samples"])
    window = samples // (values["bsz"] * values["nodes"] * values["gpus"] * values["accumulation"])
    return {
        "warmup": (int(workload["epochs"]) - 1) * window,
        "window": window,
        "epoch_samples": samples,
    }


def _why_not(
    case: Case, workload: Mapping[str, Any], nodes: Sequence[Node], parameters: Mapping[str, Any]
) -> str | None:
    """Return why `case` cannot run here, or None."""
    return (
        _workload_lacks(case, workload, parameters)
        or _nodes_lack(case, nodes)
        or _dtype_lacks(case, workload, parameters["force"])
    )


def _workload_lacks(case: Case, workload: Mapping[str, Any], parameters: Mapping[str, Any]) -> str | None:
    """Return what of the case its workload does not have on any device."""
    name, dtypes = case["workload"], dict.fromkeys(itertools.chain(*workload["dtypes"].values()))
    if case["model"] not in workload["model_names"]:
        return f"{name} has no model {case['model']}: it has {', '.join(workload['model_names'])}"
    if case["dtype"] not in dtypes:
        return f"{name} has no {case['dtype']}: it has {', '.join(dtypes)}"
    if case["xla"] not in workload["xla"]:
        return f"{name} {'has no compiler' if case['xla'] else 'always compiles'}"
    steps = [step for step in ("warmup", "window") if parameters[step]]
    if steps and "epoch_samples" in workload:
        return f"the window of {name} is an epoch, so {' and '.join(steps)} cannot be set"
    step = case["global_batch"] * case["accumulation"]
    if "epoch_samples" in case and case["window"] * step != case["epoch_samples"]:
        return f"an epoch of {case['epoch_samples']} samples is not a whole number of steps of {step}"
    return refusal(workload, case)


def _nodes_lack(case: Case, nodes: Sequence[Node]) -> str | None:
    """Return what of the case the nodes do not have."""
    if case["nodes"] > len(nodes):
        return f"needs {case['nodes']} nodes, the inventory has {len(nodes)}"
    members = nodes[: case["nodes"]]
    for node in members:
        if case["gpus"] > int(node["slots"]):
            return f"needs {case['gpus']} devices per node, {node['name']} has {node['slots']}"
    if case["device"] == "gpu":
        for machine in dict.fromkeys(node["machine"] for node in members):
            sharing = [node for node in members if node["machine"] == machine]
            needed, available = case["gpus"] * len(sharing), int(sharing[0]["slots"])
            if needed > available:
                count = _many(len(sharing), "node")
                return f"needs {needed} GPUs of one machine for {count}, it has {available}"
    return None


def _dtype_lacks(case: Case, workload: Mapping[str, Any], force: bool) -> str | None:
    """Return why the case's number format is not worth running on its device."""
    if case["dtype"] in workload["dtypes"][case["device"]] or force:
        return None
    hint = workload.get("dtype_hints", {}).get(case["device"], {}).get(case["dtype"])
    return str(
        hint or f"{case['dtype']} does not run on a {case['device']}; -e force=true tries it all the same"
    )


def _campaign_name(cases: Sequence[Case], parameters: Mapping[str, Any]) -> str:
    """Return a name that follows from the matrix: the same command finds its campaign again."""
    content = json.dumps(sorted(case["name"] for case in cases))
    digest = hashlib.sha256(content.encode()).hexdigest()[:8]
    words = [
        "_".join(dict.fromkeys(case["workload"] for case in cases)),
        "_".join(dict.fromkeys(case["model"] for case in cases)),
        "b" + "_".join(str(bsz) for bsz in dict.fromkeys(case["bsz"] for case in cases)),
        "_".join(parameters["dtype"]),
    ]
    return "-".join(words)[:80] + "-" + digest


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
