# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Arithmetic per second and device of each case, and its share of the device's peak (MFU).

The operations per sample are the workload's (`flops` in its declaration), the rate is the case's median, the
peaks are those of the vendors' data sheets (data/gpus.csv), dense and for the case's dtype.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from ansible.module_utils.scalebook import flops
from ansible.module_utils.scalebook.contracts import Flag, Hardware, Mfu, Row, Usage
from ansible.module_utils.scalebook.judge import weak_scaling
from ansible.module_utils.scalebook.judge.thresholds import THRESHOLDS

TERA = 1e12
_NOT_PEAKS = ("name", "pattern", "memory_gb", "bandwidth_gb_s", "source")

Peaks = Mapping[str, Mapping[str, float]]
"""Expression for the whole name of a GPU -> dtype or tf32 -> dense peak in TFLOP/s."""


def read_peaks(lines: Iterable[str]) -> dict[str, dict[str, float]]:
    """Return the peaks of data/gpus.csv; a GPU has those whose pattern matches its whole name."""
    return {
        row["pattern"]: {key: float(text) for key, text in row.items() if key not in _NOT_PEAKS and text}
        for row in csv.DictReader(lines)
    }


def tabulate(
    rows: Iterable[Row],
    hardware: Iterable[Hardware],
    workloads: Mapping[str, Mapping[str, Any]],
    peaks: Peaks | None = None,
) -> list[Mfu]:
    """Return an entry for each row with a rate whose workload declares `flops`.

    What is not known is None; `reason` says why.
    """
    names = sorted({gpu["name"] for entry in hardware for gpu in entry.get("gpus") or ()})
    return [
        _entry(row, workloads[row["workload"]]["flops"], names, peaks or {})
        for row in rows
        if row["median"] is not None and workloads.get(row["workload"], {}).get("flops")
    ]


def flags(rows: Iterable[Row], entries: Iterable[Mfu], used: Iterable[Usage]) -> list[tuple[Row, Flag]]:
    """Return each row whose MFU cannot be true, or is of a peak that does not count, with a flag.

    `used` has the activity of tensor cores where it was read. Where they do all the arithmetic that the
    workload declares, they are active for about as much of the window as the MFU says.
    """
    by_case = {row["case"]: row for row in rows}
    active = {each["case"]: each["mean"] for each in used if each["quantity"] == "pipe_tensor_active"}
    made = []
    for entry in entries:
        if entry["mfu"] is None or entry["peak_of"] is None:
            continue
        percent, row = 100 * entry["mfu"], by_case[entry["case"]]
        if percent > 100:
            text = f"MFU {percent:.1f} %: faster than the peak ({entry['peak_of']})"
            made.append((row, weak_scaling.flag("above-peak", text)))
        on_tensor_cores = "dense fp32" not in entry["peak_of"]
        pipe = active.get(entry["case"])
        if on_tensor_cores and pipe is not None and pipe < THRESHOLDS["tensor-share"].value * percent:
            text = (
                f"tensor pipe active {pipe:.2g} %, MFU {percent:.1f} %: "
                "most products did not run on tensor cores, whose peak the MFU takes"
            )
            made.append((row, weak_scaling.flag("not-on-tensor-cores", text)))
    return made


def _entry(row: Row, declared: Mapping[str, Any], names: Sequence[str], peaks: Peaks) -> Mfu:
    entry: dict[str, Any] = {
        "case": row["case"],
        "label": row["label"],
        "unit": row["unit"],
        **dict.fromkeys(("flop", "tflops", "peak_tflops", "peak_of", "mfu", "reason")),
    }
    try:
        entry["flop"] = flops.of_case(declared, row)
        entry["tflops"] = cast(float, row["median"]) / row["devices"] * entry["flop"] / TERA
        known = _reported(row) if not names else None
        entry["peak_tflops"], entry["peak_of"] = known or _peak(row, declared, names, peaks)
        entry["mfu"] = entry["tflops"] / entry["peak_tflops"]
    except flops.FlopsError as error:
        entry["reason"] = str(error)
    return cast(Mfu, entry)


def _reported(row: Row) -> tuple[float, str] | None:
    """Return the peak that all runs of a row took for their MFU and what it is of, None without one."""
    reported = [run.get("self_reported") or {} for run in row["runs"]]
    values = {(each.get("peak_tflops"), each.get("peak_of")) for each in reported}
    try:
        [(peak, of)] = values
        kind, dtype, name = str(of).split("-", 2)
        return float(peak or "nan"), f"{name.replace('-', ' ')}, {kind} {dtype}, as its runs report"
    except ValueError:
        return None


def _peak(row: Row, declared: Mapping[str, Any], names: Sequence[str], peaks: Peaks) -> tuple[float, str]:
    """Return the peak of the row's device and what it is of; raise FlopsError where it is not known."""
    if row["device"] == "cpu":
        raise flops.FlopsError("there is no peak of a CPU to compare with")
    if len(names) != 1:
        found = (
            f"the nodes have several kinds of GPU ({', '.join(names)})"
            if names
            else "no record names the GPUs"
        )
        raise flops.FlopsError(found)
    known = next((each for pattern, each in peaks.items() if re.fullmatch(pattern, names[0])), None)
    if known is None:
        raise flops.FlopsError(f"data/gpus.csv has no {names[0]}")
    kind = row["dtype"]
    if kind == "fp32" and "tf32" in known and flops.tensor_cores(declared, row):
        kind = "tf32"
    if kind not in known:
        raise flops.FlopsError(f"data/gpus.csv has no peak of {names[0]} in {kind}")
    return known[kind], f"{names[0]}, dense {kind}"
