# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The results -> what stands above the sections of a report, as the templates print it."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.scalebook.report import environment, first_screen
from ansible.module_utils.scalebook.report.view import View, kind_of_flag
from ansible.module_utils.scalebook.text import clean

FILES = ("report.md", "results.json", "results.csv", "results.xlsx", "metrics.prom")
"""Files of a report that the first screen names; the others are charts and DLPerf's results."""


def head(view: View) -> dict[str, Any]:
    """Return what the heads of the page and of the Markdown print."""
    document, _ = view.document, view.wording
    return {
        "title": clean(document["campaign"] or _("title.measurements")),
        "kind": _.name("kind", document["kind"]),
        "counts": document["counts"],
        "cases": _.count(document["counts"]["cases"], "case"),
        "started": _.moment(document["started"] or ""),
        "simulated": environment.shared(document["simulated"], _),
        "hardware": environment.machines(document["hardware"], _, document["rows"]),
        "software": environment.software(document["provenance"], _),
        "flagged": _flagged(view),
        "commands": _commands(view),
        "campaign_files": view.linked.campaign,
        "cards": _cards(view),
        "slower": _slower(view),
        "uncounted": bool(document["uncounted"]),
    }


def _cards(view: View) -> list[dict[str, Any]]:
    """Return the card of each group, with the title of its workload."""
    groups = view.document["groups"]
    shares = {entry["case"]: entry for entry in view.document["mfu"]}
    return [
        {
            **first_screen.card(group, groups, view.rows_of(group), shares, view.wording),
            "workload_title": view.wording.tell(group["workload_title"]),
        }
        for group in groups
    ]


def _slower(view: View) -> str:
    """Return how many cases are slower than in an earlier campaign, '' where none is."""
    made = view.document["baseline"]
    if not made or not made["regressions"]:
        return ""
    return view.wording(
        "report.slower",
        count=made["regressions"],
        name=clean(made["name"]),
        limit=view.wording.percent(made["limit"]),
    )


def _commands(view: View) -> list[dict[str, str]]:
    """Return the commands that measure the campaign again, each with its cases in words."""
    document, wording = view.document, view.wording
    short, labels = view.short_names(), {row["case"]: clean(row["label"]) for row in document["rows"]}
    made = []
    for each in document.get("commands") or ():
        groups: dict[str, list[str]] = {}
        for case in [name for name in labels if name in each["cases"]]:
            groups.setdefault(short[case], []).append(labels[case])
        texts = [f"{group} {wording.join(cases)}".strip() for group, cases in groups.items()]
        cases = wording.join(texts, "list") or wording("report.search")
        made.append({"command": each["command"], "cases": cases})
    return made


def _flagged(view: View) -> list[dict[str, str]]:
    """Return each kind of flag with how many cases have it, and the group of the first of them."""
    found: dict[str, list[str]] = {}
    for row in view.document["rows"]:
        for code in {flag["code"]: None for flag in row["flags"]}:
            found.setdefault(code, []).append(row["group"])
    return [
        {"code": code, "id": groups[0], "text": f"{len(groups)} × {kind_of_flag(code, view.wording)}"}
        for code, groups in found.items()
    ]
