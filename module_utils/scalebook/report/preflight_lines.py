# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The findings of the preflight -> the lines of the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import Finding
from ansible.module_utils.scalebook.pages.terminal import padded
from ansible.module_utils.scalebook.pages.wording import ENGLISH, Wording
from ansible.module_utils.scalebook.preflight.judge import names_of, verdict

Spoken = Mapping[str, Any]
"""A finding for the terminal: `found`, `expected` and `fix` are sentences."""
LEVEL = 8
"""Columns of a level on the terminal, with the blanks behind it."""


def spoken(findings: Iterable[Finding], wording: Wording = ENGLISH) -> list[Spoken]:
    """Return findings with what was found, what is expected and the fix as sentences."""
    return [
        {
            **one,
            "found": wording.tell(one["message"]),
            "expected": wording.tell(one["expected"]),
            "fix": wording.tell(one["fix"]),
        }
        for one in findings
    ]


def refusal(findings: Iterable[Spoken], wording: Wording = ENGLISH) -> str:
    """Return why the campaign is not started, from `spoken` findings; empty where nothing is refused."""
    _, refused = wording, [finding for finding in findings if finding["level"] == "refuse"]
    if not refused:
        return ""
    first = refused[0]
    why = _("preflight.failed", nodes=names_of(first["nodes"]), what=first["found"].rstrip("."))
    fix = [_("preflight.with-fix", fix=first["fix"])] if first["fix"] else []
    more = [_("preflight.more", count=len(refused) - 1)] if refused[1:] else []
    return _.join([why, *fix, *more, _("preflight.anyway")], "sentences")


def describe(findings: Sequence[Spoken], nodes: int, seconds: float, wording: Wording = ENGLISH) -> str:
    """Return the `spoken` findings as a table for the terminal."""
    _ = wording
    worst = verdict(findings)
    lines = [_(f"preflight.summary-{worst}", nodes=_.count(nodes, "node"), seconds=seconds)]
    bad = [one for one in findings if one["level"] != "ok"]
    names = [names_of(one["nodes"]) for one in bad]
    widths = max((len(one["check"]) for one in bad), default=0), max(map(len, names), default=0)
    for one, name in zip(bad, names, strict=True):
        what = _("preflight.expected", what=one["found"], expected=one["expected"])
        what = what if one["expected"] else one["found"]
        level = padded(_(f"preflight.level-{one['level']}"), LEVEL)
        lines.append(f"  {level}{one['check']:<{widths[0]}}  {name:<{widths[1]}}  {what}")
        if one["fix"]:
            lines.append(" " * (LEVEL + sum(widths) + 6) + _("preflight.fix", fix=one["fix"]))
    passed = [one["check"] for one in findings if one["level"] == "ok"]
    if passed:
        lines.append(f"  {padded(_('preflight.level-ok'), LEVEL)}{', '.join(passed)}")
    return "\n".join(lines)
