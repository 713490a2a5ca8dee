# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Parameters -> cases -> plan: what a campaign measures, in which order, and what cannot run."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ansible.module_utils.scalebook.contracts import (
    PLAN_SCHEMA,
    BatchSearch,
    Case,
    MachineIdentity,
    Message,
    Node,
    Plan,
    SkippedCase,
    as_message,
    make_case,
    message,
    vary_case,
)
from ansible.module_utils.scalebook.plan import largest_batch
from ansible.module_utils.scalebook.plan.parameters import (
    MAX,
    ParameterError,
    allowed_counts,
    parts,
    safe_name,
    text,
)
from ansible.module_utils.scalebook.workload import Workload, Workloads

MOST_RUNS = 100_000  # at a minute each that is two months

Machines = Mapping[str, MachineIdentity]


def powers_of_two(largest: int) -> list[int]:
    """Return 1, 2, 4 … up to `largest`, which is always the last: `6` gives 1, 2, 4, 6."""
    steps = list(itertools.takewhile(lambda n: n < largest, (2**i for i in itertools.count())))
    return [*steps, largest]


class _Line(NamedTuple):
    """One model in one precision with one batch, a number or MAX, at all topologies.

    The batch of its cases is the workload's own where `bsz` is MAX.
    """

    bsz: int | str
    cases: list[Case]
    skipped: list[SkippedCase]


def plan(
    parameters: Mapping[str, Any],
    workloads: Workloads,
    nodes: Sequence[Node],
    device: str,
    inventory: str = "",
    extra_names: Collection[str] = (),
    outcome: Callable[[str, str], largest_batch.Outcome | None] = lambda _campaign, _case: None,
    machines: Machines | None = None,
    name_of: Callable[[str, Machines], str] = lambda name, _machines: name,
) -> Plan:
    """Return the plan of a campaign or raise ParameterError.

    `parameters` are those that parameters.read returns, `workloads` the declarations of the chosen
    workloads with their settings resolved, `nodes` the nodes in inventory order; nodes of the same
    `machine` share its devices.  `outcome` returns what became of a search run, by the names of the campaign
    and of its case.  Cases that cannot run are listed under `skipped` with the reason, the variables of
    workloads that are `extra_names` on the command line under `variables`.
    """
    _check_nodes(nodes)
    slots = min(int(node["slots"]) for node in nodes)
    _check_counts(parameters, len(nodes), slots)
    points = _topologies(parameters, len(nodes), slots)
    axes = (parameters["model"] or [""], parameters["dtype"], parameters["xla"], parameters["bsz"] or [0])
    runs = parameters["repeats"] * len(workloads) * math.prod(map(len, axes)) * len(points)
    if runs > MOST_RUNS:
        raise ParameterError(f"these values make {runs} runs; allowed are {MOST_RUNS}")

    lines = [
        line
        for name, workload in workloads.items()
        for line in _lines(parameters, name, workload, device, nodes, points)
    ]
    nodes_used = nodes[: max((case["nodes"] for line in lines for case in line.cases), default=0)]
    machines_used: Machines = {node["name"]: (machines or {}).get(node["name"], {}) for node in nodes_used}
    campaign = safe_name(
        "campaign", parameters.get("campaign") or name_of(_campaign_name(lines, parameters), machines_used)
    )
    cases, skipped, searches = _with_largest_batches(
        lines, parameters["bsz_max_runs"], lambda case: outcome(campaign, case)
    )
    return {
        "schema": PLAN_SCHEMA,
        "campaign": campaign,
        "inventory": inventory,
        "machines": dict(machines_used),
        "parameters": {**parameters, "workload": list(workloads), "device": device},
        "variables": {
            f"{name}_{variable}": value
            for name, workload in workloads.items()
            for variable, value in workload.variables_to_repeat.items()
            if f"{name}_{variable}" in extra_names
        },
        "repeats": parameters["repeats"],
        "cases": list(cases.values()),
        "skipped": skipped,
        "searches": searches,
        # Repeats are interleaved over the cases of all workloads, so that drift does not fall on one of them.
        "runs": [
            {"case": name, "repeat": repeat}
            for repeat in range(1, parameters["repeats"] + 1)
            for name in cases
        ],
    }


def _check_nodes(nodes: Sequence[Node]) -> None:
    """Raise ParameterError unless there are nodes, each with a name of its own."""
    if not nodes:
        raise ParameterError("nodes: the inventory has no host in the group `nodes`")
    for node in nodes:
        safe_name("host name", node["name"])
    if len({node["name"] for node in nodes}) != len(nodes):
        raise ParameterError("nodes: a host is listed twice")


def _with_largest_batches(
    lines: Sequence[_Line], most_runs: int, outcome: Callable[[str], largest_batch.Outcome | None]
) -> tuple[dict[str, Case], list[SkippedCase], list[BatchSearch]]:
    """Return the cases to measure by their names, those to skip, and the searches for the largest batches."""
    cases: dict[str, Case] = {}
    skipped = [entry for line in lines for entry in line.skipped]
    searches: list[BatchSearch] = []
    for line in lines:
        cases_of_line = line.cases
        if line.bsz == MAX and line.cases:
            search = largest_batch.search(line.cases, most_runs, outcome)
            searches.append(search)
            largest = search["largest"]
            cases_of_line = [vary_case(case, bsz=largest) for case in line.cases] if largest else []
            if not largest and not search["next"]:
                skipped += [{"case": case, "reason": _no_largest(search)} for case in line.cases]
        # The largest batch may be one that is measured anyway.
        cases.update({case["name"]: case for case in cases_of_line})
    return cases, skipped, searches


def _no_largest(search: BatchSearch) -> Message:
    return message("skipped.no-largest", why=search["reason"])


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


def _lines(
    parameters: Mapping[str, Any],
    name: str,
    workload: Workload,
    device: str,
    nodes: Sequence[Node],
    points: Sequence[tuple[int, int]],
) -> Iterator[_Line]:
    """Yield the lines of one workload; what is not given is the workload's own."""
    own = workload.bsz.get(device, 32)
    models = parameters["model"] or [workload.models[device]]
    axes = (models, parameters["dtype"], parameters["xla"], parameters["bsz"] or [own])
    for model, dtype, xla, bsz in itertools.product(*axes):
        line = _Line(bsz, [], [])
        for of_nodes, gpus in points:
            values = {
                "bsz": own if bsz == MAX else bsz,
                "nodes": of_nodes,
                "gpus": gpus,
                "accumulation": parameters["accumulation"] or workload.accumulation or 1,
            }
            case = make_case(
                {
                    "workload": name,
                    "model": model,
                    "dtype": dtype,
                    "xla": xla,
                    **values,
                    "device": device,
                    **_steps(parameters, workload, values),
                    "settings": {**workload.setting_values, **workload.idle_settings(xla)},
                }
            )
            reason = _why_not(case, workload, nodes, parameters)
            if bsz == MAX and "epoch_samples" in case:
                reason = message("skipped.no-short-runs", workload=name)
            if reason:
                line.skipped.append({"case": case, "reason": reason})
            else:
                line.cases.append(case)
        yield line


def _steps(parameters: Mapping[str, Any], workload: Workload, values: Mapping[str, int]) -> dict[str, int]:
    """Return the `warmup` and `window` of a case.

    They are the ones given, else the workload's own; where it declares an epoch they are the steps of its
    epochs: the last one is the window, and the case says so.
    """
    if not workload.epoch:
        return {
            "warmup": int(parameters["warmup"] or workload.warmup),
            "window": int(parameters["window"] or workload.window),
        }
    epochs, samples = (int(workload.values[workload.epoch[name]]) for name in ("epochs", "samples"))
    window = samples // (values["bsz"] * values["nodes"] * values["gpus"] * values["accumulation"])
    return {
        "warmup": (epochs - 1) * window,
        "window": window,
        "epoch_samples": samples,
    }


def _why_not(
    case: Case, workload: Workload, nodes: Sequence[Node], parameters: Mapping[str, Any]
) -> Message | None:
    """Return why `case` cannot run here, or None."""
    members = nodes[: case["nodes"]]
    simulated = len({node["machine"] for node in members}) < len(members)
    return (
        _workload_lacks(case, workload, parameters)
        or workload.refusal(case, simulated)
        or _nodes_lack(case, nodes)
        or _dtype_lacks(case, workload, parameters["force"])
    )


def _workload_lacks(case: Case, workload: Workload, parameters: Mapping[str, Any]) -> Message | None:
    """Return what of the case its workload does not have on any device."""
    name, dtypes = case["workload"], dict.fromkeys(itertools.chain(*workload.dtypes.values()))
    if case["model"] not in workload.model_names:
        models = list(workload.model_names)
        return message("skipped.no-model", workload=name, model=case["model"], models=models)
    if case["dtype"] not in dtypes:
        return message("skipped.no-dtype", workload=name, dtype=case["dtype"], dtypes=list(dtypes))
    if case["xla"] not in workload.xla:
        return message("skipped.no-compiler" if case["xla"] else "skipped.always-compiles", workload=name)
    steps = [step for step in ("warmup", "window") if parameters[step]]
    if steps and workload.epoch:
        return message("skipped.epoch", workload=name, steps=steps)
    if case["accumulation"] != 1 and workload.accumulation is None:
        return message("skipped.no-accumulation", workload=name)
    step = case["global_batch"]
    if "epoch_samples" in case and case["window"] * step != case["epoch_samples"]:
        return message("skipped.part-of-an-epoch", samples=case["epoch_samples"], step=step)
    return None


def _nodes_lack(case: Case, nodes: Sequence[Node]) -> Message | None:
    """Return what of the case the nodes do not have."""
    if case["nodes"] > len(nodes):
        return message("skipped.nodes", needed=case["nodes"], count=len(nodes))
    members = nodes[: case["nodes"]]
    for node in members:
        if case["gpus"] > int(node["slots"]):
            values = {"node": node["name"], "count": node["slots"]}
            return message("skipped.devices", needed=case["gpus"], **values)
    if case["device"] == "gpu":
        for machine in dict.fromkeys(node["machine"] for node in members):
            sharing = [node for node in members if node["machine"] == machine]
            needed, available = case["gpus"] * len(sharing), int(sharing[0]["slots"])
            if needed > available:
                code = "skipped.gpus-of-a-machine" if len(sharing) > 1 else "skipped.gpus"
                return message(code, needed=needed, nodes=len(sharing), count=available)
    return None


def _dtype_lacks(case: Case, workload: Workload, force: bool) -> Message | None:
    """Return why the case's number format is not worth running on its device."""
    device = case["device"] or ""
    if case["dtype"] in workload.dtypes[device] or force:
        return None
    hint = workload.dtype_hints.get(device, {}).get(case["dtype"])
    return as_message(hint or message("skipped.dtype", dtype=case["dtype"], device=case["device"]))


def _campaign_name(lines: Sequence[_Line], parameters: Mapping[str, Any]) -> str:
    """Return a name that follows from the matrix: the same command finds its campaign again.

    What a search will find is not known yet: MAX stands for it.
    """
    cases_by_batch = [(line.bsz, case) for line in lines for case in line.cases] or [
        (line.bsz, entry["case"]) for line in lines for entry in line.skipped
    ]
    names = sorted(f"{MAX} {case['name']}" if bsz == MAX else case["name"] for bsz, case in cases_by_batch)
    # Runs of two launchers, of two images, or with and without binding are not mixed, unless a name is given.
    launcher = [parameters["launcher"]] if parameters.get("launcher") not in (None, "mpirun") else []
    image = [parameters["container"]] if parameters.get("container") else []
    unbound = ["unbound"] if parameters.get("binding") == "none" else []
    content = json.dumps(names + launcher + image + unbound)
    digest = hashlib.sha256(content.encode()).hexdigest()[:8]
    words = [
        "_".join(dict.fromkeys(case["workload"] for _, case in cases_by_batch)),
        "_".join(dict.fromkeys(case["model"] for _, case in cases_by_batch)),
        "b" + "_".join(dict.fromkeys(str(bsz) for bsz, _ in cases_by_batch)),
        "_".join(parameters["dtype"]),
        *launcher,
        *(["container"] if image else []),
    ]
    return "-".join(words)[:80] + "-" + digest
