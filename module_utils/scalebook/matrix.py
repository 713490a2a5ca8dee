# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Matrix -> cases -> plan: what a campaign will measure, in which order, and what it cannot."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.knobs import KnobError, read_knobs, safe_name

SCHEMA = 1
MOST_RUNS = 100_000  # at a minute each that is two months
IDENTITY = (
    *("framework", "model", "dtype", "xla", "bsz", "nodes", "gpus"),
    *("accumulation", "device", "warmup", "window", "settings"),
)
"""Keys of a case that make it another case when they differ; the digest in its name covers them."""


def case_name(case: Mapping[str, Any]) -> str:
    """Return the content-hashed name of `case`, which is also its directory.

    A changed case gets a new directory, so a resumed campaign never takes a stale result for it.
    """
    content = json.dumps({key: case.get(key) for key in IDENTITY}, sort_keys=True)
    digest = hashlib.sha256(content.encode()).hexdigest()[:8]
    xla = "-xla" if case.get("xla") else ""
    accumulation = f"-a{case['accumulation']}" if case.get("accumulation", 1) != 1 else ""
    return (
        f"{case['framework']}-{case['model']}-{case['nodes']}n{case['gpus']}g-b{case['bsz']}"
        f"-{case['dtype']}{xla}{accumulation}-{digest}"
    )


def make_case(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return one case from its own values: the derived figures, the label and the name added.

    `bsz` is per device; `global_batch` is what one step of all devices takes, without accumulation.
    """
    devices = values["nodes"] * values["gpus"]
    case = {
        "accumulation": 1,
        **values,
        "devices": devices,
        "global_batch": values["bsz"] * devices,
        "label": f"{values['nodes']}n{values['gpus']}g",
    }
    return {**case, "name": case_name(case)}


def powers_of_two(largest: int) -> list[int]:
    """Return 1, 2, 4 … up to `largest`, which is always the last: `6` gives 1, 2, 4, 6."""
    steps = list(itertools.takewhile(lambda n: n < largest, (2**i for i in itertools.count())))
    return [*steps, largest]


def plan(
    raw: Mapping[str, Any],
    workload: Mapping[str, Any],
    nodes: Sequence[Mapping[str, Any]],
    framework: str,
    device: str,
    inventory: str = "",
) -> dict[str, Any]:
    """Return the plan of a campaign (design §7, plan.json) or raise KnobError.

    `raw` holds the knobs as they came, `workload` the role's declaration, `nodes` the nodes in
    inventory order: `{"name", "address", "slots", "machine"}`, where nodes of the same `machine`
    share its devices. What cannot run is listed under `skipped` with its reason.
    """
    if not nodes:
        raise KnobError("nodes: the inventory has no host in the group `nodes`")
    for node in nodes:
        safe_name("host name", node["name"])
    if len({node["name"] for node in nodes}) != len(nodes):
        raise KnobError("nodes: a host is listed twice")
    knobs = read_knobs(raw, workload, device)
    slots = min(int(node["slots"]) for node in nodes)
    # Nothing that was asked for fits: that is a wrong value, not a campaign of skipped cases.
    if knobs["nodes"] and min(knobs["nodes"]) > len(nodes):
        raise KnobError(
            f"nodes={_text(knobs['nodes'])}: allowed are 1 to {len(nodes)}, the nodes of this inventory"
        )
    if knobs["gpus"] and min(knobs["gpus"]) > slots:
        raise KnobError(f"gpus={_text(knobs['gpus'])}: allowed are 1 to {slots}, what each node has")

    size = knobs["repeats"]
    for axis in (
        *(knobs[name] for name in ("dtype", "xla", "bsz")),
        knobs["nodes"] or [1],
        knobs["gpus"] or [1],
    ):
        size *= len(axis)
    if size > MOST_RUNS:
        raise KnobError(f"these values make {size} runs or more; allowed are {MOST_RUNS}")

    cases: list[dict[str, Any]] = []
    skipped: list[dict[str, Any]] = []
    for case in _cases(knobs, workload, framework, device, len(nodes), slots):
        reason = _why_not(case, workload, nodes, knobs["force"])
        if reason:
            skipped.append({"case": case, "reason": reason})
        else:
            cases.append(case)
    name = safe_name(
        "campaign",
        raw.get("campaign") or _campaign_name(framework, knobs, cases or [s["case"] for s in skipped]),
    )
    return {
        "schema": SCHEMA,
        "campaign": name,
        "inventory": inventory,
        "knobs": {**knobs, "framework": framework, "device": device},
        "repeats": knobs["repeats"],
        "cases": cases,
        "skipped": skipped,
        # Repeats are interleaved over the cases, so drift does not fall on one of them.
        "runs": [
            {"case": case["name"], "repeat": repeat}
            for repeat in range(1, knobs["repeats"] + 1)
            for case in cases
        ],
    }


def describe(plan: Mapping[str, Any], done: Iterable[Sequence[Any]] = ()) -> str:
    """Return the plan as plain text; `done` are the (case, repeat) pairs already measured."""
    done = {(name, repeat) for name, repeat in done}
    finished = sum((run["case"], run["repeat"]) in done for run in plan["runs"])
    cases, repeats = len(plan["cases"]), plan["repeats"]
    lines = [
        f"Campaign {plan['campaign']}: {_many(cases, 'case')} x {_many(repeats, 'repeat')} = "
        f"{_many(cases * repeats, 'run')}" + (f", {finished} already measured" if finished else "")
    ]
    for case in plan["cases"]:
        have = sum((case["name"], repeat) in done for repeat in range(1, repeats + 1))
        lines.append(
            f"  run   {case['label']:>7}  b{case['bsz']:<4} {case['dtype']}{' xla' if case['xla'] else ''}"
            f"  global batch {case['global_batch']}" + (f"  ({have} of {repeats} measured)" if have else "")
        )
    for entry in plan["skipped"]:
        case = entry["case"]
        lines.append(
            f"  skip  {case['label']:>7}  b{case['bsz']:<4} {case['dtype']}{' xla' if case['xla'] else ''}"
            f"  {entry['reason']}"
        )
    if cases and not any(case["label"] == "1n1g" for case in plan["cases"]):
        lines.append("  note: 1n1g is not in the plan, so speedups will be n/a")
    return "\n".join(lines)


def _cases(
    knobs: Mapping[str, Any],
    workload: Mapping[str, Any],
    framework: str,
    device: str,
    node_count: int,
    slots: int,
) -> Iterable[dict[str, Any]]:
    for dtype, xla, bsz in itertools.product(knobs["dtype"], knobs["xla"], knobs["bsz"]):
        for count in knobs["nodes"] or powers_of_two(node_count):
            # DLPerf's own table: one node is scaled over its GPUs, several nodes use all of theirs.
            for gpus in knobs["gpus"] or (powers_of_two(slots) if count == 1 else [slots]):
                values = {"bsz": bsz, "nodes": count, "gpus": gpus, "accumulation": knobs["accumulation"]}
                yield make_case(
                    {
                        "framework": framework,
                        "model": knobs["model"],
                        "dtype": dtype,
                        "xla": xla,
                        **values,
                        "device": device,
                        **_steps(workload, values),
                        "settings": dict(workload.get("settings", {})),
                    }
                )


def _steps(workload: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, int]:
    """Return the `warmup` and `window` of a case.

    They are the workload's own, or where it declares `epoch_samples` the steps of its `epochs`: the last
    one is the window, and the case says so.
    """
    if "epoch_samples" not in workload:
        return {"warmup": int(workload["warmup"]), "window": int(workload["window"])}
    samples = int(workload["epoch_samples"])
    window = samples // (values["bsz"] * values["nodes"] * values["gpus"] * values["accumulation"])
    return {
        "warmup": (int(workload["epochs"]) - 1) * window,
        "window": window,
        "epoch_samples": samples,
    }


def _why_not(
    case: Mapping[str, Any], workload: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]], force: bool
) -> str | None:
    """Return why `case` cannot run here, or None."""
    if case["nodes"] > len(nodes):
        return f"needs {case['nodes']} nodes, the inventory has {len(nodes)}"
    members = nodes[: case["nodes"]]
    for node in members:
        if case["gpus"] > int(node["slots"]):
            return f"needs {case['gpus']} devices per node, {node['name']} has {node['slots']}"
    if case["device"] == "gpu":
        for machine in {node["machine"]: None for node in members}:
            sharing = [node for node in members if node["machine"] == machine]
            wanted, there = case["gpus"] * len(sharing), int(sharing[0]["slots"])
            if wanted > there:
                return f"needs {wanted} GPUs of one machine for {_many(len(sharing), 'node')}, it has {there}"
    step = case["global_batch"] * case["accumulation"]
    if "epoch_samples" in case and case["window"] * step != case["epoch_samples"]:
        return f"an epoch of {case['epoch_samples']} samples is no whole number of steps of {step}"
    if case["dtype"] not in workload["dtypes"][case["device"]] and not force:
        hint = workload.get("dtype_hints", {}).get(case["device"], {}).get(case["dtype"])
        return str(
            hint or f"{case['dtype']} does not run on a {case['device']}; -e force=true tries it all the same"
        )
    return None


def _campaign_name(framework: str, knobs: Mapping[str, Any], cases: Sequence[Mapping[str, Any]]) -> str:
    """Return a name that follows from the matrix: the same command finds its campaign again."""
    content = json.dumps(sorted(case["name"] for case in cases))
    digest = hashlib.sha256(content.encode()).hexdigest()[:8]
    words = [framework, knobs["model"], "b" + "_".join(map(str, knobs["bsz"])), "_".join(knobs["dtype"])]
    return "-".join(words)[:80] + "-" + digest


def _text(values: Iterable[Any]) -> str:
    return ",".join(map(str, values))


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
