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
from ansible.module_utils.scalebook.contracts import Hardware, Message, MessageError, Mfu, Row, message
from ansible.module_utils.scalebook.workload import UNKNOWN, Workloads

TERA = 1e12
_WORDS = ("name", "pattern", "source")

Peaks = Mapping[str, Mapping[str, float]]
"""Expression for the whole name of a GPU -> dtype or tf32 -> dense peak in TFLOP/s, and its memory."""


class PeakError(MessageError):
    """A peak that is not known; `message` says why."""


def read_peaks(lines: Iterable[str]) -> dict[str, dict[str, float]]:
    """Return the figures of data/gpus.csv; a GPU has those whose pattern matches its whole name."""
    return {
        row["pattern"]: {key: float(text) for key, text in row.items() if key not in _WORDS and text}
        for row in csv.DictReader(lines)
    }


def of_gpu(peaks: Peaks, name: str) -> Mapping[str, float] | None:
    """Return the figures of the GPU that the driver calls `name`, None where it is not known."""
    return next((each for pattern, each in peaks.items() if re.fullmatch(pattern, name)), None)


def tabulate(
    rows: Iterable[Row],
    hardware: Iterable[Hardware],
    workloads: Workloads,
    peaks: Peaks | None = None,
) -> list[Mfu]:
    """Return an entry for each row with a rate whose workload declares `flops`.

    What is not known is None; `reason` says why.
    """
    names = sorted({gpu["name"] for entry in hardware for gpu in entry.get("gpus") or ()})
    return [
        _entry(row, declared, names, peaks or {})
        for row in rows
        if row["median"] is not None and (declared := workloads.get(row["workload"], UNKNOWN).flops)
    ]


def on_tensor_cores(peak_of: Message) -> bool:
    """Return whether a peak is one of tensor cores."""
    values = peak_of["values"].get("peak", peak_of)["values"]
    return bool(values.get("precision") != "fp32")


def _entry(row: Row, declared: flops.Flops, names: Sequence[str], peaks: Peaks) -> Mfu:
    entry: dict[str, Any] = {
        "case": row["case"],
        "label": row["label"],
        "unit": row["unit"],
        **dict.fromkeys(("flop", "tflops", "peak_tflops", "peak_of", "mfu", "reason")),
    }
    if row["model"] not in declared.models:
        return cast(Mfu, {**entry, "reason": message("mfu.unknown-model", model=row["model"])})
    try:
        entry["flop"] = flops.of_case(declared, row)
        entry["tflops"] = cast(float, row["median"]) / row["devices"] * entry["flop"] / TERA
        reported_peak = _reported(row) if not names else None
        entry["peak_tflops"], entry["peak_of"] = reported_peak or _peak(row, declared, names, peaks)
        entry["mfu"] = entry["tflops"] / entry["peak_tflops"]
    except flops.UnknownNameError as error:
        entry["reason"] = message("mfu.no-value", name=error.name)
    except flops.FlopsError as error:
        entry["reason"] = message("text", text=str(error))
    except PeakError as error:
        entry["reason"] = error.message
    return cast(Mfu, entry)


def _reported(row: Row) -> tuple[float, Message] | None:
    """Return the peak that all runs of a row took for their MFU and what it is of, None without one."""
    reported = [run.get("self_reported") or {} for run in row["runs"]]
    values = {(each.get("peak_tflops"), each.get("peak_of")) for each in reported}
    try:
        [(peak, source)] = values
        kind, dtype, name = str(source).split("-", 2)
        gpu = name.replace("-", " ")
        dense = message("mfu.dense", gpu=gpu, precision=dtype)
        named = dense if kind == "dense" else message("text", text=f"{gpu}, {kind} {dtype}")
        return float(peak or "nan"), message("mfu.reported", peak=named)
    except ValueError:
        return None


def _peak(row: Row, declared: flops.Flops, names: Sequence[str], peaks: Peaks) -> tuple[float, Message]:
    """Return the peak of the row's device and what it is of; raise PeakError where it is not known."""
    if row["device"] == "cpu":
        raise PeakError("mfu.cpu")
    if not names:
        raise PeakError("mfu.no-gpus")
    if len(names) > 1:
        raise PeakError("mfu.several-gpus", names=list(names))
    own_peaks = of_gpu(peaks, names[0])
    if own_peaks is None:
        raise PeakError("mfu.unknown-gpu", gpu=names[0])
    kind = row["dtype"]
    if kind == "fp32" and "tf32" in own_peaks and flops.tensor_cores(declared, row):
        kind = "tf32"
    if kind not in own_peaks:
        raise PeakError("mfu.unknown-precision", gpu=names[0], precision=kind)
    return own_peaks[kind], message("mfu.dense", gpu=names[0], precision=kind)
