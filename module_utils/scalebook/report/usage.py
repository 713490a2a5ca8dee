# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The sections of what devices did: what holds cases back, how busy the nodes were, and where a step goes.

Behind them are the arithmetic, what workloads report themselves, and the course of single runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import BASELINE, Results, StepTimes, Usage
from ansible.module_utils.scalebook.grouping import grouped
from ansible.module_utils.scalebook.judge import weak_scaling
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
    sheet_only,
    titled,
)
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.quantities import QUANTITIES, TABLE, Quantity
from ansible.module_utils.scalebook.report import timeline
from ansible.module_utils.scalebook.report.view import View
from ansible.module_utils.scalebook.text import clean


def section(view: View) -> list[Block]:
    """Return how busy the nodes were, a row for each case; it says so where nothing was recorded."""
    _ = view.wording
    title, lines = _("title.utilisation"), view.document["utilisation"]
    if not lines:
        return [Heading(2, title, "utilisation"), Paragraph(_("report.no-telemetry"), "soft")]
    cases: dict[str, dict[str, Usage]] = {}
    for line in lines:
        cases.setdefault(line["case"], {})[line["quantity"]] = line
    measured = [each for each in TABLE if any(each.name in own for own in cases.values())]
    measured = sorted((each for each in measured if each.name not in DERIVED), key=_of_host)
    columns = [*view.case_columns(), *(_column(_, each) for each in measured)]
    rows = [
        {
            **view.case_cells(view.rows[case]),
            **{each.name: own[each.name]["mean"] if each.name in own else None for each in measured},
            **{f"{each.name} of": _span(own.get(each.name), view) for each in measured},
        }
        for case, own in cases.items()
    ]
    table, about = Table(columns, rows, look="names"), Paragraph(_("report.utilisation"), "soft")
    return [*titled(title, "utilisation", table, about), *_judged(view)]


DIAGNOSES = 6
"""Diagnoses that are shown, those of the most devices first; the others are folded."""
DERIVED = ("gpu_samples_per_joule", "gpu_energy_per_million")
"""Quantities that say the joules per sample in other units; results.json has them."""


def _of_host(quantity: Quantity) -> bool:
    """Return whether a quantity is of the host: those of GPUs come first."""
    return not any(reading.column.startswith("gpu:") for reading in quantity.reads) and bool(quantity.reads)


def _column(wording: Wording, quantity: Quantity) -> Column:
    """Return the column of a quantity: its mean, and when pointed at the least and the most."""
    heading = wording.join([wording(quantity.code), quantity.unit])
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
        name_of, met = _(QUANTITIES[name].code), sum(bool(each["met"]) for each in own)
        parts.append(_("report.criterion-met", of=name_of, count=met, cases=len(own)))
    [criterion] = {own[0]["criterion"] for own in lines.values()}
    return [Paragraph(_("report.criterion", criterion=criterion, parts=_.join(parts)), "soft")]


def means(document: Results) -> Table:
    """Return the mean of each quantity, a row per case, for sheets."""
    columns = [Column(each.name, "", "usage", only="sheet", sheet=f"{each.name}_mean") for each in TABLE]
    rows: dict[str, dict[str, Any]] = {}
    for line in document["utilisation"]:
        rows.setdefault(line["case"], {"case": line["case"]})[line["quantity"]] = line["mean"]
    return Table(columns, list(rows.values()))


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


def courses(count: int, drawings: Sequence[Mapping[str, str]], wording: Wording) -> list[Block]:
    """Return the courses of runs, of which there are `count`: a drawing each, or the names of their files."""
    if not drawings:
        return []
    return [
        Heading(2, wording("title.timelines"), "timelines"),
        Paragraph(timeline.rule(count, wording), "soft"),
        Charts(drawings, only="html"),
        Items([Item(each["title"], f"{each['name']}.svg") for each in drawings], only="md"),
    ]


def step_times(view: View) -> list[Block]:
    """Return the section of step times; it says so where no log has a line for each step."""
    _ = view.wording
    title = _("title.steps")
    if not any(row["steps"] for row in view.document["rows"]):
        return [Heading(2, title, "steps"), Paragraph(_("report.no-steps"), "soft")]
    about = [_("report.steps"), *([_("report.waits")] if _waits(view) else [])]
    return titled(title, "steps", step_table(view), Paragraph(_.join(about, "sentences"), "soft"))


def step_table(view: View) -> Table:
    """Return the step times of all rows that have some."""
    rows = view.document["rows"]
    steps_of_one = {row["group"]: row["steps"] for row in rows if row["label"] == BASELINE}
    lines = [
        {**view.case_cells(row), **_step_cells(row["steps"], steps_of_one.get(row["group"]))}
        for row in rows
        if row["steps"]
    ]
    return Table(_step_columns(view), lines)


def _waits(view: View) -> bool:
    """Return whether what a step would take without communication is known of some case."""
    return any(row["steps"] and row["steps"]["slowest"] is not None for row in view.document["rows"])


def _step_columns(view: View) -> list[Column]:
    waits = "" if _waits(view) else "sheet"
    return [
        *view.case_columns(),
        Column("mean", kind="seconds", missing="–", look="main", sheet="step_mean_seconds"),
        Column("slowest", kind="seconds", missing="–", only=waits, sheet="step_slowest_seconds"),
        Column("waiting", kind="percent", missing="–", only=waits),
        Column("rest", kind="percent", missing="–", only=waits),
        Column("p50", kind="seconds", missing="–", sheet="step_p50_seconds"),
        Column("p95", kind="seconds", missing="–", sheet="step_p95_seconds"),
        Column("p99", kind="seconds", missing="–", sheet="step_p99_seconds"),
        Column("max", kind="seconds", missing="–"),
        Column("count", kind="count"),
    ]


def _step_cells(steps: StepTimes, of_one: StepTimes | None) -> dict[str, Any]:
    """Return the step times of a row, and where they are longer than those of 1n1g, `of_one`."""
    lost_parts = weak_scaling.longer_parts(steps, of_one) if of_one else None
    waiting, rest = lost_parts or (None, None)
    return {**steps, "waiting": waiting, "rest": rest}


UNITS = {"_per_second": "/s", "_mib": ", GiB"}
"""Ends of the names of metrics, and what people read."""
MIB_PER_GIB = 1024


def flops(view: View) -> list[Block]:
    """Return the section of the arithmetic per device, nothing where no workload declares it."""
    _ = view.wording
    if not view.document["mfu"]:
        return []
    return titled(_("title.mfu"), "mfu", arithmetic(view), Paragraph(_("report.flops"), "soft"))


def arithmetic(view: View) -> Table:
    """Return the table of the arithmetic per device."""
    _ = view.wording
    columns = [
        *view.case_columns(),
        Column("unit"),
        Column("flop", kind="giga", sheet="flop_per_sample"),
        Column("tflops", kind="digits", look="main", sheet="tflops_per_device"),
        Column("peak_tflops", kind="exact"),
        Column("mfu", kind="percent", look="main", sheet="mfu"),
        Column("peak_tflops", "", "exact", only="sheet", sheet="peak_tflops_per_device"),
        *sheet_only("peak_of"),
        Column("about"),
    ]
    rows = [
        {
            **entry,
            **view.case_cells(entry),
            "unit": _.name("unit", entry["unit"]),
            "peak_of": _.tell(entry["peak_of"]) if entry["peak_of"] else None,
            "about": _.tell(entry["peak_of"] or entry["reason"] or ""),
        }
        for entry in view.document["mfu"]
    ]
    return Table(columns, rows)


def reported(view: View) -> list[Block]:
    """Return a section for each workload that reports metrics itself."""
    _ = view.wording
    short = view.short_names
    # The table of the MFU has it, of the median rate.
    elsewhere = ["mfu"] if any(entry["mfu"] is not None for entry in view.document["mfu"]) else []
    about = _("report.medians")
    blocks: list[Block] = []
    for index, table in enumerate(view.document["self_reported"], 1):
        names = [name for name in table["columns"] if name not in elsewhere]
        columns = [Column(f"of {name}", _in_words(clean(name)), "digits") for name in names]
        rows = [
            {
                "case": " ".join(filter(None, [clean(row["label"]), short[row["case"]]])),
                **{f"of {name}": _metric(name, row["values"].get(name, "")) for name in names},
                "runs": row["runs"],
            }
            for row in table["rows"]
        ]
        title = _("title.reported", workload=clean(table["workload"]))
        columns = [Column("case"), *columns, Column("runs", kind="count")]
        blocks += [
            Heading(2, title, f"reported{index}"),
            Paragraph(about, "soft", only="html"),
            Table(columns, rows, title, look="names"),
            Paragraph(about, only="md"),
        ]
    return blocks


def _in_words(name: str) -> str:
    """Return what people call a metric of a workload: `peak_memory, GiB` for `peak_memory_mib`."""
    for end, unit in UNITS.items():
        name = name.removesuffix(end) + unit if name.endswith(end) else name
    return name


def _metric(name: str, value: str) -> float | str:
    """Return the value of a metric, as a number where it is one."""
    try:
        number = float(value)
    except ValueError:
        return clean(value)
    return number / MIB_PER_GIB if name.endswith("_mib") else number
