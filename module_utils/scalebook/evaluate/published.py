# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Published results as options beside the measured ones: those of DLPerf, and runs of HF Trainer."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from typing import Any

from ansible.module_utils.scalebook.evaluate.options import NOT_RECORDED, Option, variant_of
from ansible.module_utils.scalebook.published import SIZES, read
from ansible.module_utils.scalebook.workload import Workloads

TRAINER, DLPERF, INSIGHTFACE = "hf_trainer", "dlperf", "insightface"
SOURCES = {name: f"evaluation.published-{name.replace('_', '-')}" for name in (TRAINER, DLPERF, INSIGHTFACE)}
"""What can be offered, and the code of what the document calls it."""
DLPERF_GPU = "Tesla V100-SXM2-16GB"
TAKEN = ("nodes", "gpus", "bsz", "dtype", "xla", "variant", "speedup", "efficiency")
"""What an option has as the row of DLPerf has it."""
COLUMNS = ("row", "gpu", "gpus", "dtype", "bsz_per_device", "train_samples_per_s")


class PublishedError(ValueError):
    """A published table that no options can be read from."""


def of_dlperf(lines: Iterable[str], workloads: Workloads, table: str = DLPERF) -> list[Option]:
    """Return the options of a table of DLPerf's: medians, of which no range is published.

    Key `dlperf` of the declarations says which family a published model belongs to, and what it is called
    here.
    """
    about = _models(workloads)
    collected = []
    for row in read(lines):
        if row["model"] not in about:
            raise PublishedError(
                f"no workload names {row['model']} in key dlperf of its declaration: its family is unknown"
            )
        family, model, task, unit = about[row["model"]]
        size = str(SIZES.get(row["model"], NOT_RECORDED))
        source = SOURCES[table]
        collected.append(
            _row(row, source=source, family=family, model=model, task=task, unit=unit, size=size)
        )
    return collected


def _row(listed: Mapping[str, Any], **facts: str) -> Option:
    """Return the option of a row of DLPerf's; `facts` is what the table does not say."""
    compiler = "XLA" if listed["xla"] else ""
    words = [f"{listed['framework']} {listed['label']} b{listed['bsz']} {listed['dtype']}"]
    name = " ".join(
        [*words, *filter(None, [compiler, f"({listed['variant']})" if listed["variant"] else ""])]
    )
    return _bare(
        name,
        listed["rate"],
        group=listed["source"].rsplit("/", 1)[0],
        workload=listed["framework"],
        gpu=DLPERF_GPU,
        compiler=compiler,
        runs=0,
        **{each: listed[each] for each in TAKEN},
        **facts,
    )


def _models(workloads: Workloads) -> dict[str, tuple[str, str, str, str]]:
    """Return family, our name, task and unit of every model that DLPerf published.

    The counterparts of published models come first: `others` of a family have no name here.
    """
    about: dict[str, tuple[str, str, str, str]] = {}
    comparable = [
        (each, each.dlperf) for each in workloads.values() if each.dlperf and not each.dlperf.differs
    ]
    for each, names in comparable:
        for ours, theirs in names.models.items():
            about.setdefault(theirs, (each.family, ours, each.task, each.unit))
    for each, names in comparable:
        for theirs in names.others:
            about.setdefault(theirs, (each.family, theirs, each.task, each.unit))
    return about


def of_trainer(lines: Iterable[str]) -> list[Option]:
    """Return the options of data/hf-trainer-published.csv, whose rows are runs of HF Trainer on one node.

    Efficiency is against one GPU of the same model, precision and batch.  The model is the one that has the
    184,551,780 parameters of these runs.
    """
    reader = csv.DictReader(lines)
    missing = set(COLUMNS) - set(reader.fieldnames or ())
    if missing:
        raise PublishedError("the published table has no column " + ", ".join(sorted(missing)))
    rows = list(reader)
    rate_of_one = {_key(row): float(row["train_samples_per_s"]) for row in rows if row["gpus"] == "1"}
    return [_of_row(row, rate_of_one.get(_key(row))) for row in rows]


def _of_row(row: Mapping[str, str], rate_of_one: float | None) -> Option:
    """Return the option of a row of HF Trainer."""
    rate, gpus = float(row["train_samples_per_s"]), int(row["gpus"])
    speedup = rate / rate_of_one if rate_of_one else None
    return _bare(
        f"{row['row']} {row['dtype']}",
        rate,
        group="",
        source=SOURCES[TRAINER],
        family="bert",
        workload="hf_mlm",
        model="deberta-v3-base",
        task="pretraining",
        size=NOT_RECORDED,
        gpu=row["gpu"],
        nodes=1,
        gpus=gpus,
        bsz=int(row["bsz_per_device"]),
        dtype=row["dtype"],
        xla=False,
        compiler="",
        variant=variant_of(4),
        unit="samples",
        runs=1,
        speedup=speedup,
        efficiency=speedup / gpus if speedup else None,
    )


def _key(row: Mapping[str, str]) -> tuple[str, str, str]:
    """Return what a row of the published table shares with the one that it is a multiple of."""
    return row["gpu"], row["dtype"], row["bsz_per_device"]


def _bare(name: str, rate: float, **facts: Any) -> Option:
    """Return an option of which nothing but its rate was published."""
    option: dict[str, Any] = {
        "name": name,
        "rate": rate,
        "slowest": rate,
        "fastest": rate,
        "rates": [],
        "joules": None,
        "step_p50": None,
        "step_p95": None,
        "usage": {},
        "mfu": None,
        "bottleneck": None,
        "differing": None,
        "link": "",
        "machines": facts["nodes"],
        **facts,
    }
    return option  # type: ignore[return-value]
