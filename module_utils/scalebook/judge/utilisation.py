# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""How busy nodes and GPUs were over the window: one line for each case and quantity.

What was not recorded has no line; it is never 0.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from ansible.module_utils.scalebook.contracts import (
    Message,
    MessageError,
    NodeTelemetry,
    Record,
    Row,
    Run,
    Usage,
    as_message,
    message,
)
from ansible.module_utils.scalebook.grouping import grouped
from ansible.module_utils.scalebook.quantities import MEGA, QUANTITIES, TABLE, Quantity

CRITERION = 80.0
"""Per cent of mean utilisation that a resource is judged by, unless the user says another share."""

COVERED = 0.9
"""The part of the window that telemetry has to cover, unless all that lacks are a few readings."""

FEW_READINGS = 3
"""Readings that may lack at the ends of a window: one at each end, and one on a busy node."""

BUSY_AT_MOST = 2.0
"""Seconds of work of a disk in a second: 1, and as much for what is counted in ticks between two readings."""

KILOWATT_HOUR = 3.6e6


class TelemetryError(MessageError):
    """A record whose telemetry is not what a reader of logs wrote; `message` says what of it."""


def usable(record: Record) -> tuple[Record, list[Message]]:
    """Return the record without telemetry that cannot be used, and notes about what is missing.

    A mean over the part before a sampler ended is not the mean over the window, and a disk that worked for
    longer than there was time, as some kernels count now and then, has no known share.  That is judged here
    and not where telemetry is read, so that it applies to earlier records.  Raises TelemetryError.
    """
    usable_nodes: list[NodeTelemetry] = []
    notes: list[Message] = []
    try:
        for node in record.get("telemetry") or []:
            if why := node.get("reason"):
                notes.append(message("run.telemetry", node=node["node"], why=as_message(why)))
            if not _covers(node):
                usable_nodes.append({"node": node["node"]})
                covers = message("run.telemetry-covers", percent=100 * node["covered"])
                notes.append(message("run.telemetry", node=node["node"], why=covers))
                continue
            overcounted = _overcounted(node)
            for name, busy in overcounted.items():
                disk_note = message("run.disk-overcounted", disk=name.split(":")[1], seconds=busy)
                notes.append(message("run.telemetry", node=node["node"], why=disk_note))
            quantities = node.get("quantities") or {}
            possible = {name: each for name, each in quantities.items() if name not in overcounted}
            usable_nodes.append({**node, "quantities": possible})
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as exc:
        raise TelemetryError("run.odd-telemetry", why=str(exc)) from exc
    return cast(Record, {**record, "telemetry": usable_nodes}), notes


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
    values: dict[str, list[float]] = {}
    try:
        for node in record.get("telemetry") or []:
            for name, value in of_node(node):
                if not math.isfinite(value):
                    raise ValueError(f"{name} is {value}")
                values.setdefault(name, []).append(value)
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as exc:
        raise TelemetryError("run.odd-telemetry", why=str(exc)) from exc
    return values


def of_node(node: NodeTelemetry) -> Iterable[tuple[str, float]]:
    """Yield (quantity, mean) of a node's telemetry, one of each GPU."""
    means = {name: float(each["mean"]) for name, each in (node.get("quantities") or {}).items()}
    return reader(node.get("about") or {}, node.get("cores") or [])(means)


def reader(
    about: Mapping[str, Any], core_means: Sequence[float | None] = ()
) -> Callable[[Mapping[str, float]], Iterator[tuple[str, float]]]:
    """Return what makes (quantity, mean) of the means of the columns of a node, whose facts are `about`."""
    cores = {str(index): core for index, core in enumerate(core_means) if core is not None}
    own = [cores[str(index)] for index in about.get("job_cores") or [] if str(index) in cores]
    busy_cores = {f"core:{index}:busy": core for index, core in cores.items()}
    busy_cores |= {"job::cores_busy": sum(own)} if own else {}
    constant = _facts(about, own)

    def read(means: Mapping[str, float]) -> Iterator[tuple[str, float]]:
        facts = {**constant, **_of_processors(means, own)}
        columns: dict[str, dict[str, float]] = {}
        for name, mean in (*means.items(), *busy_cores.items()):
            what, instance = _parts(name)
            if not what.startswith("network:") or _counts(instance, about):
                columns.setdefault(what, {})[instance] = mean
        for quantity, reads, whats in READ:
            if not whats.isdisjoint(columns):
                for value in _values(quantity, reads, columns, facts):
                    yield quantity.name, value

    return read


@functools.lru_cache(maxsize=4096)
def _parts(column: str) -> tuple[str, str]:
    """Return what a column of the sampler has, `group:quantity`, and of which instance."""
    group, rest = column.split(":", 1)
    instance, quantity = rest.rsplit(":", 1)
    return f"{group}:{quantity}", instance


def _counts(interface: str, about: Mapping[str, Any]) -> bool:
    """Return whether an interface is physical; in a container none is: all but loopback count then."""
    physical = about.get("physical_interfaces") or []
    return interface in physical if physical else interface != "lo"


READ = [
    (quantity, reads, {what for what, _ in reads})
    for quantity in QUANTITIES.values()
    for reads in [[(_parts(reading.column)[0], reading.whole) for reading in quantity.reads]]
]
"""Each quantity with what it is read from, each with the fact of which that is a part."""


def _values(
    quantity: Quantity,
    reads: Iterable[tuple[str, str]],
    columns: Mapping[str, Mapping[str, float]],
    facts: Mapping[str, Mapping[str, float]],
) -> list[float]:
    """Return the values of a quantity: one of each instance, or one of all where they are combined."""
    readings: dict[str, list[float]] = {}
    for what, whole_name in reads:
        for instance, mean in columns[what].items() if what in columns else ():
            whole = facts.get(whole_name, {}).get(instance) if whole_name else 1
            if whole:
                readings.setdefault(instance, []).append(quantity.factor * mean / whole)
    if quantity.combine is None:
        return [readings[instance][0] for instance in sorted(readings)]
    every = [value for values in readings.values() for value in values]
    return [quantity.combine(every) / quantity.per] if every else []


def _facts(about: Mapping[str, Any], own: Sequence[float]) -> dict[str, dict[str, float]]:
    """Return what readings are parts of, by name and instance; `own` is how busy the job's processors were.

    Only physical interfaces have a capacity: a virtual one tells a nominal speed.
    """
    physical = about.get("physical_interfaces") or []
    ethernet, infiniband = about.get("network_megabits") or {}, about.get("infiniband_megabits") or {}
    gpus = (about.get("gpus") or {}).items()
    return {
        "cores": {"": about.get("cores", 0)},
        "memory": {"": about.get("memory_bytes", 0)},
        "job_cores": {"": len(own)},
        "ethernet": {name: (rate or 0) * MEGA for name, rate in ethernet.items() if name in physical},
        "infiniband": {name: (rate or 0) * MEGA for name, rate in infiniband.items()},
        "gpu_memory": {gpu: (each or {}).get("memory_bytes") for gpu, each in gpus},
        "power_limit": {gpu: (each or {}).get("power_limit") for gpu, each in gpus},
    }


def _of_processors(means: Mapping[str, float], own: Sequence[float]) -> dict[str, dict[str, float]]:
    """Return what readings are parts of that is itself read."""
    busy = means.get("cpu::busy", 0.0)
    # Other clocks count the processors' time and the job's own.
    computing = sum(own) if own else busy
    return {
        "needed": {"": busy + means.get("cpu::steal", 0.0)},
        "computing": {"": computing and max(computing, means.get("job::busy", 0.0))},
    }


def valid_by_case(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """Return the runs that count, by the name of their case."""
    return grouped((run for run in runs if run["rate"] is not None), lambda run: run["case"])


def tabulate(rows: Iterable[Row], runs: Sequence[Run], criterion: float = CRITERION) -> list[Usage]:
    """Return a line for each case and quantity: the mean over runs, nodes and devices, and the extremes.

    The extremes are those of single nodes or devices in single runs.  `of` is how many nodes or devices
    have the quantity in the run that has most, `criterion` the per cent that resources are judged by.
    """
    by_case = valid_by_case(runs)
    lines: list[Usage] = []
    for row in rows:
        measured = [_with_energy(run, row["devices"]) for run in by_case.get(row["case"], [])]
        for quantity in TABLE:
            each = [values[quantity.name] for values in measured if values.get(quantity.name)]
            if each:
                mean = statistics.fmean(statistics.fmean(values) for values in each)
                line: Usage = {
                    "case": row["case"],
                    "label": row["label"],
                    "quantity": quantity.name,
                    "unit": quantity.unit,
                    "mean": mean,
                    "min": min(map(min, each)),
                    "max": max(map(max, each)),
                    "of": max(map(len, each)),
                    "runs": len(each),
                    "criterion": criterion if quantity.judged else None,
                    "met": mean >= criterion if quantity.judged else None,
                }
                lines += [line, *_energy_lines(line, row)]
    return lines


def _energy_lines(line: Usage, row: Row) -> list[Usage]:
    """Return what follows from the joules per sample: of a token, samples per joule, kWh of a million."""
    if line["quantity"] != "gpu_energy" or line["min"] <= 0:
        return []
    mean, low, high = line["mean"], line["min"], line["max"]
    per_million = [joules * MEGA / KILOWATT_HOUR for joules in (mean, low, high)]
    lines = []
    tokens = (row.get("tokens_per_second") or 0.0) / (row["median"] or 1.0)
    of_token = {"gpu_energy_per_token": [joules / tokens for joules in (mean, low, high)]} if tokens else {}
    for name, (of_mean, least, most) in {
        **of_token,
        "gpu_samples_per_joule": [1 / mean, 1 / high, 1 / low],
        "gpu_energy_per_million": per_million,
    }.items():
        values = {"mean": of_mean, "min": least, "max": most}
        lines.append(cast(Usage, {**line, "quantity": name, "unit": QUANTITIES[name].unit, **values}))
    return lines


def _with_energy(run: Run, devices: int) -> dict[str, list[float]]:
    """Return the run's quantities and, where every device's power is known, the joules per sample."""
    measured = run.get("utilisation") or {}
    powers, rate = measured.get("gpu_power", []), run["rate"]
    is_complete = len(powers) == devices and rate
    return {**measured, **({"gpu_energy": [sum(powers) / rate]} if is_complete and rate else {})}
