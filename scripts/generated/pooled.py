# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The table of docs/experiments/torchtitan_llama.md: all runs of each case on H200, of all hosts."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ansible.module_utils.scalebook import stats
from ansible.module_utils.scalebook.contracts import Case
from ansible.module_utils.scalebook.grouping import grouped, unique
from ansible.module_utils.scalebook.judge.campaign import Campaign
from ansible.module_utils.scalebook.workload import Workload, Workloads

from generated.text import table, with_table

PAGE = "docs/experiments/torchtitan_llama.md"
WORKLOAD, GPU = "torchtitan_llama", "NVIDIA H200"
ENOUGH = 5
"""Runs from which on the range of a case is useful: docs/explanation/repeats.md."""
DTYPES = ("bf16", "fp8")
HEAD = (
    *("model", "tokens", "compiled", "GPUs"),
    *(name for dtype in DTYPES for name in (f"{dtype}, tokens/s per GPU", "runs", "spread")),
    "campaigns",
)


class Measured(NamedTuple):
    """A run that counts: its case, the campaign as folder/name, and tokens per second of each GPU."""

    case: Case
    campaign: str
    rate: float


def runs(campaigns: Iterable[tuple[str, Campaign]]) -> Iterator[Measured]:
    """Yield the runs of WORKLOAD on GPU in one of DTYPES."""
    for name, campaign in campaigns:
        gpus = {gpu["name"] for entry in campaign.hardware for gpu in entry.get("gpus") or ()}
        for run in campaign.runs:
            case = campaign.cases[run["case"]]
            if (case["workload"], gpus) == (WORKLOAD, {GPU}) and case["dtype"] in DTYPES and run["rate"]:
                tokens = run["rate"] * case["settings"]["seq_length"]
                yield Measured(case, name, tokens / (case["nodes"] * case["gpus"]))


def order(case: Case) -> tuple[Any, ...]:
    """Return the place of a case in the table."""
    return case["model"], case["settings"]["seq_length"], case["xla"], case["nodes"] * case["gpus"]


def cells(measured: Sequence[Measured]) -> Iterator[str]:
    """Yield the cells of HEAD for all runs of a case in each of DTYPES."""
    model, tokens, compiled, gpus = order(measured[0].case)
    yield from (model, f"{tokens:,}", "yes" if compiled else "no", str(gpus))
    for dtype in DTYPES:
        rates = [each.rate for each in measured if each.case["dtype"] == dtype]
        yield from (
            f"{statistics.median(rates):,.0f}",
            str(len(rates)),
            f"{100 * (stats.spread(rates) or 0):.1f} %",
        )
    names = unique(each.campaign.split("/") for each in measured)
    yield " ".join(f"[{folder}](../results/{folder}/README.md#{name.lower()})" for folder, name in names)


def files(campaigns: Iterable[tuple[str, Campaign]], workloads: Workloads) -> dict[str, str]:
    """Return the page with its table as the archives are; `campaigns` are those of docs/results by name."""
    workload: Workload = workloads[WORKLOAD]

    def same(each: Measured) -> tuple[Any, ...]:
        """Return what runs of one line have in common; the window may differ."""
        settings = sorted(workload.settings_of(each.case["settings"]).items())
        return *order(each.case), each.case["nodes"], each.case["bsz"], each.case["accumulation"], *settings

    kinds = sorted(grouped(runs(campaigns), same).values(), key=lambda kind: order(kind[0].case))
    often = [
        kind
        for kind in kinds
        if all(sum(each.case["dtype"] == dtype for each in kind) >= ENOUGH for dtype in DTYPES)
    ]
    return with_table(PAGE, "pooled", table(HEAD, map(tuple, map(cells, often))))
