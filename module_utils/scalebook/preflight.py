# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What a look at all machines means for a campaign: findings, each with its cure, and one verdict.

Machines are looked at by roles/preflight/files/look.py; nothing here asks anybody anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook import nvidia_smi, preflight_gpus, preflight_hosts
from ansible.module_utils.scalebook.preflight_site import LEVELS, Finding, Site, finding

SCHEMA = 1

# In the order of the table: what must be right for the next to mean anything comes first.
CHECKS = (*preflight_hosts.CHECKS, *preflight_gpus.CHECKS)


def machines(nodes: Sequence[Mapping[str, Any]], port: int) -> list[dict[str, Any]]:
    """Return the machines behind `nodes` (as matrix.plan takes them), in inventory order.

    Each is `{"name", "nodes", "address", "local", "ports", "slots"}`: `name` is the first of its
    nodes and stands for it, `ports` has what each of its nodes will listen on (jobs.make_jobs).
    """
    found: dict[str, dict[str, Any]] = {}
    for node in nodes:
        local = node["machine"] == "localhost"
        machine = found.setdefault(
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
    return list(found.values())


def ask(
    machines: Sequence[Mapping[str, Any]],
    name: str,
    work: str,
    limits: Mapping[str, Any],
    device: str,
) -> dict[str, Any]:
    """Return what look.py is asked on the machine that the node `name` stands for.

    `work` is where that machine keeps its jobs.
    """
    here = next(machine for machine in machines if machine["name"] == name)
    # The machines after this one first: not all knock at the first one's door at once.
    place = list(machines).index(here)
    others = [*machines[place + 1 :], *machines[:place]]
    names = [node for machine in machines for node in machine["nodes"]]
    return {
        "peers": []
        if here["local"]
        else [{"name": one["name"], "address": one["address"]} for one in others],
        "names": list(dict.fromkeys([*names, *(machine["address"] for machine in machines)])),
        "ports": here["ports"],
        "work": work,
        "login": not here["local"],
        "gpus": device != "cpu",
        "seconds": float(limits["seconds"]),
        "login_seconds": float(limits["login_seconds"]),
    }


def with_reports_read(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return what look.py printed, `answer`, with the texts of NVIDIA's driver read (nvidia_smi)."""
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


def judge(
    machines: Sequence[Mapping[str, Any]],
    seen: Mapping[str, Mapping[str, Any]],
    limits: Mapping[str, Any],
    device: str = "auto",
    more: Iterable[Finding] = (),
) -> list[Finding]:
    """Return the findings of all checks, the worst first.

    `seen` maps a machine's name to what look.py printed of it, `{"facts": {…}, "failed": {…}}`, its reports
    read (with_reports_read), or to `{"error": text}` when it could not be asked. `limits` are the role's
    thresholds; a check named in `limits["accept"]` warns where it would refuse. `more` are findings that
    were made elsewhere.
    A finding is `{"check", "level", "nodes", "found", "wanted", "cure"}`; a check that finds nothing
    wrong is one of level ok.
    """
    site = Site(machines, seen, limits, device)
    found: list[Finding] = [*more]
    for check, look in CHECKS:
        made = look(site)
        if made is not None:  # there is something that it could be asked of
            found += list(made) or [finding(check, "ok", site.nodes)]
    return sorted(_merged(_accepted(found, limits["accept"])), key=lambda one: -LEVELS.index(one["level"]))


def verdict(findings: Iterable[Finding]) -> str:
    """Return the worst level of `findings`."""
    return max((one["level"] for one in findings), key=LEVELS.index, default="ok")


def refusal(findings: Iterable[Finding]) -> str:
    """Return why nothing is started, in a sentence or two; empty where nothing is refused."""
    refused = [one for one in findings if one["level"] == "refuse"]
    if not refused:
        return ""
    worst, more = refused[0], f" {len(refused) - 1} more above." if refused[1:] else ""
    cure = f" Cure: {worst['cure']}." if worst["cure"] else ""
    return (
        f"Preflight refuses: {_names(worst['nodes'])}: {worst['found']}.{cure}{more} "
        "-e preflight=false measures all the same, and the report says so."
    )


def describe(findings: Sequence[Finding], nodes: int, seconds: float) -> str:
    """Return the findings as the table that the terminal shows."""
    said = {"ok": "ok", "warn": "warnings", "refuse": "refused"}[verdict(findings)]
    lines = [f"Preflight of {nodes} {'node' if nodes == 1 else 'nodes'} in {seconds:.1f} s: {said}"]
    bad = [one for one in findings if one["level"] != "ok"]
    names = [_names(one["nodes"]) for one in bad]
    widths = max((len(one["check"]) for one in bad), default=0), max(map(len, names), default=0)
    for one, name in zip(bad, names, strict=True):
        wanted = f"; wanted: {one['wanted']}" if one["wanted"] else ""
        lines.append(
            f"  {one['level']:<6}  {one['check']:<{widths[0]}}  {name:<{widths[1]}}  {one['found']}{wanted}"
        )
        if one["cure"]:
            lines.append(f"{'':<8}  {'':<{widths[0]}}  {'':<{widths[1]}}  Cure: {one['cure']}")
    well = [one["check"] for one in findings if one["level"] == "ok"]
    if well:
        lines.append(f"  ok      {', '.join(well)}")
    return "\n".join(lines)


def sentence(one: Finding) -> str:
    """Return a finding in a few words, for a record."""
    return f"{_names(one['nodes'])}: {one['check']}: {one['found']}"


def _names(nodes: Sequence[str]) -> str:
    return ", ".join(nodes) if len(nodes) <= 4 else f"{nodes[0]} … {nodes[-1]} ({len(nodes)})"


def _accepted(findings: Iterable[Finding], accept: Sequence[str]) -> list[Finding]:
    return [
        {**one, "level": "warn", "found": f"{one['found']} (accepted)"}
        if one["level"] == "refuse" and one["check"] in accept
        else one
        for one in findings
    ]


def _merged(findings: Iterable[Finding]) -> list[Finding]:
    """Return `findings` with those that say the same of several nodes made one."""
    merged: dict[tuple[str, ...], Finding] = {}
    for one in findings:
        key = tuple(str(one[name]) for name in ("check", "level", "found", "wanted", "cure"))
        if key in merged:
            merged[key]["nodes"] = list(dict.fromkeys([*merged[key]["nodes"], *one["nodes"]]))
        else:
            merged[key] = {**one, "nodes": list(one["nodes"])}
    return list(merged.values())
