# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The report as one document (results.json), and the forms it is read in.

`build` makes the document: plain data, every figure unrounded.  `page` turns it into the strings the
templates print, `display` into text for the terminal, `sheet` into rows of a CSV, `charts` into SVG.
The same records always make the same document: it holds no time of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook import baseline, dlperf, figures, plot, published, scaling, stats, strong

SCHEMA = 1
SHOWN = 10  # lines of one kind in the terminal; the page has them all
WIDEST = 300  # characters of one of them

Document = dict[str, Any]

_HEADS = {"label": "case", "interval": "95 % interval", "margin": "counts from"}

SHEET = {
    "unit": "unit",
    "case": "case",
    "label": "label",
    **{field: field for field in ("framework", "model", "device", "dtype", "xla", "bsz", "accumulation")},
    **{field: field for field in ("nodes", "gpus", "devices", "status", "good", "planned")},
    **{field: field for field in ("median", "mean", "min", "max", "spread")},
    "cv": "cv_percent",
    "speedup": "speedup",
    "efficiency": "efficiency",
}


def build(
    plan: Mapping[str, Any],
    cases: Sequence[Mapping[str, Any]],
    runs: Iterable[Mapping[str, Any]],
    unreadable: Sequence[str] = (),
    provenance: Mapping[str, Any] | None = None,
    workloads: Mapping[str, Mapping[str, Any]] | None = None,
    name: str = "",
    table: Sequence[published.Row] | None = None,
    before: Mapping[str, Any] | None = None,
    damage: Mapping[tuple[str, str], Sequence[str]] | None = None,
    changes: Sequence[str] = (),
) -> Document:
    """Return the document of a campaign or an import.

    `plan` is plan.json ({} without one), `cases` its cases and those only records know, `runs` come
    from runs.digest.  `unreadable` are sentences about result files that are none.  `workloads` are
    the roles' declarations by framework.  `name` makes it an import of that name.  `table` is the
    published table to compare with, None for no comparison.  `before` is what to hold the rows against:
    `{"name", "rows", "limit"}`, see baseline.compare.  `damage` maps case and repeat to sentences about
    files of that run that are no longer what was reported, `changes` are sentences about all such files.
    """
    runs = list(runs)
    workloads = workloads or {}
    tables = scaling.tabulate(cases, runs, plan.get("runs") or ())
    rows = {row["case"]: row for row in tables["rows"]}
    for (case, repeat), sentences in (damage or {}).items():
        for sentence in sentences if case in rows else ():
            rows[case]["marks"].append(scaling.mark("changed-file", f"repeat {repeat}: {sentence}"))
    for row in tables["rows"]:
        hint = workloads.get(row["framework"], {}).get("slower")
        if hint and row["speedup"] is not None and row["devices"] > 1 and row["speedup"] < 1:
            row["marks"].append(scaling.mark("slower-than-one", f"slower than one device: {hint}"))
    for group in tables["groups"]:
        group["workload"] = str(workloads.get(group["framework"], {}).get("title") or "")
    compared = []
    for group in tables["groups"] if table is not None else ():
        names = workloads.get(group["framework"], {}).get("dlperf")
        compared += published.compare(group, [rows[case] for case in group["rows"]], table or [], names)
    return {
        "schema": SCHEMA,
        "kind": "import" if name else "campaign",
        "campaign": name or str(plan.get("campaign") or ""),
        "counts": {
            "cases": len(rows),
            "good": sum(row["good"] for row in rows.values()),
            "planned": sum(row["planned"] for row in rows.values()),
        },
        "started": min((run["started"] for run in runs if run["started"]), default=None),
        **tables,
        "strong": strong.tabulate(tables["rows"]),
        "figures": figures.tabulate(tables["rows"]),
        "baseline": {
            "name": before["name"],
            **baseline.compare(tables["rows"], before["rows"], before["limit"]),
        }
        if before
        else None,
        "skipped": [
            {
                "case": entry["case"].get("name"),
                "label": entry["case"].get("label"),
                "reason": entry["reason"],
            }
            for entry in plan.get("skipped") or ()
        ],
        "notes": [*changes, *_notes(tables["groups"], tables["rows"], unreadable)],
        "compare": compared,
        "result_files": dlperf.result_files(tables["groups"], name),
        "plan": dict(plan),
        "provenance": dict(provenance) if provenance else None,
    }


def results(document: Document) -> dict[str, dict[str, dict[str, dlperf.Figures]]]:
    """Return file name -> content of every DLPerf result file of the report."""
    rows = {row["case"]: row for row in document["rows"]}
    return {
        file: dlperf.result(rows[case] for index in indices for case in document["groups"][index]["rows"])
        for file, indices in document["result_files"].items()
    }


def _notes(
    groups: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]], unreadable: Sequence[str]
) -> list[str]:
    """Return the sentences that belong to the whole report."""
    notes = [f"not counted: {sentence}" for sentence in unreadable]
    for group in groups:
        own = [row for row in rows if row["group"] == group["id"]]
        if any(row["good"] and row["speedup"] is None for row in own):
            notes.append(
                f"{group['title']}: without a good run of 1n1g there is no speedup; "
                "the result JSON holds null (DLPerf writes 1.0)"
            )
    said: Counter[str] = Counter()
    where: dict[str, list[str]] = {}
    for row in rows:
        for run in row["runs"]:
            for note in run["notes"]:
                said[note] += 1
                where.setdefault(note, []).append(f"{row['label']} repeat {run['repeat']}")
    for note, count in said.items():
        places = ", ".join(where[note][:3]) + (f" and {count - 3} more runs" if count > 3 else "")
        notes.append(f"{note} ({places})")
    return notes


def clean(text: Any) -> str:
    """Return `text` on one line without control characters: log lines reach terminals and tables."""
    return " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())


def percent(value: float | None, digits: int = 1) -> str:
    """Return a fraction as per cent, 'n/a' for None."""
    # Rounded first: -0.0004 would print as -0.0.
    return "n/a" if value is None else f"{round(100 * value, digits) + 0.0:.{digits}f} %"


def _between(pair: Sequence[float] | None, missing: str = "n/a") -> str:
    return missing if pair is None else f"{pair[0]:.2f} – {pair[1]:.2f}"


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.1f}" if seconds < 10 else f"{1000 * seconds:.0f}"


def _line(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the printed cells of one row."""
    entry = row["dlperf"]
    steps = row["steps"]
    return {
        "case": row["case"],
        "label": clean(row["label"]),
        "node_num": str(row["nodes"]),
        "gpu_num": str(row["devices"]),
        "rate": dlperf.number(entry["median_speed"]) if entry else "INCOMPLETE",
        "speedup": dlperf.speedup_text(entry, row["label"]),
        "efficiency": percent(row["efficiency"]),
        "runs": f"{row['good']}/{row['planned']}",
        "spread": percent(row["spread"]),
        "cv": "n/a" if row["cv"] is None else f"{row['cv']:.2f} %",
        "interval": _between(row["interval"]),
        "speedup_interval": "–" if row["label"] == dlperf.BASELINE else _between(row["speedup_interval"]),
        "status": row["status"],
        "marks": [
            {"code": mark["code"], "short": _short(mark, row), "text": clean(mark["text"])}
            for mark in row["marks"]
        ],
        "steps": {key: _milliseconds(steps[key]) for key in ("p50", "p95", "p99", "max")}
        | {"count": steps["count"]}
        if steps
        else None,
        "each": [
            {
                "repeat": run["repeat"],
                "rate": dlperf.number(run["rate"]),
                "reading": clean(run["reading"]),
                "second": dlperf.number((run["second"] or {}).get("rate")),
                "differs": percent(run["differs"]),
                "drift": percent(run["drift"]),
                "outlier": run["repeat"] in row["outliers"],
                "steady": run["steady"] or "",
            }
            for run in row["runs"]
        ],
    }


def _short(mark: Mapping[str, str], row: Mapping[str, Any]) -> str:
    """Return the few letters of a mark that fit into a cell."""
    words = {
        "warm-up-not-over": "warm-up not over",
        "runs": f"{row['good']}/{row['planned']}",
        "incomplete": "INCOMPLETE",
        "superlinear": "above linear",
        "no-baseline": "no 1n1g",
        "readings-differ": "readings differ",
        "baseline-provisional": "baseline provisional",
    }
    return words.get(mark["code"], mark["code"].replace("-", " "))


def page(document: Document) -> dict[str, Any]:
    """Return everything the templates print, as strings and lists of them."""
    lines = {row["case"]: _line(row) for row in document["rows"]}
    raw = {row["case"]: row for row in document["rows"]}
    groups = []
    for group in document["groups"]:
        measured = [case for case in group["rows"] if raw[case]["good"]]
        top = max(measured, key=lambda case: (raw[case]["devices"], raw[case]["median"]), default=None)
        groups.append(
            {
                "id": group["id"],
                **{key: clean(group[key]) for key in ("title", "unit", "workload")},
                "rule": rule(group),
                "rows": [lines[case] for case in group["rows"]],
                "top": lines[top] if top else None,
            }
        )
    return {
        "title": clean(document["campaign"] or "measurements"),
        "kind": document["kind"],
        "counts": document["counts"],
        "started": document["started"],
        "groups": groups,
        "strong": [_strong(table) for table in document["strong"]],
        "figures": [_figures(table) for table in document["figures"]],
        "baseline": _against(document),
        "compare": [_compared(entry) for entry in document["compare"]],
        "uncounted": _uncounted(document),
        "skipped": [
            {**entry, "label": clean(entry["label"]), "reason": clean(entry["reason"])}
            for entry in document["skipped"]
        ],
        "notes": [clean(note) for note in document["notes"]],
        "provenance": provenance_rows(document["provenance"] or {}),
        "resamples": stats.RESAMPLES,
        "enough": scaling.ENOUGH,
    }


def _figures(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the printed cells of what a framework says itself."""
    return {
        "framework": clean(table["framework"]),
        "columns": [clean(name) for name in table["columns"]],
        "rows": [
            [
                clean(row["label"]),
                *(clean(row["values"].get(name, "")) for name in table["columns"]),
                str(row["runs"]),
            ]
            for row in table["rows"]
        ],
    }


def _strong(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the printed cells of a table of strong scaling."""
    return {
        "id": table["id"],
        "title": clean(table["title"]),
        "unit": clean(table["unit"]),
        "rows": [
            {
                "label": clean(row["label"]),
                "node_num": str(row["nodes"]),
                "gpu_num": str(row["devices"]),
                "bsz": str(row["bsz"]) + (f" × {row['accumulation']}" if row["accumulation"] != 1 else ""),
                "rate": dlperf.number(row["median"]),
                "speedup": _speedup(row["speedup"]),
                "efficiency": percent(row["efficiency"]),
                "runs": f"{row['good']}/{row['planned']}",
                "interval": _between(row["interval"]),
                "speedup_interval": "–"
                if row["label"] == dlperf.BASELINE
                else _between(row["speedup_interval"]),
                "marks": [
                    {"code": mark["code"], "short": _short(mark, row), "text": clean(mark["text"])}
                    for mark in row["marks"]
                ],
            }
            for row in table["rows"]
        ],
    }


def _against(document: Document) -> dict[str, Any] | None:
    """Return the printed cells of the comparison with an earlier campaign, None without one."""
    made = document["baseline"]
    if not made:
        return None
    short = {case: clean(group["short"]) for group in document["groups"] for case in group["rows"]}
    several = len(document["groups"]) > 1
    return {
        "name": clean(made["name"]),
        "limit": percent(made["limit"]),
        "regressions": made["regressions"],
        "rows": [
            {
                "label": clean(entry["label"]),
                "group": short[entry["case"]] if several else "",
                "now": dlperf.number(entry["now"]),
                "before": dlperf.number(entry["before"]),
                "ratio": "n/a" if entry["ratio"] is None else f"{entry['ratio']:.3f}",
                "interval": "n/a"
                if entry["interval"] is None
                else f"{entry['interval'][0]:.3f} – {entry['interval'][1]:.3f}",
                "margin": "n/a" if entry["margin"] is None else f"± {percent(entry['margin'])}",
                "verdict": entry["verdict"],
                "regression": entry["regression"],
                "why": clean(entry["why"] or ""),
            }
            for entry in made["rows"]
        ],
        "only_here": [_place(entry) for entry in made["only_here"]],
        "only_there": [_place(entry) for entry in made["only_there"]],
    }


def _place(entry: Mapping[str, Any]) -> str:
    words = [entry[key] for key in ("framework", "model", "dtype")] + ["XLA" if entry["xla"] else ""]
    return clean(" ".join(filter(None, [entry["label"], *map(str, words), f"b{entry['bsz']}"])))


def rule(group: Mapping[str, Any]) -> str:
    """Return how the throughput of `group` is measured, with its own step numbers."""
    if group.get("epoch_samples"):
        samples = group["epoch_samples"]
        return f"{group['unit']}/s = {samples} / seconds of the last epoch, without the evaluation after it"
    first, last = group["warmup"], group["warmup"] + group["window"]
    accumulation = f" × {group['accumulation']} accumulation steps" if group["accumulation"] != 1 else ""
    return (
        f"{group['unit']}/s = devices × {group['bsz']}{accumulation} × {group['window']} / "
        f"(time of step {last} − time of step {first})"
    )


def _uncounted(document: Document) -> list[dict[str, Any]]:
    """Return the runs that do not count, repeats of one case that say the same on one line.

    The last lines are those of the first of them.
    """
    short = {case: clean(group["short"]) for group in document["groups"] for case in group["rows"]}
    repeats: dict[tuple[str, ...], list[str]] = {}
    lines: dict[tuple[str, ...], list[str]] = {}
    for entry in document["uncounted"]:
        # With one group its name is in the heading already.
        group = short[entry["case"]] if len(document["groups"]) > 1 else ""
        said = clean(entry["reason"]), clean(entry["source"] or "")
        key = (entry["case"], clean(entry["label"]), group, entry["status"], *said)
        repeats.setdefault(key, []).append(str(entry["repeat"]))
        lines.setdefault(key, [clean(line) for line in entry["last_lines"]])
    names = ("case", "label", "group", "status", "reason", "source")
    return [
        {**dict(zip(names, key, strict=True)), "repeats": ", ".join(each), "last_lines": lines[key]}
        for key, each in repeats.items()
    ]


def _compared(entry: Mapping[str, Any]) -> dict[str, Any]:
    pairs = []
    for pair in entry["rows"]:
        ratio = pair["rate"] / pair["published_rate"] if pair["rate"] and pair["published_rate"] else None
        pairs.append(
            {
                "label": clean(pair["label"]),
                "devices": str(pair["devices"]),
                "rate": dlperf.number(pair["rate"]),
                "published_rate": dlperf.number(pair["published_rate"], "–"),
                "ratio": "–" if ratio is None else f"{ratio:.2f}",
                "speedup": _speedup(pair["speedup"]),
                "published_label": pair["published_label"] or "–",
                "published_speedup": _speedup(pair["published_speedup"], "–"),
                "efficiency": percent(pair["efficiency"]),
                "published_efficiency": "–"
                if pair["published_efficiency"] is None
                else percent(pair["published_efficiency"]),
            }
        )
    theirs = ""
    if entry["rows"]:
        words = [
            entry["framework"],
            entry["model"],
            entry["dtype"],
            "XLA" if entry["xla"] else "",
            f"b{entry['bsz']}",
        ]
        theirs = " ".join(filter(None, words)) + (f" ({entry['variant']})" if entry["variant"] else "")
    return {
        "title": clean(entry["title"]),
        "theirs": theirs,
        "comparable": entry["comparable"],
        "why": clean(entry["why"]),
        "warning": entry.get("warning", ""),
        "sources": _sources(pair["source"] for pair in entry["rows"] if pair["source"]),
        "rows": pairs,
    }


def _speedup(value: float | None, missing: str = "n/a") -> str:
    return "1" if value == 1 else dlperf.number(value, missing)


def _sources(names: Iterable[str]) -> str:
    """Return `FILE:L1`, `FILE:L2` as `FILE, lines 1, 2`."""
    lines: dict[str, list[str]] = {}
    for name in names:
        file, _, line = name.rpartition(":L")
        lines.setdefault(file or name, []).append(line)
    return "; ".join(f"{file}, lines {', '.join(numbers)}" for file, numbers in lines.items())


def provenance_rows(provenance: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return `{"what", "where", "value"}` rows; nodes that agree share one.

    `provenance` maps nodes to their facts, below `nodes` or at the top; anything else is the
    campaign's own.
    """
    nodes = provenance.get("nodes")
    if isinstance(nodes, Mapping):
        common = {key: value for key, value in provenance.items() if key != "nodes"}
    else:
        nodes = {key: value for key, value in provenance.items() if isinstance(value, Mapping)}
        common = {key: value for key, value in provenance.items() if key not in nodes}
    out = [{"what": what, "where": "", "value": value} for what, value in _flat(common)]
    facts: dict[str, dict[str, list[str]]] = {}
    for node, values in nodes.items():
        for what, value in _flat(values):
            facts.setdefault(what, {}).setdefault(value, []).append(clean(node))
    for what, values in facts.items():
        for value, where in values.items():
            everywhere = len(where) == len(nodes)
            place = "all nodes" if everywhere and len(nodes) > 1 else ", ".join(where)
            out.append({"what": what, "where": place, "value": value})
    return out


def _flat(value: Any, name: str = "") -> list[tuple[str, str]]:
    """Return (dotted name, text) of every leaf."""
    if isinstance(value, Mapping):
        return [
            leaf for key, each in value.items() for leaf in _flat(each, f"{name}.{key}" if name else str(key))
        ]
    if isinstance(value, (list, tuple)):
        return [(clean(name), ", ".join(clean(each) for each in value))]
    return [(clean(name), "" if value is None else clean(value))]


def charts(document: Document, standalone: bool = False) -> list[dict[str, str]]:
    """Return `{"name", "svg"}` of the throughput and speedup charts, at most plot.SERIES groups on each."""
    rows = {row["case"]: row for row in document["rows"]}
    groups = document["groups"]
    chunks = [groups[i : i + plot.SERIES] for i in range(0, len(groups), plot.SERIES)]
    out = []
    for index, chunk in enumerate(chunks, 1):
        part = f" ({index} of {len(chunks)})" if len(chunks) > 1 else ""
        suffix = f"_{index}" if len(chunks) > 1 else ""
        for name, title, field, bounds, y_label, ideal, unit in (
            ("throughput", "Throughput", "median", "interval", f"{chunk[0]['unit']}/s, median", "own", ""),
            ("speedup", "Speedup", "speedup", "speedup_interval", "over 1n1g", "common", " ×"),
        ):
            series = [
                {"label": clean(group["short"]), "points": _points(group, rows, field, bounds)}
                for group in chunk
            ]
            svg = plot.chart(
                series,
                title + part,
                f"{title} against number of devices, one line per group, with 95 % intervals: "
                + "; ".join(clean(group["title"]) for group in chunk)
                + ". The figures are in the tables.",
                y_label,
                f"{name}{index}",
                ideal=ideal,
                unit=unit,
                standalone=standalone,
            )
            if svg:
                out.append({"name": name + suffix, "svg": svg})
    return out + _strong_charts(document, standalone)


def _strong_charts(document: Document, standalone: bool) -> list[dict[str, str]]:
    """Return the charts of strong scaling, apart from the others: their speedups are of another kind."""
    tables = [table for table in document["strong"] if any(row["speedup"] for row in table["rows"])]
    out = []
    for index, first in enumerate(range(0, len(tables), plot.SERIES), 1):
        chunk = tables[first : first + plot.SERIES]
        series = []
        for table in chunk:
            rows = {row["case"]: row for row in table["rows"]}
            points = _points({"rows": list(rows)}, rows, "speedup", "speedup_interval")
            series.append({"label": clean(table["title"]), "points": points})
        svg = plot.chart(
            series,
            "Strong scaling" + (f" ({index})" if len(tables) > plot.SERIES else ""),
            "Speedup at a fixed global batch against number of devices: "
            + "; ".join(clean(table["title"]) for table in chunk)
            + ". The figures are in the tables.",
            "speedup over 1n1g, same global batch",
            f"strong{index}",
            ideal="common",
            unit=" ×",
            standalone=standalone,
        )
        if svg:
            out.append({"name": "strong" + (f"_{index}" if len(tables) > plot.SERIES else ""), "svg": svg})
    return out


def _points(
    group: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]], field: str, bounds: str
) -> list[dict[str, Any]]:
    points = []
    for case in group["rows"]:
        row = rows[case]
        if row[field] is None:
            continue
        low, high = row[bounds] or (None, None)
        points.append(
            {
                "x": row["devices"],
                "y": row[field],
                "low": low,
                "high": high,
                "hollow": row["status"] == "provisional",
                "note": f"{row['label']}: {dlperf.number(row[field])}, 95 % {_between(row[bounds])}, "
                f"{row['good']}/{row['planned']} runs",
            }
        )
    return points


def table(document: Document) -> str:
    """Return DLPerf's tables as aligned text, marks below each; strong scaling after weak."""
    shown = page(document)
    columns = ("node_num", "gpu_num", "rate", "speedup", "efficiency", "runs")
    blocks = [_text_table(group, (*columns, "spread")) for group in shown["groups"]]
    for each in shown["strong"]:
        strong_table = {**each, "title": f"Strong scaling: {each['title']}"}
        blocks.append(_text_table(strong_table, ("node_num", "gpu_num", "bsz", *columns[2:])))
    return "\n\n".join(blocks)


def _text_table(group: Mapping[str, Any], columns: Sequence[str]) -> str:
    head = [f"{group['unit']}/s" if column == "rate" else column for column in columns]
    marks = [f"  {row['label']}: {mark['text']}" for row in group["rows"] for mark in row["marks"]]
    rows = [[row[column] for column in columns] for row in group["rows"]]
    return "\n".join([group["title"], *_aligned(head, rows), *marks])


def _aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table, cells to the right and a rule below its head."""
    cells = [head, *rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(head))]
    lines = [
        " | ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells
    ]
    lines.insert(1, "-|-".join("-" * width for width in widths))
    return lines


def display(document: Document, report: str) -> str:
    """Return what the terminal shows at the end: tables, what did not count, and where the page is."""
    shown = page(document)
    blocks = [table(document) or "No case was measured."]
    blocks += _some(
        "Runs that did not count",
        [
            f"{u['group']} {u['label']} repeat {u['repeats']}: {u['status']}, {u['reason']}".strip()
            for u in shown["uncounted"]
        ],
    )
    blocks += _against_text(shown["baseline"])
    blocks += _some("Skipped cases", [f"{s['label']}: {s['reason']}" for s in shown["skipped"]])
    blocks += _some("Notes", shown["notes"])
    beside = []
    for entry in shown["compare"]:
        words = [entry["title"], f"beside {entry['theirs']}" if entry["rows"] else ""]
        beside.append(" ".join(filter(None, words)) + f": {entry['why']}")
        beside += [f"warning: {entry['warning']}"] if entry["warning"] else []
    blocks += _some("Beside DLPerf", beside)
    blocks.append(f"Report: {report}")
    return "\n\n".join(blocks)


def _against_text(made: Mapping[str, Any] | None) -> list[str]:
    """Return the comparison with an earlier campaign for the terminal."""
    if not made:
        return []
    columns = ["label", "now", "before", "ratio", "interval", "margin", "verdict"]
    if any(row["group"] for row in made["rows"]):
        columns.insert(0, "group")
    rows = [[row[column] for column in columns] for row in made["rows"]]
    lines = [f"Against {made['name']}:", *_aligned([_HEADS.get(c, c) for c in columns], rows)]
    lines += [f"  {row['label']}: {row['why']}" for row in made["rows"] if row["why"]]
    lines += [f"  only in this one: {place}" for place in made["only_here"]]
    lines += [f"  only in {made['name']}: {place}" for place in made["only_there"]]
    if made["regressions"]:
        lines.append(f"  {made['regressions']} slower by more than {made['limit']}")
    return ["\n".join(lines)]


def _some(title: str, lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    shown = [line if len(line) <= WIDEST else line[: WIDEST - 1] + "…" for line in lines[:SHOWN]]
    more = [f"  … and {len(lines) - SHOWN} more, all in the report"] if len(lines) > SHOWN else []
    return ["\n".join([f"{title}:", *(f"  {line}" for line in shown), *more])]


def sheet(document: Document) -> list[dict[str, Any]]:
    """Return one flat dict per case for a CSV; numbers stay numbers, what is missing is None."""
    out = []
    against = {entry["case"]: entry for entry in (document["baseline"] or {"rows": ()})["rows"]}
    fixed = {row["case"]: row for made in document["strong"] for row in made["rows"]}
    for row in document["rows"]:
        low, high = row["interval"] or (None, None)
        entry = against.get(row["case"], {})
        ratio_low, ratio_high = entry.get("interval") or (None, None)
        strong_row = fixed.get(row["case"], {})
        speedup_low, speedup_high = row["speedup_interval"] or (None, None)
        steps = row["steps"] or {}
        figures = row["dlperf"] or {}
        out.append(
            {
                "campaign": document["campaign"],
                **{column: row[field] for field, column in SHEET.items()},
                "interval_low": low,
                "interval_high": high,
                "speedup_low": speedup_low,
                "speedup_high": speedup_high,
                "average_speed": figures.get("average_speed"),
                "median_speed": figures.get("median_speed"),
                **{f"step_{key}_seconds": steps.get(key) for key in ("p50", "p95", "p99")},
                "global_batch": strong.global_batch(row),
                "strong_speedup": strong_row.get("speedup"),
                "strong_efficiency": strong_row.get("efficiency"),
                "baseline_median": entry.get("before"),
                "baseline_ratio": entry.get("ratio"),
                "baseline_low": ratio_low,
                "baseline_high": ratio_high,
                "baseline_verdict": entry.get("verdict", "only here" if document["baseline"] else None),
                "marks": "; ".join(mark["text"] for mark in row["marks"]),
            }
        )
    return out


def harmless(text: str) -> str:
    """Return a CSV cell that no spreadsheet takes for a formula (OWASP, CSV injection)."""
    return "'" + text if text[:1] in ("=", "+", "-", "@", "\t", "\r", "\n") and text else text
