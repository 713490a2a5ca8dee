# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The table of results, what its flags mean, and the tables of groups for the terminal and for sheets."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import GROUP_FIELDS, Family, Group, Message, Row
from ansible.module_utils.scalebook.judge import flags, headings
from ansible.module_utils.scalebook.pages.blocks import (
    Block,
    Column,
    Item,
    Items,
    Paragraph,
    Table,
    Tag,
    sheet_only,
    titled,
)
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.report import first_screen, method
from ansible.module_utils.scalebook.report.view import (
    View,
    flag_sentence,
    kind_of_flag,
    limits,
    noun_of,
    spans,
    tags,
)
from ansible.module_utils.scalebook.text import clean

SENTENCES = 3
"""Sentences of a kind of flag that are shown."""
FILLED = ("tokens", "latency_ms", "mfu", "tflops")
"""Columns of the table of results that it has only where a row fills them."""


def weak(view: View) -> list[Block]:
    """Return all results in one table, what its flags mean, and the workloads of families side by side."""
    _ = view.wording
    blocks = titled(_("title.results"), "results", results(view))
    blocks += [Paragraph(text, "soft") for text in _notes(view)]
    blocks += explained(view, view.document["rows"])
    for index, family in enumerate(view.document["families"], 1):
        blocks += side_by_side(view, family, f"family{index}")
    return blocks


def results(view: View) -> Table:
    """Return the table of all rows."""
    _, rows = view.wording, view.document["rows"]
    shares, tflops = first_screen.shares(view), _tflops(view)
    lines = [
        {
            **row_cells(row, _),
            **view.case_cells(row),
            "id": view.anchors[row["case"]],
            "unit": _.per_second(row["unit"]),
            "latency_ms": row["latency_ms"],
            "tokens": row["tokens_per_second"] and row["tokens_per_second"] / row["devices"],
            "tflops": tflops.get(row["case"]),
            "spread": row["spread"],
            "mfu": shares[row["case"]][0],
            "peak": shares[row["case"]][1],
        }
        for row in rows
    ]
    return Table(_result_columns(view, lines), lines, quiet="unusable")


def _result_columns(view: View, lines: Sequence[Mapping[str, Any]]) -> list[Column]:
    """Return the columns of the table of all rows: those of every report, and those that a line fills."""
    _, groups = view.wording, view.document["groups"]
    units = {_.name("unit", group["unit"]) for group in groups}
    noun = noun_of(groups)
    device = _.name("noun", noun)
    unit = f"{min(units)}/s" if len(units) == 1 else _("head.rate")
    empty = {key for key in FILLED if not any(line[key] for line in lines)}
    columns = [
        *view.case_columns(),
        Column("devices", _(f"head.{noun}s"), "count", look="less"),
        *([] if len(units) == 1 else [Column("unit", look="less")]),
        Column("median", unit, "rate", "INCOMPLETE", look="less", hint="spans"),
        Column("each", _("report.per-device", device=device), "rate", "–", look="main"),
        Column("tokens", _("report.tokens-per-device", device=device), "rate", "–"),
        Column("latency_ms", kind="milliseconds", missing="–"),
        Column("speedup", kind="speedup", missing="–", look="less"),
        Column("efficiency", kind="percent", missing="–"),
        Column("mfu", "MFU", "percent", "–", look="less", hint="peak"),
        Column("tflops", kind="digits", missing="–", look="less"),
        Column("spread", kind="percent", missing="–", look="less"),
        Column("runs", kind="count", look="less"),
        Column("flags", kind="tags", look="tags"),
    ]
    return [column for column in columns if column.key not in empty]


def _tflops(view: View) -> dict[str, float | None]:
    """Return the TFLOP/s per device of each case where the MFU are shares of different peaks."""
    entries = [entry for entry in view.document["mfu"] if entry["mfu"] is not None]
    different = len({entry["peak_tflops"] for entry in entries}) > 1
    return {entry["case"]: entry["tflops"] for entry in entries} if different else {}


def _notes(view: View) -> list[str]:
    """Return what a label means, and of which peak the MFU is a share."""
    _, rows = view.wording, view.document["rows"]
    peaks = dict.fromkeys(peak for share, peak in first_screen.shares(view).values() if share and peak)
    row = max(rows, key=lambda each: (each["nodes"], each["gpus"]), default=None)
    if row is None:
        return []
    group = next(each for each in view.document["groups"] if each["id"] == row["group"])
    counts = [_.count(row["nodes"], "node"), _.count(row["gpus"], noun_of([group]))]
    notes = [_("report.label", label=clean(row["label"]), nodes=counts[0], devices=counts[1])]
    notes += [_("report.mfu-of", peaks=_.join(peaks, "list"))] if peaks else []
    return [_.join(notes, "sentences")]


def explained(view: View, rows: Sequence[Row], explained_codes: Container[str] = ()) -> list[Block]:
    """Return what the flags of rows mean, each kind once with its rows, the worst first.

    `explained_codes` are left out.
    """
    _ = view.wording
    kinds: dict[str, dict[str, str]] = {}
    for row in rows:
        for flag in row["flags"]:
            if flag["code"] not in explained_codes:
                kinds.setdefault(flag["code"], {}).setdefault(row["case"], flag_sentence(flag, _))
    items = []
    for code in sorted(kinds, key=lambda each: ("stop", "care", "note").index(flags.LEVELS[each])):
        sentences = list(dict.fromkeys(kinds[code].values()))
        # Notes say the same of every row but for the GPUs that they name.
        most = 1 if flags.LEVELS[code] == "note" else SENTENCES
        more = len(sentences) - most
        rest = [_("report.more-alike", count=more)] if more > 0 else []
        text = _.join([*sentences[:most], *rest], "list")
        items.append(Item(text, kind_of_flag(code, _), view.named(kinds[code]), f"flag-{code}"))
    return [Items(items, "flags")] if items else []


def group_table(view: View, group: Group) -> Table:
    """Return the table of a group: DLPerf's columns and names of columns for the terminal and for sheets."""
    return Table(_columns(view, group), [_cells(view, row) for row in view.rows_of(group)])


def _columns(view: View, group: Group) -> list[Column]:
    _ = view.wording
    late = "" if any(row["latency_ms"] for row in view.rows_of(group)) else "sheet"
    in_tokens = "" if any(row["tokens_per_second"] for row in view.rows_of(group)) else "sheet"
    return [
        *sheet_only("campaign unit case label"),
        *sheet_only(" ".join(field for field in GROUP_FIELDS if field != "settings"), "count"),
        Column("nodes", "node_num", "count", sheet="nodes"),
        *sheet_only("gpus", "count"),
        Column("devices", "gpu_num", "count", sheet="devices"),
        *sheet_only("status good planned", "count"),
        Column("median", _.per_second(group["unit"]), "rate", "INCOMPLETE", sheet="median"),
        *sheet_only("mean min max", "rate"),
        *sheet_only("spread", "percent"),
        Column("cv", "", "rate", only="sheet", sheet="cv_percent"),
        Column("latency_ms", kind="milliseconds", missing="–", only=late, sheet="latency_ms"),
        Column("tokens_per_second", kind="rate", missing="–", only=in_tokens, sheet="tokens_per_second"),
        Column("speedup", kind="speedup", sheet="speedup"),
        Column("efficiency", kind="percent", sheet="efficiency"),
        Column("runs", kind="count"),
        Column("spread", kind="percent"),
        *sheet_only("settings"),
        Column("interval", kind="rates", only="sheet", sheet="median_interval95"),
        Column("speedup_range", kind="speedups", only="sheet", sheet="speedup_range"),
        Column("speedup_interval", kind="speedups", only="sheet", sheet="speedup_interval95"),
        *sheet_only("average_speed median_speed", "rate"),
    ]


def _cells(view: View, row: Row) -> dict[str, Any]:
    settings = row["settings"] or {}
    return {
        **row,
        **(row["dlperf"] or {}),
        **row_cells(row, view.wording),
        "campaign": view.document["campaign"],
        "settings": " ".join(f"{name}={value}" for name, value in sorted(settings.items())),
    }


def row_cells(row: Row, wording: Wording) -> dict[str, Any]:
    """Return the cells that rows of weak and of strong scaling have."""
    return {
        **{key: row[key] for key in ("case", "nodes", "devices", "median", "speedup", "efficiency")},
        "label": clean(row["label"]),
        "each": None if row["median"] is None else row["median"] / row["devices"],
        "runs": f"{row['good']}/{row['planned']}",
        "flags": tags(row, wording),
        "spans": spans(row, wording),
        "unusable": not flags.usable(row),
        **limits(row),
    }


def strong(view: View) -> list[Block]:
    """Return the section of strong scaling: all its tables in one."""
    _ = view.wording
    # Where no 1n1g has the global batch there is nothing to divide by.
    tables = [table for table in view.document["strong"] if any(row["speedup"] for row in table["rows"])]
    if not tables:
        return []
    columns = [
        Column("title", look="wrap"),
        Column("label"),
        Column("devices", kind="count"),
        Column("bsz", kind="count"),
        Column("unit"),
        Column("median", _("head.rate"), "rate", look="main", hint="spans"),
        Column("speedup", kind="speedup"),
        Column("efficiency", kind="percent"),
        Column("runs", kind="count"),
        Column("flags", kind="tags", look="tags"),
    ]
    lines = [
        {**line, "title": _.tell(table["title"]), "unit": _.per_second(table["unit"])}
        for table in tables
        for line in _strong_lines(view, table)
    ]
    codes = {flag["code"] for row in view.document["rows"] for flag in row["flags"]}
    rows = [row for table in tables for row in table["rows"]]
    about = Paragraph(_("report.strong"), "soft")
    section = titled(_("title.strong"), "strong", Table(columns, lines), about)
    return [*section, *explained(view, rows, codes)]


def strong_table(view: View, table: Mapping[str, Any]) -> Table:
    """Return a table of strong scaling for the terminal and for sheets."""
    _ = view.wording
    columns = [
        Column("nodes", "node_num", "count"),
        Column("devices", "gpu_num", "count"),
        Column("bsz", "bsz", "count"),
        Column("median", _.per_second(table["unit"]), "rate"),
        Column("speedup", kind="speedup", sheet="strong_speedup"),
        Column("efficiency", kind="percent", sheet="strong_efficiency"),
        Column("runs", kind="count"),
    ]
    return Table(columns, _strong_lines(view, table))


def _strong_lines(view: View, table: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            **row_cells(row, view.wording),
            "bsz": str(row["bsz"]) + (f" × {row['accumulation']}" if row["accumulation"] != 1 else ""),
        }
        for row in table["rows"]
    ]


def side_by_side(view: View, family: Family, anchor: str) -> list[Block]:
    """Return the section of a family, nothing where no case was measured with two of its workloads."""
    if not has_compared(family):
        return []
    name = view.wording("title.family", family=clean(family["family"]))
    return titled(name, anchor, family_table(view, family))


def has_compared(family: Family) -> bool:
    """Return whether some line of a family has the results of two workloads."""
    workloads = [each["workload"] for each in family["columns"]]
    return any(
        len({name for name, cell in zip(workloads, line["cells"], strict=True) if cell}) > 1
        for line in family["lines"]
    )


def family_table(view: View, family: Family) -> Table:
    """Return the workloads of a family side by side."""
    _ = view.wording
    columns = [Column("label"), Column("title", only="md html"), Column("title", " ", only="txt")]
    for index, each in enumerate(family["columns"]):
        name, rate = _.tell(each["name"]), _.per_second(each["unit"])
        key = f"median{index}"
        columns += [
            Column(key, _.join([name, rate]), "rate", "INCOMPLETE", only="md"),
            Column(key, f"{name} {rate}", "rate", "INCOMPLETE", only="txt"),
            Column(key, rate, "rate", "INCOMPLETE", only="html", look="main", over=name),
            Column(f"speedup{index}", _("head.speedup"), "speedup", over=name),
            Column(f"efficiency{index}", _("head.efficiency"), "percent", over=name),
        ]
    return Table(columns, [_family_line(line, view.wording) for line in family["lines"]])


def _family_line(line: Mapping[str, Any], wording: Wording) -> dict[str, Any]:
    """Return a line of a family; precision, batch and numbers of its title stay in every language."""
    row: dict[str, Any] = {"label": clean(line["label"]), "title": wording.tell(line["title"])}
    for index, cell in enumerate(line["cells"]):
        for key in ("median", "speedup", "efficiency"):
            row[f"{key}{index}"] = cell[key] if cell else "–"
    return row


def largest_batches(entries: Sequence[Mapping[str, Any]], wording: Wording) -> list[Block]:
    """Return the section of the largest batch that each search found, nothing without a search."""
    _ = wording
    columns = [
        Column("title"),
        Column("points"),
        Column("largest", kind="count", look="main"),
        Column("failed", kind="count"),
        Column("searches", kind="count"),
        Column("note"),
    ]
    table, about = Table(columns, searches(entries, _)), Paragraph(_("report.largest"), "soft")
    return titled(_("title.largest"), "largest-batch", table, about) if entries else []


def searches(entries: Sequence[Mapping[str, Any]], wording: Wording) -> list[dict[str, Any]]:
    """Return the cells of each search."""
    return [
        {
            "title": wording.tell(entry["title"]),
            "points": clean(", ".join(entry["points"])),
            "largest": str(entry["largest"] or "–"),
            "failed": f"{entry['failed']} ({clean(entry['failed_at'])})" if entry["failed"] else "–",
            "searches": str(entry["runs"]),
            "note": wording.tell(entry["reason"] or ""),
        }
        for entry in entries
    ]


def earlier(view: View) -> list[Block]:
    """Return the section, nothing where there is no earlier campaign."""
    _ = view.wording
    compared: Mapping[str, Any] | None = view.document["baseline"]
    if not compared:
        return []
    title = _("title.baseline", name=clean(compared["name"]))
    about = [Paragraph(each, "warning") for each in warnings(compared, _)]
    only, rule = only_in(compared, _), Paragraph(method.baseline_rule(_), "soft")
    section = titled(title, "baseline", earlier_table(view), *about)
    return [*section, *([Items(only)] if only else []), rule]


def warnings(compared: Mapping[str, Any], wording: Wording) -> list[str]:
    """Return what to know before two campaigns are compared, and how many cases are slower."""
    _, other, count = wording, compared.get("other_hardware"), compared["regressions"]
    texts = [_("report.other-hardware", what=_.tell(other))] if other else []
    texts += [_.tell(compared["other_binding"])] if compared.get("other_binding") else []
    limit = _.percent(compared["limit"])
    return [*texts, *([_("report.regressions", count=count, limit=limit)] if count else [])]


def only_in(compared: Mapping[str, Any], wording: Wording) -> list[str]:
    """Return the cases that only one of two campaigns measured."""
    here, there = compared["only_here"], compared["only_there"]
    name = clean(compared["name"])
    return [
        *(wording("report.only-here", place=place(entry)) for entry in here),
        *(wording("report.only-there", name=name, place=place(entry)) for entry in there),
    ]


def earlier_table(view: View) -> Table:
    """Return the table of the cases that both campaigns have."""
    _ = view.wording
    rows = [_earlier_cells(view, entry) for entry in (view.document["baseline"] or {"rows": []})["rows"]]
    some = "md html" if any(row["interval"] for row in rows) else "sheet"
    columns = [
        *view.case_columns(),
        Column("now", kind="rate"),
        Column("before", kind="rate", sheet="baseline_median"),
        Column("ratio", kind="change", look="main", sheet="baseline_ratio"),
        Column("range", kind="changes", sheet="baseline_range"),
        Column("interval", kind="changes", only=some, sheet="baseline_interval95"),
        Column("margin", kind="margin"),
        Column("verdict", kind="tags", only="html txt", soft="why", sheet="baseline_verdict"),
        Column("judged", _("head.verdict"), only="md"),
    ]
    return Table(columns, rows)


def _earlier_cells(view: View, entry: Mapping[str, Any]) -> dict[str, Any]:
    _ = view.wording
    verdict, why = _.name("verdict", entry["verdict"]), view.wording.tell(entry["why"] or "")
    return {
        **entry,
        **view.case_cells(entry),
        "verdict": [Tag(verdict, "stop")] if entry["regression"] else verdict,
        "judged": _.about(verdict, why) if why else verdict,
        "why": why,
    }


def place(entry: Mapping[str, Any]) -> Message:
    """Return the name of a row that only one of two campaigns has."""
    fields = [field for field in GROUP_FIELDS if entry.get(field) is not None]
    return headings.named([entry["label"], *headings.words_of(entry, fields)])
