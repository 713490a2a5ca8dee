# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What Slurm shows of an allocation -> why a campaign cannot run in it, with the fix, and when it ends."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import Node, PendingRun
from ansible.module_utils.scalebook.plan.placement import members


def refusal(
    answer: Mapping[str, Any], allocation: str, runs: Sequence[PendingRun], nodes: Sequence[Node]
) -> str:
    """Return why `runs` cannot be made in the Slurm job `allocation`, "" if they can.

    `answer` is the result of the command `scontrol --oneliner --details show job`, `nodes` are those of the
    campaign.
    """
    cases = [run["case"] for run in runs]
    largest = max(cases, key=lambda case: case["nodes"])
    names = [node["name"] for node in members(largest, nodes)]
    gpus = max(case["gpus"] if case["device"] == "gpu" else 0 for case in cases)
    problem = _problem(answer, allocation, names, gpus)
    words = ["salloc", f"--nodes={len(names)}", "--exclusive", "--no-kill"]
    words += [f"--gpus-per-node={gpus}"] if gpus else []
    fix = f"start bench.yml in an allocation made with {' '.join(words)}"
    return f"launcher=srun: {problem}. Fix: {fix}" if problem else ""


def _problem(answer: Mapping[str, Any], allocation: str, names: Sequence[str], gpus: int) -> str:
    """Return what is wrong with the allocation for runs on the nodes `names` with `gpus` GPUs each."""
    if not allocation:
        return "bench.yml does not run in an allocation of Slurm, SLURM_JOB_ID is not set"
    if answer.get("rc") != 0:
        lines = str(answer.get("stderr") or answer.get("msg") or "").strip().splitlines()
        return f"scontrol does not show Slurm's job {allocation}: {(lines or ['it says nothing'])[-1]}"
    text = str(answer["stdout"])
    facts = dict(re.findall(r"(?<!\S)(\w+)=(\S*)", text))
    job, there = f"Slurm's job {allocation}", hostnames(facts.get("NodeList", ""))
    missing = [name for name in names if name not in there]
    gpus_given = min(given_gpus(text).values(), default=0)
    if facts.get("JobState") != "RUNNING":
        return f"{job} is {state(text)}"
    if facts.get("OverSubscribe") != "NO":
        return f"others may run on the nodes of {job}, since OverSubscribe is {facts.get('OverSubscribe')}"
    if missing:
        return f"{job} has {facts.get('NodeList')}, without {', '.join(missing)} of the inventory"
    return f"{job} has {gpus_given} GPUs per node, and a case uses {gpus}" if gpus_given < gpus else ""


def state(text: str) -> str:
    """Return the state of the job that `scontrol --oneliner show job` prints, and Slurm's reason."""
    facts = dict(re.findall(r"(?<!\S)(JobState|Reason)=(\S*)", text))
    return f"{facts.get('JobState')}, with the reason {facts.get('Reason')}"


def given_gpus(text: str) -> dict[str, int]:
    """Return {node: GPUs that the job has there} of the text of `scontrol --oneliner --details show job`."""
    parts = re.findall(r"(?<!\S)Nodes=(\S+) .*? GRES=(\S*)", text)
    return {name: _gpus(resources) for names, resources in parts for name in hostnames(names)}


def hosts(job: str, nodes: str) -> dict[str, dict[str, Any]]:
    """Return {node: variables} of an allocation, in Slurm's order, as an inventory has them.

    `job` is the text of `scontrol --oneliner --details show job`, `nodes` that of `scontrol --oneliner show
    node`.
    """
    addresses = dict(re.findall(r"^NodeName=(\S+) .*? NodeAddr=(\S+)", nodes, re.MULTILINE))
    return {
        name: {"node_address": addresses.get(name, name), "slots": max(gpus, 1)}
        for name, gpus in given_gpus(job).items()
    }


def ends(answer: Mapping[str, Any], seconds: float, now: datetime.datetime | None = None) -> str:
    """Return when an allocation ends, and whether runs that take `seconds` fit into it; "" if it has no end.

    `answer` as for refusal.  Slurm shows the local time, which `now` is in too.
    """
    facts = dict(re.findall(r"(?<!\S)(JobId|EndTime)=(\S*)", str(answer["stdout"])))
    try:
        end = datetime.datetime.fromisoformat(facts.get("EndTime", ""))
    except ValueError:
        return ""
    left = (end - (now or datetime.datetime.now())).total_seconds()
    text = f"Slurm's job {facts['JobId']}, in which the runs are steps, ends at {end}, in {_duration(left)}."
    if seconds > left:
        text += (
            f" The runs take {_duration(seconds)}, as earlier ones did: what is not measured by then is "
            "measured by the same command in another allocation."
        )
    return text


def _duration(seconds: float) -> str:
    """Return a time to the minute."""
    hours, minutes = divmod(max(0, round(seconds / 60)), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def hostnames(text: str) -> list[str]:
    """Return the names that Slurm writes as such as `gpu[001-003,7],login`."""
    names: list[str] = []
    for part in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):
        begin, bracket, rest = part.partition("[")
        numbers, _, end = rest.partition("]")
        if not bracket:
            names.append(part)
        for piece in numbers.split(",") if bracket else ():
            first, _, last = piece.partition("-")
            for number in range(int(first), int(last or first) + 1):
                names += hostnames(begin + str(number).zfill(len(first)) + end)
    return names


def _gpus(resources: str) -> int:
    """Return the number of GPUs in such as `gpu:h100:8(IDX:0-7),shard:0`."""
    return sum(int(count) for count in re.findall(r"(?<!\w)gpu(?::[^:(,]+)?:(\d+)\(", resources))
