# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The sections of what holds cases back, of how busy the nodes were, and of the course of single runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.scalebook.contracts import Results, Usage, message
from ansible.module_utils.scalebook.grouping import grouped
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
)
from ansible.module_utils.scalebook.quantities import QUANTITIES, TABLE, Quantity
from ansible.module_utils.scalebook.report import timeline
from ansible.module_utils.scalebook.report.view import View


def section(view: View) -> list[Block]:
    """Return how busy the nodes were, a row for each case; it says so where nothing was recorded."""
    _ = view.wording
    title, lines = _("title.utilisation"), view.document["utilisation"]
    heading = Heading(2, title, "utilisation")
    if not lines:
        return [heading, Paragraph(_("report.no-telemetry"), "soft")]
    cases: dict[str, dict[str, Usage]] = {}
    for line in lines:
        cases.setdefault(line["case"], {})[line["quantity"]] = line
    measured = [each for each in TABLE if any(each.name in own for own in cases.values())]
    measured = sorted((each for each in measured if each.name not in DERIVED), key=_of_host)
    short, labels = view.short_names, {row["case"]: row["label"] for row in view.document["rows"]}
    columns = [
        *view.case_columns(),
        *(_column(view, each) for each in measured),
    ]
    rows = [
        {
            "group": short[case],
            "label": labels[case],
            **{each.name: own[each.name]["mean"] if each.name in own else None for each in measured},
            **{f"{each.name} of": _span(own.get(each.name), view) for each in measured},
        }
        for case, own in cases.items()
    ]
    table = Table("", columns, rows, title, look="names")
    return [heading, Paragraph(_("report.utilisation"), "soft"), table, *_judged(view)]


DIAGNOSES = 6
"""Diagnoses that are shown, those of the most devices first; the others are folded."""
DERIVED = ("gpu_samples_per_joule", "gpu_energy_per_million")
"""Quantities that say the joules per sample in other units; results.json has them."""


def _of_host(quantity: Quantity) -> bool:
    """Return whether a quantity is of the host: those of GPUs come first."""
    return not any(reading.column.startswith("gpu:") for reading in quantity.reads) and bool(quantity.reads)


def _column(view: View, quantity: Quantity) -> Column:
    """Return the column of a quantity: its mean, and when pointed at the least and the most."""
    _ = view.wording
    heading = _.join([_.tell(message(quantity.code)), quantity.unit])
    return Column(quantity.name, heading, "usage", "–", hint=f"{quantity.name} of")


def _span(line: Usage | None, view: View) -> str:
    """Return the least and the most busy node or device, and how many they were."""
    if line is None:
        return ""
    return view.wording("report.usage-span", least=line["min"], most=line["max"], count=line["of"])


def _judged(view: View) -> list[Block]:
    """Return how many cases meet the criterion of each resource that is judged."""
    _ = view.wording
    judged = [line for line in view.document["utilisation"] if line["met"] is not None]
    lines = grouped(judged, lambda line: line["quantity"])
    if not lines:
        return []
    parts = []
    for name, own in lines.items():
        name_of, met = _.tell(message(QUANTITIES[name].code)), sum(bool(each["met"]) for each in own)
        parts.append(_("report.criterion-met", of=name_of, count=met, cases=len(own)))
    [criterion] = {own[0]["criterion"] for own in lines.values()}
    return [Paragraph(_("report.criterion", criterion=criterion, parts=_.join(parts)), "soft")]


def means(document: Results) -> Table:
    """Return the mean of each quantity, a row per case, for sheets."""
    columns = [Column(each.name, "", "usage", only="sheet", sheet=f"{each.name}_mean") for each in TABLE]
    rows: dict[str, dict[str, Any]] = {}
    for line in document["utilisation"]:
        rows.setdefault(line["case"], {"case": line["case"]})[line["quantity"]] = line["mean"]
    return Table("", columns, list(rows.values()))


def bottlenecks(view: View) -> list[Block]:
    """Return what bounds the cases: a sentence for each diagnosis, with the figures of its largest case."""
    _ = view.wording
    alike = grouped(view.document["bottlenecks"], lambda entry: _without_numbers(entry["message"]))
    devices = {row["case"]: row["devices"] for row in view.document["rows"]}
    items = []
    order = sorted(alike.values(), key=lambda own: -max(devices[entry["case"]] for entry in own))
    for own in order:
        largest = max(own, key=lambda entry: devices[entry["case"]])
        text = _.tell(largest["message"])
        if len(own) > 1:
            text = _("report.figures-of", text=text, case=view.named([largest["case"]]))
        items.append(Item(text, view.named(entry["case"] for entry in own)))
    if not items:
        return []
    first, rest = items[:DIAGNOSES], items[DIAGNOSES:]
    more = [Fold(_("report.more-diagnoses", count=len(rest)), [Items(rest, "flags")])] if rest else []
    about = Paragraph(_("report.bottleneck"), "soft")
    return [Heading(2, _("title.bottleneck"), "bottlenecks"), Items(first, "flags"), *more, about]


def _without_numbers(value: Any) -> str:
    """Return what a message says without its figures, which differ from case to case."""
    if isinstance(value, Mapping):
        return json.dumps([value["code"], *map(_without_numbers, value["values"].values())])
    if isinstance(value, list):
        return json.dumps([_without_numbers(each) for each in value])
    return "" if isinstance(value, float) else str(value)


def courses(view: View) -> list[Block]:
    """Return the courses of runs: a drawing each, or the names of their files."""
    if not view.timelines:
        return []
    return [
        Heading(2, view.wording("title.timelines"), "timelines"),
        Paragraph(timeline.rule(view.document, view.wording), "soft"),
        Charts(view.timelines, only="html"),
        Items([Item(each["title"], f"{each['name']}.svg") for each in view.timelines], only="md"),
    ]
