# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""acceptance.json -> the lines of the terminal, and the commands that take bad nodes out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ansible.module_utils.scalebook.accept.contracts import (
    ALL_NODES,
    ALONE,
    LINK,
    PAIR,
    WORST,
    Acceptance,
    BurnIn,
    PartFinding,
)
from ansible.module_utils.scalebook.accept.document import is_of_group
from ansible.module_utils.scalebook.accept.reasons import cause_sentence, compared, connection_lines, one_end
from ansible.module_utils.scalebook.accept.verdict import BAD, GOOD, NO_REFERENCE, OPEN
from ansible.module_utils.scalebook.accept.whole import group_name
from ansible.module_utils.scalebook.contracts import Message
from ansible.module_utils.scalebook.pages.terminal import padded
from ansible.module_utils.scalebook.pages.wording import ENGLISH, Wording

VERDICT = 13
"""Columns of a verdict on the terminal, with the blank behind it."""


def display(acceptance: Acceptance, wording: Wording = ENGLISH) -> list[str]:
    """Return the lines at the end: one for each part, of links and groups only those that are not good."""
    _ = wording
    by_part: dict[str, list[PartFinding]] = {}
    for row in acceptance["findings"]:
        by_part.setdefault(row["part"], []).append(row)
    worst = {part: min((row["verdict"] for row in rows), key=WORST.index) for part, rows in by_part.items()}
    lines = [
        _part(worst[part], rows[0], _.join((_.tell(compared(row)) for row in rows), "parts"), _)
        for part, rows in by_part.items()
        if worst[part] != GOOD
        and not (rows[0]["quantity"] == PAIR and worst[part] == NO_REFERENCE)
        or not (rows[0]["quantity"] in (LINK, PAIR) or (is_of_group(rows[0]) and part != ALL_NODES))
    ]
    lines += [_part(BAD, each, _.tell(each["reason"]), _) for each in acceptance["problems"]]
    for cause in acceptance["faults"]:
        line = _.tell(cause_sentence(cause))
        more = [_("acceptance.one-is-enough")] if one_end(cause) else []
        lines.append(_.join([line, *more], "sentences"))
    counts = [
        _("acceptance.count", count=number, verdict=_.name("acceptance", each))
        for each in WORST
        if (number := [*worst.values()].count(each))
    ]
    parts = _.join(counts, "comma") or _("acceptance.none-measured")
    lines.append(_("acceptance.counts", nodes=len(acceptance["nodes"]), parts=parts))
    lines += map(_.tell, connection_lines(acceptance))
    if acceptance["bad"]:
        lines += [_("acceptance.leave-out", limit=acceptance["limit"]), *drain(acceptance)]
    return [*lines, *(_of_burnin(acceptance["burnin"], _) if acceptance["burnin"] else ())]


def _part(verdict: str, about: Mapping[str, Any], what: str, wording: Wording) -> str:
    return padded(wording.name("acceptance", verdict), VERDICT) + wording.about(
        part_name(about, wording), what
    )


def part_name(about: Mapping[str, Any], wording: Wording) -> str:
    """Return the name of the part that a finding or problem is about."""
    part = str(about["part"])
    if part == ALL_NODES:
        return wording("acceptance.all-nodes")
    group = group_name(about["nodes"]) if len(about["nodes"]) > 1 else ""
    return wording("acceptance.group-alone", nodes=group) if group and part == group + ALONE else part


def drain(acceptance: Acceptance) -> list[str]:
    """Return the commands that take bad nodes out of a Slurm cluster; nobody runs them but its owner.

    Their reasons are English in every language: Slurm shows them to all users of the cluster.
    """
    return [_drain(node, ENGLISH.tell(reason)) for node, reason in acceptance["reasons"].items()]


def _drain(node: str, reason: str) -> str:
    quoted = "".join(letter for letter in reason if letter not in "\"'\\`$\n")
    return f"scontrol update nodename={node} state=drain reason='scalebook: {quoted[:160]}'"


def refusal(why: Iterable[Message], wording: Wording = ENGLISH) -> str:
    """Return why a cluster is not accepted, "" for one that is."""
    return wording.join(map(wording.tell, why), "after")


def measures(acceptance: Acceptance, wording: Wording = ENGLISH) -> str:
    """Return a line on what is measured next: everything at first, later what has no verdict."""
    _ = wording
    parts = {row["part"] for row in acceptance["findings"]}
    if not parts:
        return _("acceptance.measures-all", nodes=_.count(len(acceptance["nodes"]), "node"))
    waiting = [row for row in acceptance["findings"] if row["verdict"] == OPEN]
    quantities = [
        _("acceptance.waiting", quantity=name, parts=_.count(number, "part"))
        for name, number in Counter(row["quantity"] for row in waiting).items()
    ]
    return _(
        "acceptance.measures-again",
        decided=len(parts - {row["part"] for row in waiting}),
        parts=_.count(len(parts), "part"),
        quantities=_.join(quantities, "comma") or _("acceptance.all-nodes"),
    )


def progress(burnin: BurnIn, wording: Wording = ENGLISH) -> str:
    """Return a line on how far the burn-in is, and its worst part."""
    _ = wording
    worst, seconds = burnin["worst"], burnin["hours"] * 3600
    return _(
        "burn-in.progress",
        round=burnin["rounds"],
        passed=burnin["seconds"],
        whole=seconds,
        left=max(0.0, seconds - burnin["seconds"]),
        worst=_("burn-in.worst", **worst) if worst else "–",
        errors=burnin["errors"],
    )


def begins(nodes: int, burnin: BurnIn, wording: Wording = ENGLISH) -> str:
    """Return a line on what a burn-in repeats, and how far an earlier one came."""
    repeats = wording("burn-in.repeats", nodes=wording.count(nodes, "node"), hours=burnin["hours"])
    return wording.join([repeats, progress(burnin, wording)], "sentences")


def _of_burnin(burnin: BurnIn, wording: Wording) -> list[str]:
    """Return what the GPUs reported before a burn-in and after its rounds, and how far it is."""
    _ = wording
    before = [_("burn-in.before", what=what) for what in burnin["before"]]
    gpus = [
        _("burn-in.gpu", name=name, degrees=gpu["degrees"], errors=gpu["corrected"])
        for name, gpu in burnin["watched"].items()
        if gpu["degrees"] is not None
    ]
    return [*before, *gpus, progress(burnin, _)]
