# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The sections that compare a campaign with what others published: DLPerf, and of language models.

The last one has what is published that nothing of ours stands beside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.judge.language_models import Beside, line
from ansible.module_utils.scalebook.pages.blocks import (
    Block,
    Column,
    Fold,
    Heading,
    Item,
    Items,
    Paragraph,
    Table,
)
from ansible.module_utils.scalebook.pages.wording import ENGLISH, Wording
from ansible.module_utils.scalebook.published import PublishedRow
from ansible.module_utils.scalebook.text import clean


def compared(entries: Sequence[Mapping[str, Any]], wording: Wording) -> list[Block]:
    """Return the section of the groups to compare, each with its results or why there are none."""
    if not entries:
        return []
    _ = wording
    blocks: list[Block] = [Heading(2, _("title.published"), "compare")]
    reasons: dict[str, list[str]] = {}
    for entry in entries:
        if entry["rows"]:
            blocks += _group(entry, _)
        else:
            reasons.setdefault(_.tell(entry["why"]), []).append(_.tell(entry["title"]))
    items = [Item(_.join(titles, "list"), _begun(why)) for why, titles in reasons.items()]
    return [*blocks, *([Items(items)] if items else [])]


def _group(entry: Mapping[str, Any], wording: Wording) -> list[Block]:
    _ = wording
    title, theirs = _.tell(entry["title"]), name_of(entry)
    blocks: list[Block] = [Heading(3, title, detail=theirs)]
    why = _.tell(entry["why"])
    blocks += [
        Paragraph(why + _("join.stop"), only="md"),
        Paragraph(_begun(why) + _("join.stop"), "soft", only="html"),
    ]
    blocks += _warning(_.tell(entry.get("warning") or ""), _)
    label = _("report.compared", group=title, published=theirs)
    return [*blocks, _table(entry)._replace(label=label), _sources(entry["rows"], _)]


def _begun(text: str) -> str:
    """Return a text as the beginning of a sentence."""
    return text[:1].upper() + text[1:]


def _warning(text: str, wording: Wording) -> list[Block]:
    """Return what has to be known of a published table, nothing where that is nothing."""
    if not text:
        return []
    in_markdown = Paragraph(text + wording("join.stop"), only="md", lead=wording("report.warning"))
    return [in_markdown, Paragraph(_begun(text) + wording("join.stop"), "warning", only="html")]


def _table(entry: Mapping[str, Any]) -> Table:
    """Return the pairs of results; a page leaves out rates that cannot be compared."""
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
    return Table(columns, rows)


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


def _sources(pairs: Iterable[Mapping[str, Any]], wording: Wording) -> Paragraph:
    """Return where results are published: `FILE:L1`, `FILE:L2` as `FILE, lines 1, 2`, others as they are."""
    lines: dict[str, list[str]] = {}
    for name in (row["source"] for row in pairs if row["source"]):
        file, _, line = name.rpartition(":L")
        lines.setdefault(file or name, []).append(line if file else "")
    text = "; ".join(
        wording("report.lines-of", file=file, lines=", ".join(dict.fromkeys(numbers)))
        if any(numbers)
        else file
        for file, numbers in lines.items()
    )
    return Paragraph(wording("report.published", sources=text), "soft wraps")


RATES = [
    Column("published_by"),
    Column("gpus_there", kind="count"),
    Column("tokens_there", kind="rate"),
    Column("gpus_here", kind="count"),
    Column("tokens_here", kind="rate"),
    Column("quotient", kind="ratio", missing="–", look="main"),
    Column("remarks", look="wrap"),
]


def rates(entries: Sequence[Mapping[str, Any]], wording: Wording) -> list[Block]:
    """Return the section of the groups that stand beside published rates, nothing without a comparison."""
    if not entries:
        return []
    _ = wording
    blocks: list[Block] = [
        Heading(2, _("title.published-rates"), "published-rates"),
        Paragraph(_("published.rule"), "soft"),
    ]
    reasons = []
    for entry in entries:
        title = _.tell(entry["title"])
        if entry["reason"]:
            reasons.append(Item(title, _.tell(entry["reason"])))
        else:
            label = _.about(_("title.published-rates"), title)
            links = [{"source": pair["link"]} for pair in entry["pairs"]]
            table = _rates_table(entry["pairs"], _)._replace(label=label)
            blocks += [Heading(3, title), table, _sources(links, _)]
    return [*blocks, *([Items(reasons)] if reasons else [])]


def _rates_table(pairs: Sequence[Beside], wording: Wording) -> Table:
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
    return Table(RATES, rows)


def _remarks(pair: Beside, wording: Wording) -> str:
    if pair["differs"]:
        return wording("published.differs", differs=pair["differs"])
    return wording.join(map(wording.tell, pair["remarks"]), "list")


def rate_lines(entries: Sequence[Mapping[str, Any]], wording: Wording = ENGLISH) -> list[str]:
    """Return what the terminal shows: the rates that compare, and why there are none."""
    texts = []
    for entry in entries:
        comparable = [wording.tell(line(pair)) for pair in entry["pairs"] if pair["ratio"]]
        reason = wording.tell(entry["reason"] or wording("published.none-compares"))
        texts += [wording.about(wording.tell(entry["title"]), text) for text in comparable or [reason]]
    return texts


def only_published(tables: Sequence[Mapping[str, Any]], wording: Wording) -> list[Block]:
    """Return the section of published tables that nothing of ours stands beside, by family."""
    _ = wording
    if not tables:
        return []
    about = _("report.only-published")
    title = _("title.only-published")
    blocks: list[Block] = [Heading(2, title, "only-published"), Paragraph(about, "soft")]
    for family, count in counts(tables, _).items():
        mine = [table for table in tables if table["family"] == family]
        name = clean(family)
        warnings = dict.fromkeys(_.tell(table["warning"]) for table in mine if table["warning"])
        warnings_told = [part for each in warnings for part in _warning(each, _)]
        source = _sources([row for table in mine for row in table["rows"]], _)
        table = _only_table(mine, _)._replace(label=title + _("join.about") + name)
        summary = name + _("join.about") + count
        blocks += [Heading(3, summary, only="md"), Fold(summary, [*warnings_told, table, source])]
    return blocks


def counts(tables: Sequence[Mapping[str, Any]], wording: Wording) -> dict[str, str]:
    """Return how many results of each family are published only."""
    rows: dict[str, int] = {}
    for table in tables:
        rows[table["family"]] = rows.get(table["family"], 0) + len(table["rows"])
    return {family: wording.count(number, "published result") for family, number in rows.items()}


def _only_table(tables: Sequence[Mapping[str, Any]], wording: Wording) -> Table:
    """Return a line for each table and a column for each case; a cell is the rate, and the speedup."""
    order = {row["label"]: row["devices"] for table in tables for row in table["rows"]}
    labels = sorted(order, key=lambda label: (order[label], label))
    columns = [Column(f"at {label}", label, "count", "–") for label in labels]
    empty = dict.fromkeys(column.key for column in columns)
    lines = [
        {
            **empty,
            **{f"at {row['label']}": _only_cell(row, wording) for row in table["rows"]},
            "name": clean(name_of(table)),
        }
        for table in tables
    ]
    return Table([Column("name"), *columns], lines)


def _only_cell(row: PublishedRow, wording: Wording) -> str:
    rate = wording.number(row["rate"])
    return rate if row["devices"] == 1 else f"{rate} ({wording.speedup(row['speedup'])})"
