# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What there is to choose from: every measured or published row with its rate and hardware."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

NOT_RECORDED = "not recorded"


class Option(TypedDict):
    """One way to train: a workload with a precision and a batch on a number of devices.

    `slowest` to `fastest` is the range of the rates of its `runs` runs, per second in `unit`; of one run, and
    of a published row, all three rates are equal.  `gpu` is the model of the devices, None on CPUs and
    NOT_RECORDED where no record says it.  `joules` is the energy of the GPUs per unit, None where it was
    not measured.  `source` is the campaign, or what published the row.
    """

    name: str
    source: str
    family: str
    workload: str
    model: str
    gpu: str | None
    nodes: int
    gpus: int
    bsz: int
    dtype: str
    xla: bool
    unit: str
    rate: float
    slowest: float
    fastest: float
    runs: int
    efficiency: float | None
    joules: float | None


class OptionError(ValueError):
    """Results that no options can be read from."""


def of_campaign(results: Mapping[str, Any]) -> list[Option]:
    """Return the options of a campaign's results.json: its rows that have a valid run."""
    families = {group["id"]: str(group.get("family", "")) for group in results["groups"]}
    compilers = {group["id"]: str(group.get("compiler", "XLA")) for group in results["groups"]}
    joules = {
        entry["case"]: entry["mean"]
        for entry in results.get("utilisation") or ()
        if entry["quantity"] == "gpu_energy"
    }
    gpu = gpu_model(results.get("hardware") or ())
    return [
        {
            "name": name_of(row, compilers[row["group"]]),
            "source": str(results["campaign"]),
            "family": families[row["group"]],
            "workload": row["workload"],
            "model": row["model"],
            "gpu": (gpu or NOT_RECORDED) if row["device"] == "gpu" else None,
            "nodes": row["nodes"],
            "gpus": row["gpus"],
            "bsz": row["bsz"],
            "dtype": row["dtype"],
            "xla": row["xla"],
            "unit": row["unit"],
            "rate": row["median"],
            "slowest": row["min"],
            "fastest": row["max"],
            "runs": row["good"],
            "efficiency": row["efficiency"],
            "joules": joules.get(row["case"]),
        }
        for row in results["rows"]
        if row["median"]
    ]


def gpu_model(hardware: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the model of the GPUs of all nodes; None where they differ, have none or it is not recorded."""
    models = {str(gpu["name"]) for entry in hardware for gpu in entry.get("gpus") or ()}
    return models.pop() if len(models) == 1 else None


def name_of(row: Mapping[str, Any], compiler: str) -> str:
    """Return the name of an option, such as `tf2_bert 1n1g b64 fp16 XLA`."""
    words = [row["workload"], f"{row['nodes']}n{row['gpus']}g", f"b{row['bsz']}", row["dtype"]]
    return " ".join(words + [compiler] * bool(row["xla"]))


COLUMNS = ("row", "gpu", "gpus", "dtype", "bsz_per_device", "train_samples_per_s")


def published_by_trainer(lines: Iterable[str]) -> list[Option]:
    """Return the options of data/hf-trainer-published.csv, whose rows are runs of HF Trainer on one node.

    Efficiency is against one GPU of the same model, precision and batch.  The model is the one that has the
    184,551,780 parameters of these runs.
    """
    reader = csv.DictReader(lines)
    missing = set(COLUMNS) - set(reader.fieldnames or ())
    if missing:
        raise OptionError("the published table has no column " + ", ".join(sorted(missing)))
    rows = list(reader)
    alone = {key(row): float(row["train_samples_per_s"]) for row in rows if row["gpus"] == "1"}
    found: list[Option] = []
    for row in rows:
        rate, gpus = float(row["train_samples_per_s"]), int(row["gpus"])
        one = alone.get(key(row))
        found.append(
            {
                "name": f"{row['row']} {row['dtype']}",
                "source": "published: HF Trainer, Beijing Super Cloud Computing Center",
                "family": "bert",
                "workload": "hf_mlm",
                "model": "deberta-v3-base",
                "gpu": row["gpu"],
                "nodes": 1,
                "gpus": gpus,
                "bsz": int(row["bsz_per_device"]),
                "dtype": row["dtype"],
                "xla": False,
                "unit": "samples",
                "rate": rate,
                "slowest": rate,
                "fastest": rate,
                "runs": 1,
                "efficiency": rate / one / gpus if one else None,
                "joules": None,
            }
        )
    return found


def key(row: Mapping[str, str]) -> tuple[str, str, str]:
    """Return what a row of the published table shares with the one that it is a multiple of."""
    return row["gpu"], row["dtype"], row["bsz_per_device"]
