# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The section that compares groups with published rates of language models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.judge.language_models import Beside, line
from ansible.module_utils.scalebook.pages.blocks import Block, Column, Heading, Item, Items, Paragraph, Table
from ansible.module_utils.scalebook.pages.wording import ENGLISH, Wording
from ansible.module_utils.scalebook.report.published_tables import sources
from ansible.module_utils.scalebook.report.view import View
from ansible.module_utils.scalebook.text import clean

COLUMNS = [
    Column("published_by"),
    Column("gpus_there", kind="count"),
    Column("tokens_there", kind="rate"),
    Column("gpus_here", kind="count"),
    Column("tokens_here", kind="rate"),
    Column("quotient", kind="ratio", missing="–", look="main"),
    Column("remarks", look="wrap"),
]


def section(view: View) -> list[Block]:
    """Return the section of the groups that stand beside published rates, nothing without a comparison."""
    entries = view.document.get("published") or []
    if not entries:
        return []
    _ = view.wording
    blocks: list[Block] = [
        Heading(2, _("title.published-rates"), "published-rates"),
        Paragraph(_("published.rule"), "soft"),
    ]
    reasons = []
    for entry in entries:
        title = clean(entry["title"])
        if entry["reason"]:
            reasons.append(Item(title, _.tell(entry["reason"])))
        else:
            label = _.about(_("title.published-rates"), title)
            links = [{"source": pair["link"]} for pair in entry["pairs"]]
            blocks += [Heading(3, title), _table(entry["pairs"], _)._replace(label=label), sources(links, _)]
    return [*blocks, *([Items(reasons)] if reasons else [])]


def _table(pairs: Sequence[Beside], wording: Wording) -> Table:
    rows = [
        {
            "published_by": f"{clean(pair['source'])}, {pair['date']}",
            "gpus_there": pair["gpus"],
            "tokens_there": pair["tokens_per_s"],
            "gpus_here": pair["gpus_here"],
            "tokens_here": pair["tokens_per_s_here"],
            "quotient": pair["ratio"],
            "remarks": _remarks(pair, wording),
        }
        for pair in pairs
    ]
    return Table("", COLUMNS, rows)


def _remarks(pair: Beside, wording: Wording) -> str:
    if pair["differs"]:
        return wording("published.differs", differs=pair["differs"])
    return wording.join(map(wording.tell, pair["remarks"]), "list")


def lines(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what the terminal shows: the rates that compare, and why there are none."""
    texts = []
    for entry in entries:
        comparable = [ENGLISH.tell(line(pair)) for pair in entry["pairs"] if pair["ratio"]]
        reason = ENGLISH.tell(entry["reason"] or ENGLISH("published.none-compares"))
        texts += [f"{clean(entry['title'])}: {text}" for text in comparable or [reason]]
    return texts
