# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The index of all campaigns as a page, and named campaigns side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from ansible.module_utils.scalebook import hardware
from ansible.module_utils.scalebook.judge.comparison import Comparison
from ansible.module_utils.scalebook.pages import cells, html, html_page, markdown, svg, terminal
from ansible.module_utils.scalebook.pages.bar_chart import Bar, bar_chart
from ansible.module_utils.scalebook.pages.blocks import (
    Block,
    Charts,
    Column,
    Fold,
    Heading,
    Item,
    Items,
    Paragraph,
    Table,
    Tag,
    titled,
)
from ansible.module_utils.scalebook.pages.numbers import quotient
from ansible.module_utils.scalebook.pages.sparkline import Spot, sparkline
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.report import comparison
from ansible.module_utils.scalebook.report.index import (
    MOST_COMPARED,
    NOT_RECORDED,
    Entry,
    Index,
    Place,
    Point,
    Rates,
    Reports,
    Series,
    comparisons,
)
from ansible.module_utils.scalebook.workload import Workloads

SCRIPTS = (*html_page.SCRIPTS, "index.js")
FILTERS = ("workloads", "hardware")
"""What index.js finds rows by."""
FILTERS_OF_CAMPAIGNS = (*FILTERS, "place")
MOST_SHOWN = 40
"""Campaigns that are shown before a click; the others are folded, so that cases stay within reach."""


def files(index: Index, reports: Reports, templates: str, language: str = "en") -> dict[str, str]:
    """Return file name -> text of index.html, in that language, and index.json."""
    _ = Wording(language, for_people=True)
    workloads = sorted({name for each in index["campaigns"] for name in each["workloads"]})
    models = sorted({model for each in index["campaigns"] for model in each["models"]})
    choices = [
        ("workloads", _("index.workload"), [(name, name) for name in workloads]),
        ("hardware", _("index.hardware"), [(model, _named(model, _)) for model in models]),
    ]
    blocks = [*_charts(index["rates"], _), *_campaigns(index["campaigns"], _), *_cases(index["series"], _)]
    if index["unread"]:
        blocks += [Heading(2, _("index.unread"), "unread"), Items(list(map(_.tell, index["unread"])))]
    table = Table(comparison.columns_of("", "", _), (), _("index.side-by-side"), look="wide")
    frame = {
        "title": _("index.title"),
        "kicker": _("index.kicker"),
        "footer": _("index.unrounded"),
        "compared": html.parts([Paragraph(""), table], _),
        "pairs": html_page.markup(_pairs(reports, _)),
    }
    page = html.page(
        blocks, _head(index, _), _, templates, SCRIPTS, "index.html.j2", choices=choices, **frame
    )
    return {"index.html": page, "index.json": json.dumps(index, indent=1) + "\n"}


def side_by_side(
    pairs: Sequence[Comparison], declared: Workloads, templates: str, language: str = "en"
) -> dict[str, str]:
    """Return file name -> text of the page and the Markdown of some comparisons."""
    _ = Wording(language, for_people=True)
    sections = [
        comparison.section(each, declared, _, f"pair{number}") for number, each in enumerate(pairs, 1)
    ]
    blocks = [block for section in sections for block in section]
    title, rule = _("index.side-by-side"), Paragraph(_("compare.rule"), "soft")
    frame = {"title": title, "kicker": _("index.kicker"), "footer": _("compare.footer")}
    page = html.page(blocks, [rule], _, templates, **frame)
    return {"compare.html": page, "compare.md": markdown.document(title, [*blocks, rule], _)}


def on_terminal(compared: Comparison, declared: Workloads, wording: Wording) -> str:
    """Return a comparison for the terminal."""
    title, below = comparison.title(compared, wording), comparison.differing(compared, wording)
    if not compared["rows"]:
        return wording.about(title, below)
    return terminal.table(title, comparison.table(compared, declared, wording), [below], wording)


def _pairs(reports: Reports, wording: Wording) -> str:
    """Return what the script shows of each two campaigns that measured the same cases, as JSON."""
    columns = comparison.columns_of("", "", wording)
    pairs = {
        f"{now}-{before}": [
            comparison.differing(compared, wording),
            *(
                [cells.text_of(row, column, wording) for column in columns]
                for row in comparison.cells(compared, reports.declared, wording)
            ),
        ]
        for now, before, compared in comparisons(reports)
        if compared["rows"]
    }
    data = {"nothing": wording("compare.nothing"), "pairs": pairs}
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _head(index: Index, wording: Wording) -> list[Block]:
    _ = wording
    counts = [_.count(len(index["campaigns"]), "campaign"), _.count(len(index["series"]), "case")]
    slower = [each for each in index["series"] if each["points"][-1]["regression"]]
    text = _("index.slower", cases=_.count(len(slower), "case"))
    verdict = Tag(text, "stop") if slower else Item(_("index.no-regression"))
    return [
        Paragraph(_.join(counts), "lead"),
        *(Paragraph(text) for text in _faster(index["rates"], _)),
        Paragraph("", "verdict", parts=[verdict, " ", _("index.compared")]),
    ]


def _faster(rates: Sequence[Rates], wording: Wording) -> list[str]:
    """Return how the rates of each model of GPU compare with those of the one that measured most cases."""
    tables = [
        {each["model"]: each["rate"] for each in case["of"]} for case in rates if case["device"] == "gpu"
    ]
    models = sorted({model for table in tables for model in table})
    if not models:
        return []
    first = max(models, key=lambda model: sum(model in table for table in tables))
    sentences = []
    for model in models:
        ratios = [table[model] / table[first] for table in tables if {model, first} <= set(table)]
        if model != first and ratios:
            span = " – ".join(dict.fromkeys(map(quotient, (min(ratios), max(ratios)))))
            cases = wording.count(len(ratios), "case")
            sentences.append(wording("index.faster", model=model, other=first, ratio=span, cases=cases))
    return sentences


def _charts(rates: Sequence[Rates], wording: Wording) -> list[Block]:
    """Return the chart of the rates of GPUs, and that of processors."""
    charts = []
    for device in ("gpu", "cpu"):
        cases = [case for case in rates if case["device"] == device]
        models = sorted({each["model"] for case in cases for each in case["of"]})[: svg.SERIES]
        if cases:
            charts.append({"name": device, "svg": _chart(cases, models, device, wording)})
    if not charts:
        return []
    return [
        Heading(2, wording("index.rates"), "rates"),
        Paragraph(wording("index.share"), "soft"),
        Charts(charts),
    ]


def _chart(cases: Sequence[Rates], models: Sequence[str], device: str, wording: Wording) -> str:
    """Return rates as shares of the fastest of their case: their units and sizes differ."""
    _ = wording
    rows = []
    for case in cases:
        fastest = max(each["rate"] for each in case["of"])
        unit = _.per_second(case["unit"])
        bars = [
            Bar(
                models.index(each["model"]),
                each["rate"] / fastest,
                f"{_.number(each['rate'])} {unit}",
                _.about(each["model"], f"{_.number(each['rate'])} {unit}, {each['campaign']}"),
                *((each["low"] / fastest, each["high"] / fastest) if each["high"] > each["low"] else ()),
            )
            for each in case["of"]
            if each["model"] in models
        ]
        devices = f" {_.count(case['devices'], 'GPU' if device == 'gpu' else 'device')}"
        rows.append((_.tell(case["title"]) + (devices if case["devices"] > 1 else ""), bars))
    ticks = [(tick / 4, f"{25 * tick} %") for tick in range(5)]
    title, description = _("index.rates" if device == "gpu" else "index.best"), _("index.share")
    return bar_chart(rows, models, title, description, _("index.of-fastest"), f"rates-{device}", ticks)


def _campaigns(campaigns: Sequence[Entry], wording: Wording) -> list[Block]:
    """Return the table of all campaigns, the newest first."""
    _ = wording
    columns = [
        Column("day", _("head.date")),
        Column("campaign", look="wrap", href="report"),
        Column("what", _("index.what"), look="wrap", soft="others"),
        Column("kind", _("head.hardware"), look="tags"),
        Column("rate", _("index.best"), missing="not measured", look="main", soft="unit"),
        Column("mfu", kind="percent", missing="–"),
        Column("trust", _("index.trust"), kind="tags", look="tags", soft="why"),
    ]
    rows = [
        {
            **_row(each["campaign"], each["report"], each["models"], each["workloads"]),
            "place": place if place < MOST_COMPARED else "",
            "day": each["started"][:10] or _("report.not-recorded"),
            **_best(each, _),
            **_trust(each, _),
        }
        for place, each in enumerate(campaigns)
    ]
    how = [
        Paragraph(
            _("index.beside"),
            "soft",
            parts=[" ", Item('ansible-playbook index.yml -e "campaigns=NAME,NAME"', code=True)],
        )
    ]
    blocks = _section("campaigns", columns, rows[:MOST_SHOWN], _, *how, filters=FILTERS_OF_CAMPAIGNS)
    earlier = rows[MOST_SHOWN:]
    if earlier:
        title = _("index.earlier", campaigns=_.count(len(earlier), "campaign"))
        blocks.append(Fold(title, [Table(columns, earlier, title, filters=FILTERS_OF_CAMPAIGNS)]))
    return blocks


def _best(entry: Entry, wording: Wording) -> dict[str, Any]:
    """Return the cells of the best case of a campaign; other workloads are counted."""
    _ = wording
    best = entry["best"]
    if not best:
        kind = hardware.kinds_in_words(entry["hardware"], _) or _("report.not-recorded")
        return {"what": "–", "kind": kind, "others": "", "rate": None, "unit": "", "mfu": None}
    first = best[0]
    values = [
        " ".join(filter(None, [_.tell(first["title"]), first["size"]])),
        first["dtype"],
        first["compiler"],
        _("index.batch", size=first["bsz"]),
    ]
    return {
        "what": _.join(values),
        "kind": _place(first, _),
        "others": _("index.others", others=_.count(len(best) - 1, "workload")) if best[1:] else "",
        "rate": _.number(first["rate"]),
        "unit": _.per_second(first["unit"]),
        "mfu": first["mfu"],
    }


def _trust(entry: Entry, wording: Wording) -> dict[str, Any]:
    """Return the cells of how far the rows of a campaign can be trusted, with its regressions."""
    _ = wording
    level = entry["trust"]["level"]
    tags = [Tag(_(f"trust.{level}"), level)] if level != "sound" else []
    if entry["regressions"]:
        tags.append(Tag(_("index.slower", cases=_.count(entry["regressions"], "case")), "stop"))
    # That the hardware is not recorded stands beside it.
    reasons = [each for each in entry["trust"]["reasons"] if each["code"] != "trust.hardware"]
    return {"trust": tags or _("trust.sound"), "why": _.join(map(_.tell, reasons[:1]))}


def _cases(series: Sequence[Series], wording: Wording) -> list[Block]:
    """Return the cases that are slower than before, and all cases by the model of their hardware, folded."""
    _ = wording
    slower = [each for each in series if each["points"][-1]["regression"]]
    blocks: list[Block] = []
    if slower:
        columns = _case_columns(slower, _)
        columns.insert(1, Column("kind", _("head.hardware"), look="tags wraps"))
        blocks += _section("regressions", columns, _lines(slower, _), _)
    # GPUs before processors, and what is not known last.
    models = {
        each["model"]: (each["model"] == NOT_RECORDED, not each["gpus"], each["model"]) for each in series
    }
    blocks += [Heading(2, _("index.cases"), "cases"), Paragraph(_("index.line"), "soft")]
    for model in sorted(models, key=lambda each: models[each]):
        own = [each for each in series if each["model"] == model]
        name, single = _named(model, _), _("index.once")
        # Apart, as the table of those with one measurement has no history.
        again = [each for each in own if each["points"][1:]]
        once = [each for each in own if not each["points"][1:]]
        tables = [
            Table(_case_columns(cases, _), _lines(cases, _), label, caption, filters=FILTERS)
            for cases, label, caption in ((again, name, ""), (once, _.about(name, single), single))
            if cases
        ]
        blocks.append(Fold(_.about(name, _.count(len(own), "case")), tables))
    return blocks


def _case_columns(series: Sequence[Series], wording: Wording) -> list[Column]:
    _ = wording
    history = [
        Column("drawn", missing="not measured"),
        Column("ratio", _("index.gain"), "gain", "–"),
        Column("verdict", kind="tags"),
    ]
    return [
        Column("case", look="wrap"),
        *([Column("link")] if any(_link(each, _) for each in series) else []),
        Column("median", _("index.latest"), "rate", "not measured", look="main", soft="unit"),
        *(history if any(len(each["points"]) > 1 for each in series) else []),
        Column("campaign", _("index.latest-campaign"), look="wrap", href="report"),
    ]


def _lines(series: Sequence[Series], wording: Wording) -> list[dict[str, Any]]:
    _ = wording
    return [
        {
            **_row(last["campaign"], last["report"], [each["model"]], [each["workload"]]),
            "case": _.tell(each["title"]),
            "kind": _place(each, _),
            "link": _link(each, _) or "–",
            "drawn": over_time(each["points"], _) if each["points"][1:] else "–",
            "median": last["median"] or None,
            "unit": _.per_second(each["unit"]) if last["median"] else "",
            "ratio": last["ratio"] or None,
            "verdict": [Tag(_("index.regression"), "stop")]
            if last["regression"]
            else (comparison.verdict(last, _) if last["ratio"] else "–"),
        }
        for each in series
        for last in each["points"][-1:]
    ]


def _row(campaign: str, report: str, models: Sequence[str], workloads: Sequence[str]) -> dict[str, Any]:
    """Return the cells of all tables, and what FILTERS find."""
    return {
        "campaign": campaign,
        "report": quote(report, errors="surrogateescape"),  # the bytes of a name that is not UTF-8
        "hardware": "|".join(models),
        "workloads": "|".join(workloads),
    }


def _section(
    name: str,
    columns: Sequence[Column],
    lines: Sequence[Mapping[str, Any]],
    wording: Wording,
    *about: Block,
    filters: Sequence[str] = FILTERS,
) -> list[Block]:
    return titled(wording(f"index.{name}"), name, Table(columns, lines, filters=filters), *about)


def _place(place: Place, wording: Wording) -> str:
    """Return such as `4 × NVIDIA H200, NV18`, and that nodes share machines."""
    if place["model"] == NOT_RECORDED:
        return wording("report.not-recorded")
    count = f"{place['gpus']} × " if place["gpus"] else ""
    return wording.join([f"{count}{place['model']}", _link(place, wording)])


def hardware_of(line: Series, wording: Wording) -> str:
    """Return the kind of hardware of a case over time, and that its nodes share machines."""
    kind = hardware.kinds_in_words(line["hardware"], wording) or wording("report.not-recorded")
    return wording.join(filter(None, [kind, hardware.shared(line, wording)]), "list")


def _link(place: Place, wording: Wording) -> str:
    return wording.join([place["link"], hardware.shared(place, wording)], "list")


def _named(kind: str, wording: Wording) -> str:
    return wording("report.not-recorded") if kind == NOT_RECORDED else kind


def over_time(points: Sequence[Point], wording: Wording) -> str | None:
    """Return the rates from the oldest to the newest as a line with its regressions; None without one."""
    spots = [Spot(point["median"], point["regression"]) for point in points if point["median"]]
    if not spots:
        return None
    slower = sum(spot.marked for spot in spots)
    line: str = sparkline(spots, wording("index.drawn", count=len(points), slower=slower))
    return line
