# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Measurements of single operations -> a table with published ones, and the share of the peak of each.

A column is one device: `{"name", "theory": {key: TFLOP/s}, "figures": {key: TFLOP/s}}`, where a key is
(benchmark, variant) of the table below.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import KINDS, MicrobenchRecord
from ansible.module_utils.scalebook.judge import microbench_records
from ansible.module_utils.scalebook.pages import svg
from ansible.module_utils.scalebook.pages.bar_chart import Bar, bar_chart
from ansible.module_utils.scalebook.pages.wording import ENGLISH, Wording
from ansible.module_utils.scalebook.report import environment
from ansible.module_utils.scalebook.text import clean

SCHEMA = 1
Key = tuple[str, str]
Column = dict[str, Any]

TABLE: tuple[tuple[str, tuple[Key, ...]], ...] = (
    ("Matrix product, FP32 (TF32) / FP16", (("matmul", "fp32"), ("matmul", "fp16"))),
    ("Matrix product, BF16", (("matmul", "bf16"),)),
    ("Vector times a number, FP32", (("vector", "fp32"),)),
    ("BERT layer, forward / forward and backward", (("bert", "forward"), ("bert", "forward_backward"))),
    ("GPT-2 layer, forward / forward and backward", (("gpt2", "forward"), ("gpt2", "forward_backward"))),
    ("T5 encoder, forward / both", (("t5_encoder", "forward"), ("t5_encoder", "forward_backward"))),
    ("T5 decoder, forward / both", (("t5_decoder", "forward"), ("t5_decoder", "forward_backward"))),
)
"""The rows of the published table, and bf16."""

BYTES_PER_OPERATION = 8
"""a * 1.2 in fp32 reads and writes four bytes for one operation: the memory is its limit."""

NONE = "–"


class MicrobenchError(ValueError):
    """A result or a table that cannot be used; the message says which and why."""


def read_published(lines: Iterable[str]) -> list[Column]:
    """Return a column per GPU of data/microbench-published.csv, in its order."""
    columns: dict[str, Column] = {}
    for number, row in enumerate(csv.DictReader(lines), start=2):
        try:
            value = float(row["value"])
            column = columns.setdefault(row["gpu"], {"name": row["gpu"], "peaks": {}, "figures": {}})
            if row["benchmark"] == "theory":
                column["peaks"][row["variant"]] = value
            elif row["benchmark"] == "bandwidth":
                column["peaks"]["bandwidth"] = value
            elif row["benchmark"] == "memory":
                column["memory"] = value
            elif row["benchmark"] == "price":
                column["prices"] = [
                    {"amount": value, "unit": row["unit"], "source": f"{row['source']}, date not stated"}
                ]
            else:
                column["figures"][row["benchmark"], row["variant"]] = value
        except (KeyError, TypeError, ValueError):
            raise MicrobenchError(
                f"published table, line {number}: not gpu,benchmark,variant,value"
            ) from None
    return [
        {
            "name": each["name"],
            "figures": each["figures"],
            "theory": _theory(each["peaks"], "fp16"),
            "memory": each.get("memory"),
            "bandwidth": each["peaks"].get("bandwidth"),
            "prices": each.get("prices", []),
        }
        for each in columns.values()
    ]


def read_gpus(lines: Iterable[str]) -> list[dict[str, Any]]:
    """Return the rows of data/gpus.csv: `{"name", "pattern", "fp32", "fp16", "bf16", "bandwidth"}`.

    What is unknown is None. `pattern` matches the whole name of a device as nvidia-smi prints it. `fp32` is
    what a product in fp32 may reach: with TF32 where the device has it.
    """
    rows = []
    for row in csv.DictReader(lines):
        words = ("name", "pattern", "source")
        figure = {name: float(text) for name, text in row.items() if name not in words and text}
        rows.append(
            {
                "name": row["name"],
                "pattern": row["pattern"],
                "fp32": figure.get("tf32", figure.get("fp32")),
                "fp16": figure.get("fp16"),
                "bf16": figure.get("bf16"),
                "bandwidth": figure.get("bandwidth_gb_s"),
                "memory": figure.get("memory_gb"),
            }
        )
    return rows


def check(result: Any, kind: str, source: str) -> Mapping[str, Any]:
    """Return `result` if it is one of `kind` (compute, collectives), else raise MicrobenchError."""
    if not isinstance(result, Mapping) or result.get("kind") != kind:
        raise MicrobenchError(f"{source}: is not a result of {kind}")
    if result.get("schema") != SCHEMA:
        raise MicrobenchError(f"{source}: schema {result.get('schema')!r}, this version reads {SCHEMA}")
    if not result.get("measurements"):
        raise MicrobenchError(f"{source}: holds no measurements")
    return result


def check_group(result: Mapping[str, Any], nodes: int, devices: int, device: str, source: str) -> None:
    """Refuse collectives that were measured over another group than the requested one."""
    backend = "nccl" if device == "gpu" else "gloo"
    for name, wanted in (("world_size", devices), ("nodes", nodes), ("backend", backend)):
        if result.get(name) != wanted:
            raise MicrobenchError(f"{source}: {name} is {result.get(name)!r}, requested was {wanted!r}")


def measured(
    result: Mapping[str, Any],
    known_gpus: Sequence[Mapping[str, Any]],
    prices: Sequence[Mapping[str, Any]] = (),
) -> Column:
    """Return the column of a compute result: as in the published table the best of each sweep.

    `prices` are those of the device, `{"amount", "unit", "source"}`, the source with its date.

    Of the vector it is the longest: shorter ones fit into a cache.
    """
    figures: dict[Key, float] = {}
    for row in result["measurements"]:
        key, value = (row["benchmark"], row["variant"]), row["tflops"]
        if value is not None:
            figures[key] = value if row["benchmark"] == "vector" else max(value, figures.get(key, 0.0))
    known = next((row for row in known_gpus if re.fullmatch(row["pattern"], result["name"])), {})
    peaks = {
        name: known[name] for name in ("fp32", "fp16", "bf16", "bandwidth") if known.get(name) is not None
    }
    return {
        "name": result["name"],
        "figures": figures,
        "theory": _theory(peaks, result["layer_dtype"]),
        "memory": known.get("memory"),
        "bandwidth": known.get("bandwidth"),
        "prices": list(prices),
    }


def _theory(peaks: Mapping[str, float], layers: str) -> dict[Key, float]:
    """Return the limit of each operation; the layers compute in dtype `layers`."""
    limits: dict[Key, float] = {}
    for _, keys in TABLE:
        for benchmark, variant in keys:
            dtype = variant if benchmark == "matmul" else layers
            limit = peaks.get(dtype)
            if benchmark == "vector":
                limit = peaks["bandwidth"] / BYTES_PER_OPERATION / 1000 if "bandwidth" in peaks else None
            if limit is not None:
                limits[benchmark, variant] = limit
    return limits


def figure(value: float | None) -> str:
    """Return a figure as the published table has them: 116, 0.202; more digits where they would be lost."""
    if value is None:
        return NONE
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.3f}"


def table(columns: Sequence[Column], wording: Wording = ENGLISH) -> list[list[str]]:
    """Return the table as rows of text, its head first: TFLOP/s of every device."""
    _ = wording
    rows = [["TFLOP/s", *(str(column["name"]) for column in columns)]]
    for title, keys in TABLE:
        rows.append(
            [_(title), *(" / ".join(figure(each["figures"].get(key)) for key in keys) for each in columns)]
        )
    rows.append(
        [
            _("Memory, GB / bandwidth, GB/s"),
            *(f"{figure(each.get('memory'))} / {figure(each.get('bandwidth'))}" for each in columns),
        ]
    )
    if any(each.get("prices") for each in columns):
        prices = [_("; ").join(map(_price, each.get("prices") or ())) or NONE for each in columns]
        rows.append([_("Price"), *prices])
        title = _("{operation}: GFLOP/s per price", operation=_label(WORK, wording))
        rows.append([title, *(_work_per_price(each, wording) for each in columns)])
    return rows


WORK: Key = ("matmul", "fp16")
"""What is set against the price: the operation that training spends most of its time on."""


def _price(price: Mapping[str, Any]) -> str:
    return f"{price['amount']:,g} {price['unit']}"


def _work_per_price(column: Column, wording: Wording) -> str:
    """Return the measured GFLOP/s for one unit of each price; prices of other kinds do not compare."""
    work = column["figures"].get(WORK)
    if work is None:
        return NONE
    each = [
        figure(1000 * work / price["amount"]) + wording(" per ") + price["unit"]
        for price in column.get("prices") or ()
    ]
    return wording("; ").join(each) or NONE


def price_notes(columns: Sequence[Column], wording: Wording = ENGLISH) -> list[str]:
    """Return the source and date of every price of the table."""
    notes: dict[str, list[str]] = {}
    for column in columns:
        for price in column.get("prices") or ():
            notes.setdefault(price["source"], []).append(f"{column['name']} {_price(price)}")
    _ = wording
    return [
        _("Prices: {prices}. Source: {origin}.", prices=_("; ").join(names), origin=_.sentence(source))
        for source, names in notes.items()
    ]


def collectives_table(result: Mapping[str, Any], wording: Wording = ENGLISH) -> list[list[str]]:
    """Return size, time and bandwidths of each collective as rows of text, their head first."""
    _ = wording
    rows = [[_("collective"), _("bytes"), _("time, µs"), _("algorithm GB/s"), _("bus GB/s")]]
    for row in sorted(result["measurements"], key=lambda each: (each["collective"], each["bytes"])):
        rows.append(
            [
                row["collective"],
                str(row["bytes"]),
                f"{row['seconds'] * 1e6:.1f}",
                f"{row['algbw_gb_per_second']:.3f}",
                f"{row['busbw_gb_per_second']:.3f}",
            ]
        )
    return rows


NAMES = {
    "fp32": "FP32 (TF32)",
    "fp16": "FP16",
    "bf16": "BF16",
    "forward": "forward",
    "forward_backward": "forward and backward",
}
OPERATIONS = {
    "matmul": "matrix product",
    "vector": "vector",
    "bert": "BERT layer",
    "gpt2": "GPT-2 layer",
    "t5_encoder": "T5 encoder",
    "t5_decoder": "T5 decoder",
}


def _label(key: Key, wording: Wording) -> str:
    """Return what an operation is called; those that are in no table have the names of their files."""
    names = (OPERATIONS.get(key[0], key[0]), NAMES.get(key[1], key[1]))
    return wording(", ").join(wording(name) for name in names if name)


def chart(columns: Sequence[Column], standalone: bool = True, wording: Wording = ENGLISH) -> str:
    """Return a chart of measured results as shares of the theoretical peaks, as SVG.

    '' where no device has both; at most svg.SERIES devices.
    """
    _ = wording
    shown = [each for each in columns if set(each["theory"]) & set(each["figures"])][: svg.SERIES]
    rows = []
    for key in (key for _, keys in TABLE for key in keys):
        bars = [
            _bar(index, each, key, wording)
            for index, each in enumerate(shown)
            if key in each["figures"] and key in each["theory"]
        ]
        if bars:
            rows.append((_label(key, wording), bars))
    if not rows:
        return ""
    return bar_chart(
        rows,
        [str(each["name"]) for each in shown],
        _("Theory and measured"),
        _("Measured TFLOP/s of each operation as a share of the device's theoretical peak."),
        _("share of the device's peak"),
        "theory",
        [(tick / 100, f"{tick} %") for tick in range(0, 101, 25)],
        standalone=standalone,
    )


def _bar(index: int, column: Column, key: Key, wording: Wording) -> Bar:
    value, limit = column["figures"][key], column["theory"][key]
    numbers = figure(value) + wording(" of ") + figure(limit)
    note = f"{column['name']}{wording(': ')}{numbers} TFLOP/s"
    return Bar(index, value / limit, f"{value / limit:.0%} · {numbers}", note)


def page(
    files: microbench_records.Files,
    made: Sequence[MicrobenchRecord],
    columns: Sequence[Column],
    wording: Wording = ENGLISH,
) -> dict[str, Any]:
    """Return what the templates print: the head as in every report, the table of `columns`, and notes.

    `made` are the records of the files; the first column is the device that was measured, if it was.
    """
    _ = wording
    compute, group = (files.results.get(kind) for kind in KINDS)
    notes = [
        _(
            "The other devices: mli/transformers-benchmarks, torch 1.13, CUDA 11.7, layers in fp16. Only "
            "matrix products are counted; forward and backward count three times the forward."
        ),
        *price_notes(columns, wording),
    ]
    lead, name = "", name_of(made)
    if compute:
        notes += _remarks(compute, columns[0], wording)
        lead = _(
            "Measured on {host}: the best of each sweep; the layers in {dtype} with {attention} attention; "
            "each shape for at least {seconds} s, the median of its blocks.",
            host=compute["host"],
            dtype=compute["layer_dtype"],
            attention=compute["layer_attention"],
            seconds=f"{compute['seconds']:g}",
        )
    rows = [row for record in made for row in record["measurements"]]
    return {
        "title": clean(_("Micro-benchmarks of {device}", device=name) if name else _("Micro-benchmarks")),
        "lead": clean(lead),
        "hardware": environment.machines(files.machines, wording),
        "simulated": environment.shared(microbench_records.simulated(files.results), wording),
        "software": environment.software(microbench_records.provenance(made), wording),
        "commands": [{"command": text}] if (text := clean(files.about.get("command") or "")) else [],
        "good": sum(row["status"] == "ok" for row in rows),
        "all": len(rows),
        "failed": [_.tell(why) for why in microbench_records.failures(made)],
        "table": table(columns, wording),
        "notes": [clean(note) for note in notes],
        "collectives": _collectives(group, wording) if group else None,
    }


def name_of(made: Sequence[MicrobenchRecord]) -> str:
    """Return the name of the device, '' where no program came as far as to say it."""
    return next((record["device"] for record in made if "device" in record), "")


def _remarks(result: Mapping[str, Any], mine: Column, wording: Wording) -> list[str]:
    """Return what a reader must know of the measured column: its shapes, its peaks, what is not in it."""
    _ = wording
    notes = []
    if result["size"] != "full":
        notes.append(
            _(
                "Shapes: {size}, only to check that everything runs; not those of the others.",
                size=result["size"],
            )
        )
    theory = mine["theory"]
    if not theory:
        notes.append(_("No peak is known: data/gpus.csv has no GPU of the name {name}.", name=result["name"]))
    for key, value in mine["figures"].items():
        if value > theory.get(key, value):
            cause = _("the peak in data/gpus.csv may be that of another device")
            if key[0] == "vector":
                cause = _("the longest vector of the published table fits into this device's cache")
            notes.append(
                _(
                    "Above the theoretical peak: {operation}, {rate} of {peak} TFLOP/s; {cause}.",
                    operation=_label(key, wording),
                    rate=figure(value),
                    peak=figure(theory[key]),
                    cause=cause,
                )
            )
    for row in result["measurements"]:
        if row["tflops"] is None:
            shape = " ".join(f"{name}={value}" for name, value in row["shape"].items())
            what = _(", ").join(filter(None, (_label((row["benchmark"], row["variant"]), _), shape)))
            notes.append(_("Not measured: {what}: {reason}.", what=what, reason=_.sentence(row["reason"])))
    return notes


def _collectives(result: Mapping[str, Any], wording: Wording) -> dict[str, Any]:
    _ = wording
    group = _.count(result["world_size"], "device") + _(", ") + _.count(result["nodes"], "node")
    library = f"{result['backend']} {result.get('nccl') or ''}".rstrip()
    title = _("Collectives: {group}, {library}", group=group, library=library)
    return {"title": clean(title), "table": collectives_table(result, wording)}
