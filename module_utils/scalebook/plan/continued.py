# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Which campaign a command goes on with, and whether the nodes of today are the machines that measured it.

What is compared are the nodes that the cases use, in order: nodes that are added behind them, or that no
case uses, change no number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from ansible.module_utils.scalebook.contracts import MachineIdentity, Message, Plan, Record, message
from ansible.module_utils.scalebook.machines import DIFFERENCES, difference, digest, lasts
from ansible.module_utils.scalebook.plan.resume import RUNS, SEARCH, ResumeError, read_object

Machines = Mapping[str, MachineIdentity]
"""Node -> its machine, in the order of the inventory; {} for the machine of a node that was not asked."""

KEPT = ("ok", "oom")
"""Statuses of runs that a campaign does not repeat."""

FEW = 3


def choose(results: Path, name: str, now: Machines) -> str:
    """Return the name of the campaign of these cases on the nodes `now`: the one in `results`, or a new one.

    `name` is what follows from the cases.  A new campaign has a digest of the machines behind it, which
    nobody knows where they are not asked: then it is the one campaign on nodes of these names.
    """
    same = [
        directory.name
        for directory in sorted(results.glob(f"{name}-*"))
        if re.fullmatch(r"[0-9a-f]{8}", directory.name.removeprefix(f"{name}-"))
        and _same(machines_of(directory), now)
    ]
    if not _any_machine(now):
        return same[0] if len(same) == 1 else name
    new = f"{name}-{digest(now)}"
    if new in same or (not same and not _same(machines_of(results / name), now)):
        return new
    return same[0] if same else name


def check_machines(directory: Path, planned: Plan) -> dict[str, MachineIdentity]:
    """Return the machines of a campaign that goes on in `directory`, those of nodes not used today included.

    Raises ResumeError where other machines measured what is there.
    """
    now = planned["machines"]
    then = machines_of(directory) if any(_records_kept(directory)) else {}
    if differing := _differing(then, now) or _differing_records(directory, now):
        before = str(read_object(directory / "plan.json").get("inventory") or "")
        raise ResumeError(_refusal(directory.name, (before, then), (planned["inventory"], now), differing))
    # What is known of a machine stays as it was: many small changes would make another machine of it.
    return {**now, **then} if any(map(lasts, then.values())) else {**then, **now}


def remarks(results: Path, planned: Plan, measured: int) -> list[Message]:
    """Return what a user should know of the name of a campaign and of the machines behind it."""
    campaign, now = planned["campaign"], planned["machines"]
    earlier = "" if planned["parameters"].get("campaign") else campaign.rpartition("-")[0]
    if not _any_machine(now):
        if measured:
            return [message("plan.not-asked-measured")]
        return [message("plan.not-asked-unnamed" if earlier else "plan.not-asked")]
    if _is_old(results / campaign):
        return [message("plan.machines-unnamed")]
    if earlier and not (results / campaign).exists() and _is_old(results / earlier):
        return [message("plan.another-campaign", name=earlier)]
    return []


def machines_of(directory: Path) -> dict[str, MachineIdentity]:
    """Return the machines of the campaign in `directory` by node.

    A plan of an earlier version, or one that is missing, does not have them.  Then they are what the
    records say, at least the boot of each node; {} for a node whose records do not agree.
    """
    planned = read_object(directory / "plan.json").get("machines")
    if isinstance(planned, dict) and _any_machine(planned):
        return planned
    machines_of_records = [_of_record(record) for record in _records_kept(directory)]
    return {
        node: {}
        if any(difference(identity, other[node]) for other in machines_of_records if node in other)
        else identity
        for node, identity in max(machines_of_records, key=len, default={}).items()
    }


def _of_record(record: Record) -> dict[str, MachineIdentity]:
    """Return the machines of a run by node; a record of an earlier version knows their boots."""
    machines = record.get("machines") or {}
    return {
        node["node"]: machines.get(node["node"]) or {"boot": (node.get("exit") or {}).get("boot") or ""}
        for node in record.get("nodes") or ()
    }


def _records_kept(directory: Path) -> Iterator[Record]:
    """Yield the records in `directory` of runs that are not repeated."""
    for folder in (RUNS, SEARCH):
        for path in sorted(directory.glob(f"{folder}/*/*/result.json")):
            record = read_object(path)
            if record.get("status") in KEPT:
                yield cast(Record, record)


def _is_old(directory: Path) -> bool:
    """Return whether an earlier version, which recorded no machines, measured what is in `directory`."""
    return "machines" not in read_object(directory / "plan.json") and any(_records_kept(directory))


def _any_machine(now: Machines) -> bool:
    return any(now.values())


def _same(then: Machines, now: Machines) -> bool:
    return len(then) == len(now) and not _differing(then, now)


def _differing(then: Machines, now: Machines) -> dict[str, str]:
    """Return node of today -> why it is not the one of then, for the nodes that both have."""
    differences = {}
    for (before, earlier), (node, identity) in zip(then.items(), now.items(), strict=False):
        if before != node:
            differences[node] = f"it was {before}"
        elif _any_machine(now) and (what := difference(earlier, identity)):
            differences[node] = DIFFERENCES[what]
    return differences


def _differing_records(directory: Path, now: Machines) -> dict[str, str]:
    """Return the same of the nodes of records: another process may have written the plan since."""
    return {
        node: DIFFERENCES[what]
        for record in _records_kept(directory)
        if "machines" in record
        for node, identity in _of_record(record).items()
        if now.get(node) and (what := difference(identity, now[node]))
    }


def _refusal(
    campaign: str, then: tuple[str, Machines], now: tuple[str, Machines], differing: Mapping[str, str]
) -> str:
    """Return why the campaign cannot go on; `then` and `now` are inventories with their nodes."""
    places = [f"{_few(list(nodes))} ({inventory or 'no inventory'})" for inventory, nodes in (then, now)]
    reasons = _few([f"{node}: {why}" for node, why in differing.items()], "; ")
    unknown = (
        " Its runs are from an earlier version of scalebook, which recorded no machines: nodes are known to "
        f"be the same until they are started again. report.yml -e campaign={campaign} reports on it."
    )
    old = not any(map(lasts, then[1].values()))
    return (
        f"campaign={campaign}: it was measured on {places[0]}, and the nodes of today are {places[1]}, "
        f"which are not the same machines ({reasons}).{unknown if old else ''} A number belongs to the "
        "machines that made it. Fix: give the campaign of these machines another name, campaign=NAME"
    )


def _few(texts: list[str], between: str = ", ") -> str:
    more = f" and {len(texts) - FEW} more" if len(texts) > FEW else ""
    return between.join(texts[:FEW]) + more
