# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""How busy nodes and GPUs were over the window: one line for each case and quantity.

What was not recorded has no line; it is never 0.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from ansible.module_utils.scalebook.contracts import NodeTelemetry, Record, Row, Run, Usage

QUANTITIES = {
    # name: (heading, unit)
    "cpu": ("CPU", "%"),
    "memory": ("memory", "%"),
    "network": ("network, in and out", "MB/s"),
    "network_link": ("busiest network link, of its capacity", "%"),
    "disk": ("disk, read and written", "MB/s"),
    "disk_busy": ("busiest disk", "%"),
    "gpu": ("GPU utilisation", "%"),
    "sm_active": ("SM active", "%"),
    "pipe_tensor_active": ("tensor pipe active", "%"),
    "dram_active": ("DRAM active", "%"),
    "gpu_memory": ("GPU memory", "%"),
    "gpu_power": ("GPU power", "W"),
    "gpu_energy": ("GPU energy per sample", "J"),
    "gpu_samples_per_joule": ("samples per joule of the GPUs", "1/J"),
    "gpu_energy_per_million": ("GPU energy per million samples", "kWh"),
}
"""What the table shows. `of_node` yields more: what the bottleneck is judged by."""

JUDGED = ("gpu", "cpu", "memory", "disk_busy", "network_link")
"""The resources whose mean utilisation is judged, each by itself."""

CRITERION = 80.0
"""Per cent of mean utilisation that a resource is judged by, unless the user says another share."""

COVERED = 0.9
"""The part of the window that telemetry has to cover, unless all that lacks are a few readings."""

FEW_READINGS = 3
"""Readings that may lack at the ends of a window: one at each end, and one on a busy node."""

BUSY_AT_MOST = 2.0
"""Seconds of work of a disk in a second: 1, and as much for what is counted in ticks between two readings."""

MEGA = 1e6
KILOWATT_HOUR = 3.6e6


class TelemetryError(ValueError):
    """A record whose telemetry is not what a reader of logs wrote."""


def usable(record: Record) -> tuple[Record, list[str]]:
    """Return the record without telemetry that cannot be used, and notes about what is missing.

    A mean over the part before a sampler ended is not the mean over the window, and a disk that worked for
    longer than there was time, as some kernels count now and then, has no known share.  That is judged here
    and not where telemetry is read, so that it applies to earlier records.  Raises TelemetryError.
    """
    kept: list[NodeTelemetry] = []
    notes = []
    try:
        for node in record.get("telemetry") or []:
            if node.get("reason"):
                notes.append(f"telemetry of {node['node']}: {node['reason']}")
            if not _covers(node):
                kept.append({"node": node["node"]})
                share = f"{100 * node['covered']:.0f}"
                notes.append(f"telemetry of {node['node']}: not used, as it covers {share} % of the window")
                continue
            overcounted = _overcounted(node)
            for name, busy in overcounted.items():
                disk = name.split(":")[1]
                notes.append(
                    f"telemetry of {node['node']}: how busy disk {disk} was is not used, as the kernel "
                    f"counted {busy:.3g} s of work in a second"
                )
            quantities = node.get("quantities") or {}
            possible = {name: each for name, each in quantities.items() if name not in overcounted}
            kept.append({**node, "quantities": possible})
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as exc:
        raise TelemetryError(f"its telemetry cannot be used: {exc}") from exc
    return cast(Record, {**record, "telemetry": kept}), notes


def _covers(node: NodeTelemetry) -> bool:
    """Return whether the readings of a node cover its window, as far as the record says how much they do."""
    covered = node.get("covered")
    if covered is None:
        return True
    lacking = node["seconds"] / covered - node["seconds"]
    return covered >= COVERED or lacking <= FEW_READINGS * node["interval"]


def _overcounted(node: NodeTelemetry) -> dict[str, float]:
    """Return the disks that worked for longer than there was time, and their most seconds in a second."""
    return {
        name: float(each["max"])
        for name, each in (node.get("quantities") or {}).items()
        if name.startswith("disk:") and name.endswith(":busy") and each.get("max", 0) > BUSY_AT_MOST
    }


def of_record(record: Record) -> dict[str, list[float]]:
    """Return the means over the window by quantity, one of each node or GPU that has it."""
    found: dict[str, list[float]] = {}
    try:
        for node in record.get("telemetry") or []:
            for name, value in of_node(node):
                if not math.isfinite(value):
                    raise ValueError(f"{name} is {value}")
                found.setdefault(name, []).append(value)
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as exc:
        raise TelemetryError(f"its telemetry cannot be used: {exc}") from exc
    return found


def of_node(node: NodeTelemetry) -> Iterable[tuple[str, float]]:
    """Yield (quantity, mean) of a node's telemetry, one of each GPU."""
    means = {name: float(each["mean"]) for name, each in (node.get("quantities") or {}).items()}
    about = node.get("about") or {}
    for name, column, whole in (("cpu", "cpu::busy", "cores"), ("memory", "memory::used", "memory_bytes")):
        if column in means and about.get(whole):
            yield name, 100 * means[column] / about[whole]
    physical = about.get("physical_interfaces") or []
    moved = [
        mean
        for name, mean in means.items()
        for group, instance, _ in [name.split(":", 2)]
        # In a container no interface is physical: all but loopback count then.
        if group == "infiniband"
        or (group == "network" and (instance in physical if physical else instance != "lo"))
    ]
    if moved:
        yield "network", sum(moved) / MEGA
    links = list(_links(means, about))
    if links:
        yield "network_link", max(links)
    disks = [mean for name, mean in means.items() if name.startswith("disk:") and not name.endswith(":busy")]
    if disks:
        yield "disk", sum(disks) / MEGA
    busy = [mean for name, mean in means.items() if name.startswith("disk:") and name.endswith(":busy")]
    if busy:
        yield "disk_busy", 100 * max(busy)
    if means.get("cpu::steal"):
        yield "stolen", 100 * means["cpu::steal"] / (means["cpu::busy"] + means["cpu::steal"])
    for name, column in (("job_queued", "job::queued"), ("storage_waits", "cpu::iowait")):
        if column in means:
            yield name, means[column]
    for name in ("busiest_thread", "next_thread"):
        if f"job::{name}" in means:
            yield name, 100 * means[f"job::{name}"]
    by_core = {index: core for index, core in enumerate(node.get("cores") or []) if core is not None}
    cores = [*by_core.values()]
    if cores:
        yield "busiest_core", 100 * max(cores)
    computing = means.get("cpu::busy")
    own = [by_core[index] for index in about.get("job_cores") or [] if index in by_core]
    if own:
        computing = sum(own)
        yield "job_cpu", 100 * computing / len(own)
    if "job::busy" in means:
        yield "job_processors", means["job::busy"]
        if computing:
            yield "job_share", min(100.0, 100 * means["job::busy"] / computing)
    for gpu in sorted({name.split(":")[1] for name in means if name.startswith("gpu:")}):
        facts = (about.get("gpus") or {}).get(gpu) or {}
        # The rate of the energy counter is the power over exactly the window.
        for name, columns in (
            ("gpu", ("utilization",)),
            ("sm_active", ("sm_active",)),
            ("pipe_tensor_active", ("pipe_tensor_active",)),
            ("dram_active", ("dram_active",)),
            ("gpu_power", ("energy", "power")),
        ):
            there = [means[f"gpu:{gpu}:{column}"] for column in columns if f"gpu:{gpu}:{column}" in means]
            if there:
                yield name, there[0]
        if f"gpu:{gpu}:throttle_power_cap" in means:
            yield "power_capped", 100 * means[f"gpu:{gpu}:throttle_power_cap"]
            if there and name == "gpu_power" and facts.get("power_limit"):
                yield "power_used", 100 * there[0] / facts["power_limit"]
        size = facts.get("memory_bytes")
        if size and f"gpu:{gpu}:memory" in means:
            yield "gpu_memory", 100 * means[f"gpu:{gpu}:memory"] / size


def _links(means: Mapping[str, float], about: Mapping[str, Any]) -> Iterable[float]:
    """Yield the share of its capacity, in per cent, of each direction of each network link that has one.

    Only physical interfaces have: a virtual one tells a nominal speed.
    """
    physical = about.get("physical_interfaces") or []
    ethernet = about.get("network_megabits") or {}
    capacities = {
        **{("network", name): rate for name, rate in ethernet.items() if name in physical},
        **{("infiniband", name): rate for name, rate in (about.get("infiniband_megabits") or {}).items()},
    }
    for (group, name), rate in capacities.items():
        for way in ("received", "sent"):
            if rate and f"{group}:{name}:{way}" in means:
                yield 100 * 8 * means[f"{group}:{name}:{way}"] / (rate * MEGA)


def valid_by_case(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """Return the runs that count, by the name of their case."""
    by_case: dict[str, list[Run]] = {}
    for run in runs:
        if run["rate"] is not None:
            by_case.setdefault(run["case"], []).append(run)
    return by_case


def tabulate(rows: Iterable[Row], runs: Sequence[Run], criterion: float = CRITERION) -> list[Usage]:
    """Return a line for each case and quantity: the mean over runs, nodes and devices, and the extremes.

    The extremes are those of single nodes or devices in single runs.  `of` is how many nodes or devices
    have the quantity in the run that has most, `criterion` the per cent that resources are judged by.
    """
    by_case = valid_by_case(runs)
    lines: list[Usage] = []
    for row in rows:
        measured = [_with_energy(run, row["devices"]) for run in by_case.get(row["case"], [])]
        for name, (_, unit) in QUANTITIES.items():
            each = [values[name] for values in measured if values.get(name)]
            if each:
                mean = statistics.fmean(statistics.fmean(values) for values in each)
                judged = name in JUDGED
                line: Usage = {
                    "case": row["case"],
                    "label": row["label"],
                    "quantity": name,
                    "unit": unit,
                    "mean": mean,
                    "min": min(map(min, each)),
                    "max": max(map(max, each)),
                    "of": max(map(len, each)),
                    "runs": len(each),
                    "criterion": criterion if judged else None,
                    "met": mean >= criterion if judged else None,
                }
                lines += [line, *_energy_lines(line)]
    return lines


def _energy_lines(line: Usage) -> list[Usage]:
    """Return what follows from the joules per sample: samples per joule, and kWh per million samples."""
    if line["quantity"] != "gpu_energy" or line["min"] <= 0:
        return []
    mean, low, high = line["mean"], line["min"], line["max"]
    per_million = [joules * MEGA / KILOWATT_HOUR for joules in (mean, low, high)]
    made = []
    for name, (of_mean, least, most) in (
        ("gpu_samples_per_joule", (1 / mean, 1 / high, 1 / low)),
        ("gpu_energy_per_million", per_million),
    ):
        values = {"mean": of_mean, "min": least, "max": most}
        made.append(cast(Usage, {**line, "quantity": name, "unit": QUANTITIES[name][1], **values}))
    return made


def judgement(line: Usage) -> str:
    """Return whether a resource meets the criterion, '' for a quantity that is not judged."""
    if line["met"] is None:
        return ""
    return f"{'at least' if line['met'] else 'below'} {line['criterion']:g} %"


def printed(value: float) -> str:
    """Return a value as the table shows it: two decimals, of one below 1 three significant digits."""
    if value == 0 or abs(value) >= 1:
        return repr(round(value, 2))
    return f"{value:.3g}"


def _with_energy(run: Run, devices: int) -> dict[str, list[float]]:
    """Return the run's quantities and, where every device's power is known, the joules per sample."""
    measured = run.get("utilisation") or {}
    powers, rate = measured.get("gpu_power", []), run["rate"]
    known = len(powers) == devices and rate
    return {**measured, **({"gpu_energy": [sum(powers) / rate]} if known and rate else {})}
