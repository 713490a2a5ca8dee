# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The section that compares a campaign with published results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ansible.module_utils.scalebook.pages.blocks import Block, Column, Heading, Item, Items, Paragraph, Table
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.report.view import View
from ansible.module_utils.scalebook.text import clean


def compared(view: View) -> list[Block]:
    """Return the section of the groups to compare, each with its results or why there are none."""
    if not view.document["compare"]:
        return []
    _ = view.wording
    blocks: list[Block] = [Heading(2, _("title.published"), "compare")]
    reasons: dict[str, list[str]] = {}
    for entry in view.document["compare"]:
        if entry["rows"]:
            blocks += _group(view, entry)
        else:
            reasons.setdefault(_.tell(entry["why"]), []).append(clean(entry["title"]))
    items = [Item(_.join(titles, "list"), _begun(why)) for why, titles in reasons.items()]
    return [*blocks, *([Items(items)] if items else [])]


def _group(view: View, entry: Mapping[str, Any]) -> list[Block]:
    _ = view.wording
    title, theirs = clean(entry["title"]), name_of(entry)
    blocks: list[Block] = [Heading(3, title, detail=theirs)]
    why = view.wording.tell(entry["why"])
    blocks += [
        Paragraph(why + _("join.stop"), only="md"),
        Paragraph(_begun(why) + _("join.stop"), "soft", only="html"),
    ]
    blocks += warning(view.wording.tell(entry.get("warning") or ""), view.wording)
    label = _("report.compared", group=title, published=theirs)
    return [*blocks, _table(view, entry)._replace(label=label), sources(entry["rows"], view.wording)]


def _begun(text: str) -> str:
    """Return a text as the beginning of a sentence."""
    return text[:1].upper() + text[1:]


def warning(text: str, wording: Wording) -> list[Block]:
    """Return what has to be known of a published table, nothing where that is nothing."""
    if not text:
        return []
    in_markdown = Paragraph(text + wording("join.stop"), only="md", lead=wording("report.warning"))
    return [in_markdown, Paragraph(_begun(text) + wording("join.stop"), "warning", only="html")]


def _table(view: View, entry: Mapping[str, Any]) -> Table:
    """Return the pairs of results; a page leaves out rates that cannot be compared."""
    _ = view.wording
    rates = "" if entry["comparable"] else "md"
    columns = [
        Column("label"),
        Column("devices", kind="count"),
        Column("rate", kind="rate", only=rates),
        Column("published_rate", kind="rate", missing="–", only=rates),
        Column("quotient", kind="ratio", missing="–", only=rates),
        Column("speedup", kind="speedup", look="main"),
        Column("published_speedup", kind="speedup", missing="–"),
        Column("efficiency", kind="percent"),
        Column("published_efficiency", kind="percent", missing="–"),
        Column("published_label"),
    ]
    rows = [
        {
            **pair,
            "label": clean(pair["label"]),
            "quotient": _quotient(pair["rate"], pair["published_rate"]),
            "published_label": pair["published_label"] or "–",
        }
        for pair in entry["rows"]
    ]
    return Table("", columns, rows)


def _quotient(ours: float | None, theirs: float | None) -> float | None:
    return ours / theirs if ours and theirs else None


def name_of(entry: Mapping[str, Any]) -> str:
    """Return the name of a published table: `TensorFlow 2.3.0 bert-base fp32 XLA b64`."""
    names = [
        entry["framework"],
        entry["model"],
        entry["dtype"],
        "XLA" if entry["xla"] else "",
        f"b{entry['bsz']}",
    ]
    return " ".join(filter(None, names)) + (f" ({entry['variant']})" if entry["variant"] else "")


def sources(pairs: Iterable[Mapping[str, Any]], wording: Wording) -> Paragraph:
    """Return where results are published: `FILE:L1`, `FILE:L2` as `FILE, lines 1, 2`, others as they are."""
    lines: dict[str, list[str]] = {}
    for name in (row["source"] for row in pairs if row["source"]):
        file, _, line = name.rpartition(":L")
        lines.setdefault(file or name, []).append(line if file else "")
    text = "; ".join(
        wording("report.lines-of", file=file, lines=", ".join(numbers)) if any(numbers) else file
        for file, numbers in lines.items()
    )
    return Paragraph(wording("report.published", sources=text), "soft wraps")
