# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Rates of our own beside published ones of language models, by row and by group of a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ansible.module_utils.scalebook import hardware
from ansible.module_utils.scalebook.contracts import Group, Hardware, Row, message
from ansible.module_utils.scalebook.judge.language_models import Rate, beside, gpu_of
from ansible.module_utils.scalebook.workload import UNKNOWN, Workload, Workloads

UNNAMED = "–"
"""The GPU of a row whose records do not name it."""


class Table(NamedTuple):
    """The published rates, and the patterns of GPUs by their names."""

    rates: Sequence[Rate]
    gpus: Mapping[str, str]


def rate_of(
    row: Row, entries: Sequence[Hardware], declared: Workload, gpus: Mapping[str, str], source: str
) -> Rate | None:
    """Return the rate of a row whose workload declares `published`, None for another one.

    A sample is a sequence. Settings that a log which was imported does not show are unknown.
    """
    settings = declared.settings_of(row.get("settings"))
    seq = declared.sample_size(settings)
    if not declared.published or row.get("device") == "cpu" or not row["median"] or not seq:
        return None
    gpu = hardware.model(entries, row)
    return Rate(
        source=source,
        date="",
        family=declared.published,
        model=row["model"],
        seq=seq,
        dtype=row["dtype"],
        compiled=row["xla"],
        gpu=gpu_of(gpus, gpu) or gpu or UNNAMED,
        power_w=None,
        gpus=row["devices"],
        bsz=row["bsz"],
        checkpointing=str(settings.get("checkpointing", "")),
        parallel="",
        tokens_per_s=row["median"] * seq / row["devices"],
        tflops=None,
        mfu=None,
        link="",
    )


def tabulate(
    groups: Iterable[Group],
    rows: Iterable[Row],
    entries: Sequence[Hardware],
    workloads: Workloads,
    table: Table,
) -> list[dict[str, Any]]:
    """Return what was published beside each group whose workload declares `published`, or why nothing is."""
    by_case = {row["case"]: row for row in rows}
    compared = []
    for group in groups:
        declared = workloads.get(group["workload"], UNKNOWN)
        own = [rate_of(by_case[case], entries, declared, table.gpus, "") for case in group["rows"]]
        rates = [rate for rate in own if rate]
        pairs = beside(rates, table.rates) if rates else []
        reason = None if pairs else message("published.none" if rates else "published.no-rate")
        if declared.published:
            compared.append({"group": group["id"], "title": group["title"], "pairs": pairs, "reason": reason})
    return compared
