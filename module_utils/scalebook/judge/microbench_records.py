# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The files of a run of microbench.yml -> its records, the figures of its device, and what to know of them.

`compute.json` and `collectives.json` are what the programs write, `hardware.json` and `about.json` what role
microbench writes: the hardware of the nodes, and how and where each program was started.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ansible.module_utils.scalebook import hardware
from ansible.module_utils.scalebook.contracts import (
    KINDS,
    BestRate,
    Hardware,
    Interconnect,
    JobEnd,
    Measurement,
    Message,
    MicrobenchRecord,
    ProgramEnd,
    as_message,
    message,
)
from ansible.module_utils.scalebook.judge import mfu
from ansible.module_utils.scalebook.judge.prices import Price as Listed

Key = tuple[str, str]

TABLE: Mapping[str, tuple[Key, ...]] = {
    "microbench.matrix": (("matmul", "fp32"), ("matmul", "fp16")),
    "microbench.matrix-bf16": (("matmul", "bf16"),),
    "microbench.vector-fp32": (("vector", "fp32"),),
    **{
        f"microbench.both-{name}": ((name, "forward"), (name, "forward_backward"))
        for name in ("bert", "gpt2", "t5_encoder", "t5_decoder")
    },
}
"""The rows of the published table, and bf16: (benchmark, variant) of each figure."""
KEYS = [key for keys in TABLE.values() for key in keys]
NAMED = {name for key in KEYS for name in key}
WORK: Key = ("matmul", "fp16")
"""What is set against the price: the operation that training spends most of its time on."""
BYTES_PER_OPERATION = 8
"""a * 1.2 in fp32 reads and writes four bytes for one operation: the memory is its limit."""
SOFTWARE = ("torch", "cuda", "nccl", "python")
SETTINGS = (
    *("device", "size", "layer_dtype", "layer_attention", "tf32", "threads", "seconds"),
    *("backend", "world_size", "iterations"),
)
RATES = ("tflops", "gbytes_per_second", "algbw_gb_per_second", "busbw_gb_per_second")


class Files(NamedTuple):
    """The content of the files: {kind: result} of the programs that ended well, the rest as it is there."""

    results: Mapping[str, Mapping[str, Any]]
    about: Mapping[str, Any]
    machines: Sequence[Hardware]
    nccl: Interconnect | None = None


def records(files: Files) -> list[MicrobenchRecord]:
    """Return a record of each program that was started, or that has left a result."""
    jobs = files.about.get("jobs") or {}
    return [_record(kind, files, jobs.get(kind)) for kind in KINDS if kind in jobs or kind in files.results]


def _record(kind: str, files: Files, job: ProgramEnd | None) -> MicrobenchRecord:
    result = files.results.get(kind)
    nodes = list(job["nodes"]) if job else []
    values = result or {}
    why = (job or {}).get("reason") or message("program.no-result")
    facts = {key: values[key] for key in SOFTWARE if values.get(key)}
    record: MicrobenchRecord = {
        "kind": kind,
        "status": "ok" if result else "failed",
        "reason": None if result else as_message(why),
        "nodes": nodes,
        "settings": {key: values[key] for key in SETTINGS if values.get(key) is not None},
        "job": _job_end(job) if job else None,
        "hardware": hardware.of_nodes(files.machines, nodes) if nodes else list(files.machines),
        "software": [{"nodes": nodes, **facts}] if facts else [],
        "measurements": [_measurement(row) for row in values.get("measurements") or ()],
    }
    if values.get("name"):
        record["device"] = values["name"]
    if kind == "collectives" and files.nccl:
        record["nccl"] = files.nccl
    for key in ("scalebook", "command"):
        if files.about.get(key):
            record[key] = files.about[key]
    return record


def _job_end(job: ProgramEnd) -> JobEnd:
    return {"rc": job["rc"], "seconds": job["seconds"], "started": job["started"], "ended": job["ended"]}


def _measurement(read: Mapping[str, Any]) -> Measurement:
    """Return one measurement of a program: what has no time did not fit into the memory."""
    return {
        "benchmark": read.get("benchmark") or read["collective"],
        "variant": read.get("variant"),
        "shape": read["shape"] if "shape" in read else {"bytes": read["bytes"]},
        "status": "oom" if read["seconds"] is None else "ok",
        "reason": as_message(read["reason"]) if read.get("reason") else None,
        "seconds": read["seconds"],
        **{rate: read.get(rate) for rate in RATES},  # type: ignore[typeddict-item]
    }


def failures(records: Sequence[MicrobenchRecord]) -> list[Message]:
    """Return why each program failed that did."""
    return [
        message(f"program.{each['kind']}", why=each["reason"]) for each in records if each["status"] != "ok"
    ]


def name_of(files: Files) -> str:
    """Return the name of the device, '' where no program came as far as to say it."""
    return next((result["name"] for result in files.results.values() if result.get("name")), "")


def simulated(files: Files) -> dict[str, int] | None:
    """Return how many nodes shared how many machines, None where each was a machine of its own."""
    group = files.results.get("collectives") or {}
    nodes, hosts = group.get("nodes") or 0, len(group.get("hosts") or ())
    return {"machines": hosts, "nodes": nodes} if 0 < hosts < nodes else None


def provenance(files: Files) -> dict[str, Any]:
    """Return the software and the commit, as provenance.json of a campaign has them."""
    facts = {key: each[key] for each in files.results.values() for key in SOFTWARE if each.get(key)}
    return {"scalebook": files.about.get("scalebook"), "nodes": {"": facts} if facts else {}}


class Price(NamedTuple):
    """What a device costs, such as 16000 USD, and who says so when."""

    amount: float
    unit: str
    source: str
    date: str | None = None


class Device(NamedTuple):
    """A column of the table: TFLOP/s of each operation, and what the data sheet says, as data/gpus.csv does.

    `fp32` of a sheet is what a product in fp32 may reach, with TF32 where the device has it; `layers` is the
    dtype that the layers compute in.
    """

    name: str
    figures: dict[Key, float]
    sheet: dict[str, float]
    prices: list[Price]
    layers: str = "fp16"

    def peak(self, key: Key) -> float | None:
        """Return the limit of an operation, None where it is not known."""
        if key == ("vector", "fp32"):
            bandwidth = self.sheet.get("bandwidth_gb_s")
            return bandwidth and bandwidth / BYTES_PER_OPERATION / 1000
        return self.sheet.get(key[1] if key[0] == "matmul" else self.layers) if key in KEYS else None

    def best(self) -> list[BestRate]:
        """Return the figures as microbench.json has them."""
        return [
            {"benchmark": key[0], "variant": key[1], "tflops": value, "peak_tflops": self.peak(key)}
            for key, value in self.figures.items()
        ]

    def shares(self) -> dict[Key, tuple[float, float]]:
        """Return the figure and the peak of each operation that has both."""
        return {key: (value, peak) for key, value in self.figures.items() if (peak := self.peak(key))}


def read_published(lines: Iterable[str]) -> list[Device]:
    """Return each GPU of data/microbench-published.csv, in its order."""
    devices: dict[str, Device] = {}
    for row in csv.DictReader(lines):
        device, value = devices.setdefault(row["gpu"], Device(row["gpu"], {}, {}, [])), float(row["value"])
        if row["benchmark"] == "theory":
            device.sheet[row["variant"]] = value
        elif row["benchmark"] == "price":
            device.prices.append(Price(value, row["unit"], row["source"]))
        else:
            device.figures[row["benchmark"], row["variant"]] = value
    return list(devices.values())


def measured(result: Mapping[str, Any], peaks: mfu.Peaks, listed: Sequence[Listed] = ()) -> Device:
    """Return the device of a compute result: as in the published table the best of each sweep.

    Of the vector it is the longest: shorter ones fit into a cache.  `listed` are the prices of the device.
    """
    figures: dict[Key, float] = {}
    for row in result["measurements"]:
        key, value = (row["benchmark"], row["variant"]), row["tflops"]
        if value is not None:
            figures[key] = value if row["benchmark"] == "vector" else max(value, figures.get(key, 0.0))
    sheet = dict(mfu.of_gpu(peaks, result["name"]) or {})
    if "tf32" in sheet:
        sheet["fp32"] = sheet["tf32"]
    prices = [
        Price(each["amount"], f"{each['currency']}/{each['per']}", each["source"], _date(each["date"]))
        for each in listed
    ]
    return Device(result["name"], figures, sheet, prices, result["layer_dtype"])


def _date(text: str) -> str | None:
    """Return the date of a price, None where the list says in words that its source states none."""
    return text if any(map(str.isdigit, text)) else None


def notes(devices: Sequence[Device], result: Mapping[str, Any] | None) -> list[Message]:
    """Return what a reader must know of the devices, the first of which has this compute result if any."""
    sources: dict[tuple[str, str | None], list[Message]] = {}
    for each in devices:
        for price in each.prices:
            price_note = message(
                "microbench.price-of", device=each.name, amount=price.amount, unit=price.unit
            )
            sources.setdefault((price.source, price.date), []).append(price_note)
    lines = [message("microbench.others")]
    for (source, date), named in sources.items():
        dated = {"date": date} if date else {}
        origin = message(f"microbench.{'dated' if date else 'undated'}", source=source, **dated)
        lines.append(message("microbench.prices", prices=named, source=origin))
    return lines + (_remarks(result, devices[0]) if result else [])


def _remarks(result: Mapping[str, Any], device: Device) -> list[Message]:
    """Return what to know of what was measured: its shapes, its peaks, what is not in it."""
    lines = [message("microbench.size", size=result["size"])] if result["size"] != "full" else []
    if not any(map(device.peak, KEYS)):
        lines.append(message("microbench.no-peak", name=result["name"]))
    for key, (rate, peak) in device.shares().items():
        cause = message(f"microbench.{'cached' if key[0] == 'vector' else 'other-peak'}")
        above = message("microbench.above", operation=label(key), rate=rate, peak=peak, cause=cause)
        lines += [above] if rate > peak else []
    for row in result["measurements"]:
        if row["tflops"] is None:
            shape = " ".join(f"{name}={value}" for name, value in row["shape"].items())
            why = as_message(row["reason"])
            operation = label((row["benchmark"], row["variant"]))
            lines.append(message("microbench.not-measured", operation=operation, shape=shape, reason=why))
    return lines


def label(key: Key) -> Message:
    """Return what an operation is called; those that are in no table have the names of their files."""
    operation, variant = (
        message(f"microbench.{name}") if name in NAMED else message("text", text=name) for name in key
    )
    return message("microbench.label", operation=operation, variant=variant)
