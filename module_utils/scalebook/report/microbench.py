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

from ansible.module_utils.scalebook import hardware, svg
from ansible.module_utils.scalebook.bar_chart import Bar, bar_chart
from ansible.module_utils.scalebook.contracts import Hardware
from ansible.module_utils.scalebook.text import clean, count_of

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
    gpus: Sequence[Mapping[str, Any]],
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
    known = next((row for row in gpus if re.fullmatch(row["pattern"], result["name"])), {})
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


def table(columns: Sequence[Column]) -> list[list[str]]:
    """Return the table as rows of text, its head first: TFLOP/s of every device."""
    rows = [["TFLOP/s", *(str(column["name"]) for column in columns)]]
    for title, keys in TABLE:
        rows.append(
            [title, *(" / ".join(figure(each["figures"].get(key)) for key in keys) for each in columns)]
        )
    rows.append(
        [
            "Memory, GB / bandwidth, GB/s",
            *(f"{figure(each.get('memory'))} / {figure(each.get('bandwidth'))}" for each in columns),
        ]
    )
    if any(each.get("prices") for each in columns):
        rows.append(
            ["Price", *("; ".join(map(_price, each.get("prices") or ())) or NONE for each in columns)]
        )
        rows.append([f"{_label(WORK)}: GFLOP/s per price", *(_work_per_price(each) for each in columns)])
    return rows


WORK: Key = ("matmul", "fp16")
"""What is set against the price: the operation that training spends most of its time on."""


def _price(price: Mapping[str, Any]) -> str:
    return f"{price['amount']:,g} {price['unit']}"


def _work_per_price(column: Column) -> str:
    """Return the measured GFLOP/s for one unit of each price; prices of other kinds do not compare."""
    work = column["figures"].get(WORK)
    if work is None:
        return NONE
    each = [
        f"{figure(1000 * work / price['amount'])} per {price['unit']}" for price in column.get("prices") or ()
    ]
    return "; ".join(each) or NONE


def price_notes(columns: Sequence[Column]) -> list[str]:
    """Return the source and date of every price of the table."""
    notes: dict[str, list[str]] = {}
    for column in columns:
        for price in column.get("prices") or ():
            notes.setdefault(price["source"], []).append(f"{column['name']} {_price(price)}")
    return [f"Prices: {'; '.join(names)}. Source: {source}." for source, names in notes.items()]


def collectives_table(result: Mapping[str, Any]) -> list[list[str]]:
    """Return size, time and bandwidths of each collective as rows of text, their head first."""
    rows = [["collective", "bytes", "time, µs", "algorithm GB/s", "bus GB/s"]]
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


_NAMES = {
    "fp32": "FP32 (TF32)",
    "fp16": "FP16",
    "bf16": "BF16",
    "forward": "forward",
    "forward_backward": "forward and backward",
}
_BENCHMARKS = {
    "matmul": "matrix product",
    "vector": "vector",
    "bert": "BERT layer",
    "gpt2": "GPT-2 layer",
    "t5_encoder": "T5 encoder",
    "t5_decoder": "T5 decoder",
}


def _label(key: Key) -> str:
    return f"{_BENCHMARKS[key[0]]}, {_NAMES[key[1]]}"


def chart(columns: Sequence[Column], standalone: bool = True) -> str:
    """Return a chart of measured results as shares of the theoretical peaks, as SVG.

    '' where no device has both; at most svg.SERIES devices.
    """
    shown = [each for each in columns if set(each["theory"]) & set(each["figures"])][: svg.SERIES]
    rows = []
    for key in (key for _, keys in TABLE for key in keys):
        bars = [
            _bar(index, each, key)
            for index, each in enumerate(shown)
            if key in each["figures"] and key in each["theory"]
        ]
        if bars:
            rows.append((_label(key), bars))
    if not rows:
        return ""
    return bar_chart(
        rows,
        [str(each["name"]) for each in shown],
        "Theory and measured",
        "Measured TFLOP/s of each operation as a share of the device's theoretical peak.",
        "share of the device's peak",
        "theory",
        [(tick / 100, f"{tick} %") for tick in range(0, 101, 25)],
        standalone=standalone,
    )


def _bar(index: int, column: Column, key: Key) -> Bar:
    value, limit = column["figures"][key], column["theory"][key]
    numbers = f"{figure(value)} of {figure(limit)}"
    return Bar(
        index, value / limit, f"{value / limit:.0%} · {numbers}", f"{column['name']}: {numbers} TFLOP/s"
    )


def page(
    result: Mapping[str, Any],
    columns: Sequence[Column],
    collectives: Mapping[str, Any] | None,
    machines: Sequence[Hardware] = (),
) -> dict[str, Any]:
    """Return what the templates print: the table of `columns`, the first of them measured here, and notes.

    `machines` are the kinds of node that took part, none for results that do not say.
    """
    notes = [
        "The other devices: mli/transformers-benchmarks, torch 1.13, CUDA 11.7, layers in fp16. Only matrix "
        "products are counted; forward and backward count three times the forward."
    ]
    notes += price_notes(columns)
    if result["size"] != "full":
        notes.append(
            f"Shapes: {result['size']}, only to check that everything runs; not those of the others."
        )
    theory = columns[0]["theory"]
    if not theory:
        notes.append(f"No peak is known: data/gpus.csv has no GPU of the name {result['name']}.")
    for key, value in columns[0]["figures"].items():
        if value > theory.get(key, value):
            cause = "the peak in data/gpus.csv may be that of another device"
            if key[0] == "vector":
                cause = "the longest vector of the published table fits into this device's cache"
            figures = f"{figure(value)} of {figure(theory[key])} TFLOP/s"
            notes.append(f"Above the theoretical peak: {_label(key)}, {figures}; {cause}.")
    for row in result["measurements"]:
        if row["tflops"] is None:
            shape = ", ".join(f"{name} {value}" for name, value in row["shape"].items())
            notes.append(f"Not measured: {row['benchmark']} {row['variant']}, {shape}: {row['reason']}.")
    return {
        "title": clean(f"Micro-benchmarks of {result['name']}"),
        "lead": clean(
            f"torch {result['torch']}, CUDA {result['cuda'] or 'none'}, on {result['host']}. Best of each "
            f"sweep; the layers in {result['layer_dtype']} with {result['layer_attention']} attention; each "
            f"shape for at least {result['seconds']:g} s, the median of its blocks."
        ),
        "hardware": [clean(hardware.sentence(entry)) for entry in machines] or ["not recorded"],
        "table": table(columns),
        "notes": [clean(note) for note in notes],
        "collectives": _collectives(collectives) if collectives else None,
    }


def _collectives(result: Mapping[str, Any]) -> dict[str, Any]:
    group = f"{count_of(result['world_size'], 'device')}, {count_of(result['nodes'], 'node')}"
    library = f"{result['backend']} {result.get('nccl') or ''}".rstrip()
    return {"title": clean(f"Collectives: {group}, {library}"), "table": collectives_table(result)}
