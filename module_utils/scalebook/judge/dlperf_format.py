# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""DLPerf's own result format, digit for digit, and its published table.

Rules of TensorFlow/bert/extract_tensorflow_logs_time.py (Oneflow-Inc/DLPerf): the speed of a run is
rounded to 2 decimals before anything is made of it; average and median are rounded to 2; the speedup
is the quotient of the two rounded medians, rounded to 2.  Where DLPerf has no 1n1g it prints a
speedup of 1.0; here it is None.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from ansible.module_utils.scalebook.contracts import GROUP_FIELDS, Group, Row

Figures = dict[str, Any]


def round2(value: float) -> float:
    """Round to 2 decimals as numpy does, which DLPerf's median and speedup go through.

    numpy scales, rounds to even and scales back, so 2.675 gives 2.68 where Python's round gives 2.67.
    """
    return round(value * 100) / 100


def figures(rates: Sequence[float], bsz: int, baseline: Sequence[float] | None) -> Figures:
    """Return DLPerf's entry of one case.

    `rates` are the samples/s of its good runs, `baseline` those of 1n1g, None or empty without one.
    """
    # Rounded by Python, as the script rounds what it read from one file.
    speeds = [round(rate, 2) for rate in rates]
    middle = round2(median(speeds))
    base = round2(median(round(rate, 2) for rate in baseline)) if baseline else 0.0
    return {
        "average_speed": round(sum(speeds) / len(speeds), 2),
        "batch_size_per_device": bsz,
        "median_speed": middle,
        "speedup": round2(middle / base) if base else None,
    }


def result(rows: Iterable[Row]) -> dict[str, dict[str, Figures]]:
    """Return `{model: {"1n1g": entry, …}}` of the rows that have a number.

    A row without a good run is left out: the format has no place for "not measured".
    """
    out: dict[str, dict[str, Figures]] = {}
    for row in rows:
        if row["dlperf"] is not None:
            out.setdefault(str(row["model"]), {})[str(row["label"])] = dict(row["dlperf"])
    return out


def result_files(groups: Sequence[Group], name: str = "") -> dict[str, list[int]]:
    """Return file name -> indices of the groups that belong in it.

    A campaign (`name` empty) gets one file per group,
    `<workload>_<model>_bz<bsz>[_<dtype> unless fp32][_xla]_result.json`.  An import gets DLPerf's
    `<name>_result.json` with all models in it, or one file per batch size and precision, since
    DLPerf's keys cannot hold two of them.
    """
    if name:
        variants = sorted({_variant(group) for group in groups})
        stems = [
            name + (f"_b{g['bsz']}_{g['dtype']}{_suffix(g)}" if len(variants) > 1 else "") for g in groups
        ]
        keys = [str(_variant(group)) for group in groups]
    else:
        stems = [
            f"{g['workload']}_{g['model']}_bz{g['bsz']}"
            + ("" if g["dtype"] == "fp32" else f"_{g['dtype']}")
            + _suffix(g)
            for g in groups
        ]
        keys = [str(index) for index in range(len(groups))]
    key_of_file: dict[str, str] = {}
    files: dict[str, list[int]] = {}
    for index, (stem, key) in enumerate(zip(stems, keys, strict=True)):
        file = base = re.sub(r"[^A-Za-z0-9._-]", "_", stem)
        count = 1
        # Groups that differ in what the name does not say (device, settings) must not overwrite each other.
        while key_of_file.setdefault(file, key) != key:
            count += 1
            file = f"{base}_{count}"
        files.setdefault(f"{file}_result.json", []).append(index)
    return files


def _variant(group: Group) -> tuple[Any, ...]:
    return tuple(str(group.get(field)) for field in GROUP_FIELDS if field not in ("workload", "model"))


def _suffix(group: Group) -> str:
    return ("_xla" if group["xla"] else "") + (
        f"_acc{group['accumulation']}" if group["accumulation"] != 1 else ""
    )
