# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What Slurm says of an allocation -> why a campaign cannot run in it, with the fix, and when it ends."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import Node, PendingRun
from ansible.module_utils.scalebook.plan.placement import members

_SIZES = "sinfo --format='%P %D %G' shows the nodes and the GPUs of each partition"
_OUT = "sinfo --list-reasons shows the nodes that are out of service"
FIXES = (
    (r"partition (name )?specified", "sinfo --summarize shows the partitions"),
    (
        r"(qos|assoc\w*)(grp|max|min)\w+limit",
        "ask for fewer nodes or less time; sacctmgr show qos and sacctmgr show associations user=$USER "
        "have the limits",
    ),
    (
        r"account|qos|association",
        "sacctmgr show associations user=$USER format=account,partition,qos shows what you may use",
    ),
    (
        r"gres|generic resource|(node|partition) ?(configuration|config|nodelimit)",
        f"{_SIZES}, ask for no more; {_OUT}",
    ),
    (
        r"drain|down|not available|only allocated|on node",
        f"{_OUT}: leave them out, or return them to service",
    ),
    (r"mpi", "srun --mpi=list shows the types, give one of them in campaign_srun_options"),
    (r"option", "give options of srun in campaign_srun_options"),
    (r"unable to contact", "start slurmctld, or wait for it"),
)
"""Words of a reason of Slurm's, and what helps; the first that fit count."""


def advice(reason: str, otherwise: str = "see Slurm's manual for this reason") -> str:
    """Return what helps against a reason of Slurm's."""
    return next((fix for words, fix in FIXES if re.search(words, reason, re.IGNORECASE)), otherwise)


def slurm_reason(answer: Mapping[str, Any]) -> str:
    """Return Slurm's own reason in the result of a command that failed, as one line."""
    text = str(answer.get("stderr") or answer.get("msg") or "").strip()
    lines = [re.sub(r"^(\w+: (error: )?|allocation failure: )", "", line) for line in text.splitlines()]
    telling = [line for line in lines if not re.match(r"Try \"|Job step aborted|Application launch", line)]
    return (telling or lines or ["it says nothing"])[-1].rstrip(".")


def refusal(
    answer: Mapping[str, Any],
    allocation: str,
    runs: Sequence[PendingRun],
    nodes: Sequence[Node],
    states: str = "",
    lost_nodes: Sequence[str] = (),
) -> str:
    """Return why `runs` cannot be made in the Slurm job `allocation`, "" if they can.

    `answer` is the result of the command `scontrol --oneliner --details show job`, `nodes` are those of the
    campaign, `states` lines of sinfo with a node, its state and its reason.  The campaign goes on without
    `lost_nodes`.
    """
    cases = [run["case"] for run in runs]
    largest = max(cases, key=lambda case: case["nodes"])
    names = [node["name"] for node in members(largest, nodes)]
    gpus = max(case["gpus"] if case["device"] == "gpu" else 0 for case in cases)
    words = ["salloc", f"--nodes={len(names)}", "--exclusive", "--no-kill"]
    words += [f"--gpus-per-node={gpus}"] if gpus else []
    fix = f"start bench.yml in an allocation made with {' '.join(words)}"
    needed = [name for name in names if name not in lost_nodes]
    problem = _problem(answer, allocation, needed, gpus)
    hint = advice(_facts(answer).get("Reason", ""), "") if problem else ""
    fix += f"; {hint}" if hint else ""
    for name, why in () if problem else _out_of_service(states, needed).items():
        problem = f"for Slurm {name} is {why}"
        fix = f"leave it out with --limit, or scontrol update nodename={name} state=resume puts it back"
    return f"launcher=srun: {problem}. Fix: {fix}" if problem else ""


def gone(answer: Mapping[str, Any], nodes: Sequence[Node], states: str) -> list[str]:
    """Return the names of the nodes that Slurm has taken out of the allocation, or out of service.

    For the arguments see refusal.
    """
    names, there = [node["name"] for node in nodes], hostnames(_facts(answer).get("NodeList", ""))
    out = _out_of_service(states, names)
    return [name for name in names if name in out or (there and name not in there)]


def step_refusal(answer: Mapping[str, Any]) -> str:
    """Return why srun did not start a step, "" if it did; `answer` is the result of the command."""
    if answer.get("rc") == 0:
        return ""
    reason = slurm_reason(answer)
    return f"launcher=srun: srun does not start a step on the nodes: {reason}. Fix: {advice(reason)}"


def _facts(answer: Mapping[str, Any]) -> dict[str, str]:
    """Return what scontrol shows of a job, by name."""
    return dict(re.findall(r"(?<!\S)(\w+)=(\S*)", str(answer.get("stdout") or "")))


def _out_of_service(states: str, names: Sequence[str]) -> dict[str, str]:
    """Return {node: state and reason} of those of `names` that Slurm has taken out of service."""
    lines = [line.split("|", 2) for line in states.splitlines() if line.count("|") >= 2]
    return {
        name: f"{state}, with the reason {reason}"
        for name, state, reason in lines
        if name in names and re.match(r"drain|down|fail", state)
    }


def _problem(answer: Mapping[str, Any], allocation: str, names: Sequence[str], gpus: int) -> str:
    """Return what is wrong with the allocation for runs on the nodes `names` with `gpus` GPUs each."""
    if not allocation:
        return "bench.yml does not run in an allocation of Slurm, SLURM_JOB_ID is not set"
    if answer.get("rc") != 0:
        return f"scontrol does not show Slurm's job {allocation}: {slurm_reason(answer)}"
    facts, text = _facts(answer), str(answer["stdout"])
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


def without_nodes(text: str, job: str, fix: str) -> str:
    """Return why a job that `scontrol --oneliner show job` prints has no nodes, with `fix` and what helps."""
    hint = advice(_facts({"stdout": text}).get("Reason", ""), "")
    return f"Slurm's job {job} has no nodes: {state(text)}. {fix}" + (f"; {hint}" if hint else "")


def state(text: str) -> str:
    """Return the state of the job that `scontrol --oneliner show job` prints, and Slurm's reason if any."""
    facts = dict(re.findall(r"(?<!\S)(JobState|Reason)=(\S*)", text))
    reason = facts.get("Reason", "").replace("_", " ").replace("None", "")
    return f"{facts.get('JobState')}" + (f", with the reason {reason}" if reason else "")


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
