# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The document -> its charts as SVG: settings ranked, efficiency, where a step goes, and the courses of runs.

A label of a chart is what differs within it; the title says what its groups share that others have not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from ansible.module_utils.scalebook.contracts import BASELINE, Results, Row, Run
from ansible.module_utils.scalebook.grouping import grouped
from ansible.module_utils.scalebook.judge import flags, headings, weak_scaling
from ansible.module_utils.scalebook.pages import svg
from ansible.module_utils.scalebook.pages.bar_chart import Bar, bar_chart, stacked_chart, ticks_to
from ansible.module_utils.scalebook.pages.catalogue import PERCENT
from ansible.module_utils.scalebook.pages.line_chart import Axes, line_chart
from ansible.module_utils.scalebook.pages.strip_chart import Strip, strip_chart
from ansible.module_utils.scalebook.pages.wording import ENGLISH, Wording
from ansible.module_utils.scalebook.report.view import noun_of
from ansible.module_utils.scalebook.text import clean

BARS, STRIPS = 16, 24
"""Bars and rows of strips on one chart."""
COMPUTING, WAITING, REST = 7, 0, 1
"""The colours of the parts of a step."""

Table = Mapping[str, Any]
Set = Sequence[Table]
"""Groups, or tables of strong scaling, that are on one chart."""


class _Drawer(NamedTuple):
    """The results, and how they are drawn."""

    document: Results
    rows: Mapping[str, Row]
    wording: Wording

    def rows_of(self, group: Table) -> list[Row]:
        """Return the rows of a group, or of a table of strong scaling, that have a result."""
        rows = [self.rows[each] if isinstance(each, str) else each for each in group["rows"]]
        return [row for row in rows if row["median"] is not None]

    def devices_of(self, group: Table) -> set[int]:
        return {row["devices"] for row in self.rows_of(group)}

    def labels(self, groups: Set) -> list[str]:
        """Return what tells each group of a chart apart, numbered where nothing does; '' of one alone."""
        tell = self.wording.tell
        telling_apart = headings.Differences(groups).telling_apart
        names = [tell(headings.named(telling_apart(group))) for group in groups]
        if len({group.get("global_batch") for group in groups}) > 1:
            batches = (self.wording("chart.global-batch", size=group["global_batch"]) for group in groups)
            names = [" ".join(filter(None, pair)) for pair in zip(names, batches, strict=True)]
        if len(groups) > 1:
            names = [name or tell(group["title"]) for name, group in zip(names, groups, strict=True)]
        return [
            f"{name} ({number})" if names.count(name) > 1 else name for number, name in enumerate(names, 1)
        ]

    def case(self, label: str, row: Row) -> str:
        """Return the label of a case of a group that has a label, or '' of one alone."""
        return self.wording.join([label, clean(row["label"])])

    def note(self, row: Row, field: str) -> str:
        """Return the text of a point: its value, the range of the runs and how many they are."""
        value, limits = _measured(row, field)
        share = field == "efficiency"
        range_text = " – ".join(self.wording.percent(each / 100) for each in limits or ()) if share else ""
        return self.wording(
            "chart.note",
            label=clean(row["label"]),
            value=self.wording.percent(value / 100) if share else self.wording.number(value),
            range=range_text or self.wording.between(limits, rates=True),
            good=row["good"],
            planned=row["planned"],
        )


def _measured(row: Row, field: str) -> tuple[float, list[float] | None]:
    """Return a value of a row as it is drawn and the range of its runs: `each` is the rate per device."""
    values: Mapping[str, Any] = row
    value, scale, limits = values["median"], 1.0, None
    if row["good"] > 1 and values["min"] is not None and values["max"] is not None:
        limits = [values["min"], values["max"]]
    if field == "each":
        scale = 1 / row["devices"]
    elif field == "efficiency":
        value, limits, scale = row["speedup"], row["speedup_range"], 100 / row["devices"]
    elif field == "latency_ms":
        # The slowest run has the longest steps.
        limits = limits and [row["latency_ms"] * value / rate for rate in reversed(limits)]
        value = row["latency_ms"]
    return value * scale, limits and [limit * scale for limit in limits]


def charts(document: Results, wording: Wording = ENGLISH) -> list[dict[str, str]]:
    """Return `{"name", "kind", "title", "svg"}` of each chart, by kind in the order of KINDS.

    The name of the first of a kind is the kind, of others it has a number: `ranked`, `ranked_2`.
    """
    rows = {row["case"]: row for row in document["rows"]}
    drawer = _Drawer(document, rows, wording)
    pictures: list[dict[str, str]] = []
    for kind, (sets, draw) in KINDS.items():
        chosen = [groups for groups in sets(drawer) if groups]
        for index, (groups, title) in enumerate(zip(chosen, _titles(drawer, kind, chosen), strict=True), 1):
            name = kind if index == 1 else f"{kind}_{index}"
            drawing = draw(drawer, groups, title, name)
            pictures.append({"name": name, "kind": kind, "title": title, "svg": drawing})
    return pictures


def _titles(drawer: _Drawer, kind: str, sets: Sequence[Set]) -> list[str]:
    """Return the titles of the charts of a kind, which say what is on them where there are others."""
    _ = drawer.wording
    title = _(f"chart.{kind}", device=_.name("noun", noun_of(drawer.document["groups"])))
    every = [*drawer.document["groups"], *(group for groups in sets for group in groups)]
    names = [_.tell(headings.named(headings.shared(groups, every))) for groups in sets]
    if len(sets) > 1:
        names = [name or _workloads(groups, _) for name, groups in zip(names, sets, strict=True)]
    titles, first, count = [], 1, sum(map(len, sets))
    for groups, name in zip(sets, names, strict=True):
        last = first + len(groups) - 1
        if names.count(name) > 1 or (len(sets) > 1 and not name):
            name = _.join([name, _("chart.part", first=first, last=last, count=count)])
        titles.append(_.about(title, name) if name else title)
        first = last + 1
    return titles


def _workloads(groups: Set, wording: Wording) -> str:
    """Return the workloads of groups, '' where it is one."""
    names = list(dict.fromkeys(clean(group["workload"]) for group in groups))
    return wording.join(names) if len(names) > 1 else ""


def _alike(groups: Iterable[Table], *fields: str) -> Iterator[list[Table]]:
    """Return groups that agree in `fields` together."""
    return iter(grouped(groups, lambda group: tuple(group[field] for field in fields)).values())


def _parted(groups: Set, most: int, fields: Sequence[str] = ("workload", "model", "dtype")) -> Iterator[Set]:
    """Return groups in sets of at most `most`, by the first of `fields` in which they differ."""
    if len(groups) <= most:
        yield groups
    elif fields:
        for part in _alike(groups, fields[0]):
            yield from _parted(part, most, fields[1:])
    else:
        yield from (groups[first : first + most] for first in range(0, len(groups), most))


# Settings ranked


def _ranked_sets(drawer: _Drawer) -> Iterator[Set]:
    """Return the groups of each workload and model that have several, then single ones of a family."""
    measured = [group for group in drawer.document["groups"] if drawer.rows_of(group)]
    rest: list[Table] = []
    for groups in _alike(measured, "unit", "workload", "model"):
        if len(groups) > 1:
            yield from _parted(groups, BARS)
        else:
            rest += groups
    for groups in _alike(rest, "unit", "family", "model"):
        yield from _parted(groups, BARS) if len(groups) > 1 else ()


def _ranked(drawer: _Drawer, groups: Set, title: str, key: str) -> str:
    """Return bars of the rate per device of each group, the fastest first.

    They are of the most devices that all groups were measured on, or of the most of each group.
    """
    _, noun = drawer.wording, noun_of(groups)
    common = set.intersection(*map(drawer.devices_of, groups))
    chosen = [
        max(
            (row for row in drawer.rows_of(group) if not common or row["devices"] == max(common)),
            key=lambda row: (row["devices"], row["median"] or 0),
        )
        for group in groups
    ]
    several = len({row["label"] for row in chosen}) > 1
    bars = []
    for label, row in zip(drawer.labels(groups), chosen, strict=True):
        value, limits = _measured(row, "each")
        bar = Bar(0, value, _.number(value), drawer.note(row, "each"), *(limits or ()))
        bars.append((drawer.case(label, row) if several else label, [bar]))
    bars.sort(key=lambda each: -each[1][0].value)
    ticks = [(tick, svg.short(tick)) for tick in ticks_to(max(bar.high or bar.value for _l, (bar,) in bars))]
    axis = _("chart.each", unit=_.name("unit", groups[0]["unit"]), device=_.name("noun", noun))
    axis += _("chart.on", devices=_.count(max(common), noun)) if common else ""
    return bar_chart(bars, [], title, _("chart.bars"), axis, key, ticks)


# Curves over the number of devices


def _scaling(field: str, tables: str = "groups") -> Callable[[_Drawer], Iterator[Set]]:
    """Return what finds the groups, or tables, with `field` for several numbers of devices."""

    def sets(drawer: _Drawer) -> Iterator[Set]:
        every: Sequence[Table] = drawer.document["strong" if tables == "strong" else "groups"]
        with_curve = [
            group for group in every if len({point["x"] for point in _points(drawer, group, field)}) > 1
        ]
        for groups in _alike(with_curve, "unit") if field == "median" else [with_curve]:
            yield from _parted(groups, svg.SERIES)

    return sets


def _curves(field: str, y: str, ideal: str = "") -> Callable[..., str]:
    """Return what draws `field` of the rows over the number of devices, a line for each group."""

    def draw(drawer: _Drawer, groups: Set, title: str, key: str) -> str:
        _ = drawer.wording
        axes = Axes(
            _(y, unit=_.name("unit", groups[0]["unit"])),
            _("head.GPUs" if noun_of(groups) == "GPU" else "head.devices"),
            _("chart.full" if ideal == "full" else "chart.linear"),
            PERCENT[_.language] if ideal == "full" else "",
            _("chart.log"),
            _("chart.aside"),
            _("chart.cut"),
            _("short.provisional"),
        )
        series = [
            {"label": label, "points": list(_points(drawer, group, field))}
            for label, group in zip(drawer.labels(groups), groups, strict=True)
        ]
        titles = "; ".join(_.tell(group["title"]) for group in groups)
        description = _("chart.curves", title=title, groups=titles)
        return line_chart(series, title, description, axes, key, ideal)

    return draw


def _points(drawer: _Drawer, group: Table, field: str) -> Iterator[dict[str, Any]]:
    """Return the points of a curve."""
    for row in drawer.rows_of(group):
        if cast(Table, row)[field] is not None:
            value, limits = _measured(row, field)
            low, high = limits or (None, None)
            hollow, note = row["status"] == "provisional", drawer.note(row, field)
            yield {"x": row["devices"], "y": value, "low": low, "high": high, "hollow": hollow, "note": note}


# Where a step goes


def _lost_sets(drawer: _Drawer) -> Iterator[Set]:
    return _by_rows(drawer.document["groups"], lambda group: len(_losses(drawer, group)), BARS)


def _by_rows(groups: Set, rows_of: Callable[[Table], int], most: int) -> Iterator[Set]:
    """Return groups that have rows to draw, in sets of about `most` rows together."""
    filled = [group for group in groups if rows_of(group)]
    rows = sum(map(rows_of, filled))
    return _parted(filled, max(1, len(filled) * most // max(rows, most)))


def _losses(drawer: _Drawer, group: Table) -> list[tuple[Row, float, float]]:
    """Return the usable cases of a group with the parts of a step: waiting, and exchange and rest."""
    rows = [row for row in drawer.rows_of(group) if flags.usable(row)]
    steps_of_one = next((row["steps"] for row in rows if row["label"] == BASELINE), None)
    parts = [
        (
            row,
            weak_scaling.longer_parts(row["steps"], steps_of_one) if row["steps"] and steps_of_one else None,
        )
        for row in rows
    ]
    return [(row, *lost_parts) for row, lost_parts in parts if lost_parts]


def _where_steps_go(drawer: _Drawer, groups: Set, title: str, key: str) -> str:
    """Return a bar for each case: computing, waiting for the slowest device, and exchange and rest."""
    _ = drawer.wording
    names = {COMPUTING: _("chart.computing"), WAITING: _("head.waiting"), REST: _("head.rest")}
    bars = []
    for label, group in zip(drawer.labels(groups), groups, strict=True):
        for row, waiting, rest in _losses(drawer, group):
            parts_of_step = [1 - waiting - rest, waiting, rest]
            case = drawer.case(label, row)
            shares = (
                f"{name} {_.percent(part)}" for name, part in zip(names.values(), parts_of_step, strict=True)
            )
            note = _.about(case, _.join(shares))
            widths = [max(0.0, waiting), max(0.0, rest)]
            widths = [max(0.0, 1 - sum(widths)), *(part / max(1.0, sum(widths)) for part in widths)]
            parts = [Bar(index, part, "", note) for index, part in zip(names, widths, strict=True)]
            sign = "−" if rest < 0 else "+"
            bars.append((case, f"{_.percent(waiting)} {sign} {_.percent(abs(rest))}", parts))
    ticks = [(tick / 100, f"{tick}{PERCENT[_.language]}") for tick in range(0, 101, 25)]
    about = _("chart.losses-about")
    return stacked_chart(bars, names, title, about, _("chart.of-a-step"), key, ticks)


# The steps of every run


def _step_sets(drawer: _Drawer) -> Iterator[Set]:
    return _by_rows(drawer.document["groups"], lambda group: len(_courses(drawer, group)), STRIPS)


def _courses(drawer: _Drawer, group: Table) -> list[tuple[Row, list[Run]]]:
    """Return the cases of a group with those of their runs whose steps are known."""
    pairs = ((row, [run for run in row["runs"] if run.get("course")]) for row in drawer.rows_of(group))
    return [(row, runs) for row, runs in pairs if runs]


def _strips(drawer: _Drawer, groups: Set, title: str, key: str) -> str:
    """Return a strip for each run of each case."""
    _ = drawer.wording
    rows = []
    for label, group in zip(drawer.labels(groups), groups, strict=True):
        for row, runs in _courses(drawer, group):
            case = drawer.case(label, row)
            every = [seconds for run in runs for seconds in run["course"]]
            rows.append((case, _milliseconds(every, _), [_strip(case, run, _) for run in runs]))
    about = _("chart.steps-about")
    return strip_chart(rows, title, about, _("chart.steps-note"), key)


def _strip(case: str, run: Run, wording: Wording) -> Strip:
    values = {"repeat": run["repeat"], "range": _milliseconds(run["course"], wording)}
    return Strip(run["course"], wording.join([case, wording("chart.strip", **values)]))


def _milliseconds(seconds: Sequence[float], wording: Wording) -> str:
    low, high = (wording.milliseconds(each) for each in (min(seconds), max(seconds)))
    return f"{low} – {high} {wording('chart.ms')}"


KINDS: Mapping[str, tuple[Callable[[_Drawer], Iterable[Set]], Callable[..., str]]] = {
    "ranked": (_ranked_sets, _ranked),
    "efficiency": (_scaling("efficiency"), _curves("efficiency", "chart.percent", "full")),
    "losses": (_lost_sets, _where_steps_go),
    "throughput": (_scaling("median"), _curves("median", "chart.median", "own")),
    "strong": (_scaling("efficiency", "strong"), _curves("efficiency", "chart.percent", "full")),
    "latency": (_scaling("latency_ms"), _curves("latency_ms", "chart.ms")),
    "steps": (_step_sets, _strips),
}
"""Each kind with what finds the groups of its charts, and what draws one."""
