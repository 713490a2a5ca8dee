# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The table of results, what its flags mean, and the tables of groups for the terminal and for sheets."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import GROUP_FIELDS, Group, Row
from ansible.module_utils.scalebook.judge import flags
from ansible.module_utils.scalebook.pages.blocks import (
    Block,
    Column,
    Heading,
    Item,
    Items,
    Paragraph,
    Table,
    sheet_only,
)
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.report import first_screen, side_by_side
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


def weak(view: View) -> list[Block]:
    """Return all results in one table, what its flags mean, and the workloads of families side by side."""
    _ = view.wording
    title = _("title.results")
    blocks: list[Block] = [Heading(2, title, "results"), results(view)._replace(label=title)]
    blocks += [Paragraph(text, "soft") for text in _notes(view)]
    blocks += explained(view, view.document["rows"])
    for index, family in enumerate(view.document["families"], 1):
        blocks += side_by_side.section(view, family, f"family{index}")
    return blocks


def results(view: View) -> Table:
    """Return the table of all rows."""
    _, groups = view.wording, view.document["groups"]
    units = {_.name("unit", group["unit"]) for group in groups}
    rows = view.document["rows"]
    noun = noun_of(groups)
    shares = first_screen.shares(view)
    late = any(row["latency_ms"] for row in rows)
    each_token = _("report.tokens-per-device", device=_.name("noun", noun))
    tflops = _tflops(view)
    utilised = any(share for share, _peak in shares.values())
    unit = f"{min(units)}/s" if len(units) == 1 else _("head.rate")
    columns = [
        *view.case_columns(),
        Column("devices", _(f"head.{noun}s"), "count", look="less"),
        *([] if len(units) == 1 else [Column("unit", look="less")]),
        Column("median", unit, "rate", "INCOMPLETE", look="less", hint="spans"),
        Column("each", _("report.per-device", device=_.name("noun", noun)), "rate", "–", look="main"),
        *(
            [Column("tokens", each_token, "rate", "–")]
            if any(row["tokens_per_second"] for row in rows)
            else []
        ),
        *([Column("latency_ms", kind="milliseconds", missing="–")] if late else []),
        Column("speedup", kind="speedup", missing="–", look="less"),
        Column("efficiency", kind="percent", missing="–"),
        *([Column("mfu", "MFU", "percent", "–", look="less", hint="peak")] if utilised else []),
        *([Column("tflops", kind="digits", missing="–", look="less")] if tflops else []),
        Column("spread", kind="percent", missing="–", look="less"),
        Column("runs", kind="count", look="less"),
        Column("flags", kind="tags", look="tags"),
    ]
    short, anchors = view.short_names, view.anchors
    lines = [
        {
            **row_cells(row, _),
            "id": anchors[row["case"]],
            "group": short[row["case"]],
            "unit": f"{_.name('unit', row['unit'])}/s",
            "latency_ms": row["latency_ms"],
            "tokens": row["tokens_per_second"] and row["tokens_per_second"] / row["devices"],
            "tflops": tflops.get(row["case"]),
            "spread": row["spread"],
            "mfu": shares[row["case"]][0],
            "peak": shares[row["case"]][1],
        }
        for row in rows
    ]
    return Table("", columns, lines, quiet="unusable")


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
    return Table("", _columns(view, group), [_cells(view, row) for row in view.rows_of(group)])


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
        Column("median", f"{_.name('unit', group['unit'])}/s", "rate", "INCOMPLETE", sheet="median"),
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
        *view.limit_columns(),
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
