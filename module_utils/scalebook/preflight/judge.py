# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Evaluates the preflight probes: findings, each with its fix, and one verdict.

The probes are those of module node_probe; nothing here connects to a machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict, cast

from ansible.module_utils.scalebook.contracts import Finding, Node, Statement, message
from ansible.module_utils.scalebook.preflight import gpus, hosts, nvidia_smi, rdma, tuning
from ansible.module_utils.scalebook.preflight.site import LEVELS, Site, finding

SCHEMA = 3


class CheckedMachine(TypedDict):
    """A machine that the preflight checks: its nodes, the port of each, and its slots. `local` is the control
    node itself.
    """

    name: str
    nodes: list[str]
    address: str
    local: bool
    ports: list[int]
    slots: int


class Probed(TypedDict, total=False):
    """What the probes of a machine returned: facts by probe, and why a probe failed; or why none ran."""

    facts: dict[str, Any]
    failed: dict[str, str]
    error: str


class Preflight(TypedDict):
    """The findings of the preflight, the worst of them, and what they were made of: limits and probes."""

    schema: int
    verdict: str
    seconds: float
    device: str
    limits: dict[str, Any]
    machines: list[CheckedMachine]
    findings: list[Finding]
    probed: dict[str, Probed]


# In the order of the table: a check comes after those that it depends on.
CHECKS = (*hosts.CHECKS, *tuning.CHECKS, *gpus.CHECKS, *rdma.CHECKS)


def machines(nodes: Sequence[Node], port: int) -> list[CheckedMachine]:
    """Return the machines behind `nodes` (as matrix.plan takes them), in inventory order.

    The name of each is the first of its nodes and stands for it; `ports` has what each of its nodes will
    listen on (jobs.make_jobs).
    """
    machines_by_name: dict[str, CheckedMachine] = {}
    for node in nodes:
        local = node["machine"] == "localhost"
        machine = machines_by_name.setdefault(
            node["machine"],
            {
                "name": node["name"],
                "nodes": [],
                "address": node["address"],
                "local": local,
                "ports": [],
                "slots": int(node["slots"]),
            },
        )
        machine["ports"].append(port + len(machine["nodes"]))
        machine["nodes"].append(node["name"])
    return list(machines_by_name.values())


def ask(
    machines: Sequence[Mapping[str, Any]],
    name: str,
    work_directory: str,
    limits: Mapping[str, Any],
    device: str,
) -> dict[str, Any]:
    """Return the options of module node_probe on the machine whose first node is `name`.

    `work_directory` is the directory of its node jobs.
    """
    here = next(machine for machine in machines if machine["name"] == name)
    # The machines after this one first, so that not all connect to the first one at the same time.
    place = list(machines).index(here)
    others = [*machines[place + 1 :], *machines[:place]]
    names = [node for machine in machines for node in machine["nodes"]]
    return {
        "peers": []
        if here["local"]
        else [{"name": one["name"], "address": one["address"]} for one in others],
        "names": list(dict.fromkeys([*names, *(machine["address"] for machine in machines)])),
        "ports": here["ports"],
        "work": work_directory,
        "login": not here["local"],
        # The first node starts all runs.
        "steps": "-" if limits.get("steps") and place else limits.get("steps", ""),
        "gpus": device != "cpu",
        "seconds": float(limits["seconds"]),
        "login_seconds": float(limits["login_seconds"]),
    }


def with_reports_read(answer: Mapping[str, Any]) -> Probed:
    """Return the result of node_probe, {"facts", "failed"}, with the texts of NVIDIA's driver parsed."""
    facts, failed = dict(answer["facts"]), dict(answer["failed"])
    if facts.get("smi"):
        try:
            facts["smi"] = nvidia_smi.read_gpus(**facts["smi"])
        except nvidia_smi.ReportError as error:
            failed["smi"] = str(error)
            del facts["smi"]
    if "nvlink" in facts:
        facts["nvlink"] = nvidia_smi.read_nvlink(facts["nvlink"])
    if "xids" in facts:
        facts["xids"] = nvidia_smi.read_xids(facts["xids"])
    return {"facts": facts, "failed": failed}


def read(result: Mapping[str, Any]) -> Probed:
    """Return the facts and failures in the result of module node_probe, or the error of its task."""
    facts, failures = result.get("facts"), result.get("failures")
    if isinstance(facts, dict) and isinstance(failures, dict):
        return with_reports_read({"facts": facts, "failed": failures})
    texts = [str(result.get(name) or "").strip() for name in ("module_stderr", "msg")]
    return {"error": next(filter(None, texts), "no answer")[-400:]}


def judge(
    machines: Sequence[Mapping[str, Any]],
    probed: Mapping[str, Mapping[str, Any]],
    limits: Mapping[str, Any],
    device: str = "auto",
    more: Iterable[Finding] = (),
) -> list[Finding]:
    """Return the findings of all checks, the worst first.

    `probed` maps the name of a machine to what its probes returned, `{"facts": {…}, "failed": {…}}`
    (with_reports_read), or to `{"error": text}` where they could not run. `limits` are the role's
    thresholds; a check named in `limits["accept"]` warns instead of refusing. `more` are findings of other
    checks. A check that finds nothing wrong is a finding of level ok.
    """
    site = Site(machines, probed, limits, device)
    findings: list[Finding] = [*more]
    for check in CHECKS:
        if check.applies(site):
            findings += list(check.inspect(site)) or [finding(check.name, "ok", site.nodes)]
    merged = _merged(_accepted(findings, limits["accept"]))
    return sorted(merged, key=lambda finding: -LEVELS.index(finding["level"]))


def verdict(entries: Iterable[Mapping[str, Any] | Finding]) -> str:
    """Return the worst level of findings."""
    return max((one["level"] for one in entries), key=LEVELS.index, default="ok")


def fitness(is_wanted: bool, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a record says of a preflight; `document` is preflight.json, empty where none was made.

    What it refused is not in it: no campaign starts then.
    """
    if not is_wanted:
        return cast(dict[str, Any], message("preflight.skipped"))
    if not document:
        return cast(dict[str, Any], message("preflight.not-made"))
    warnings = [
        message("preflight.finding", nodes=names_of(one["nodes"]), check=one["check"], what=_what(one))
        for one in document["findings"]
        if one["level"] == "warn"
    ]
    return {"verdict": document["verdict"], "warnings": warnings}


def _what(one: Mapping[str, Any]) -> Statement:
    """Return what was found: the message, or the sentence of an earlier version."""
    what: Statement = one.get("message") or one["found"]
    return what


def names_of(nodes: Sequence[str]) -> str:
    """Return the names of nodes, of many the first and the last."""
    return ", ".join(nodes) if len(nodes) <= 4 else f"{nodes[0]} … {nodes[-1]} ({len(nodes)})"


def _accepted(findings: Iterable[Finding], accept: Sequence[str]) -> list[Finding]:
    return [
        {**one, "level": "warn", "message": message("preflight.accepted", what=one["message"])}
        if one["level"] == "refuse" and one["check"] in accept
        else one
        for one in findings
    ]


def _merged(findings: Iterable[Finding]) -> list[Finding]:
    """Return `findings` with equal ones of several nodes merged into one."""
    merged: dict[tuple[str, ...], Finding] = {}
    for one in findings:
        key = tuple(str(one[name]) for name in ("check", "level", "message", "expected", "fix"))
        if key in merged:
            merged[key]["nodes"] = list(dict.fromkeys([*merged[key]["nodes"], *one["nodes"]]))
        else:
            merged[key] = {**one, "nodes": list(one["nodes"])}
    return list(merged.values())
