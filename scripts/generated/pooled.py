# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The table of docs/experiments/torchtitan_llama.md: all runs of each case on H200, of all hosts."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Iterator
from typing import Any

from ansible.module_utils.scalebook.contracts import Case
from ansible.module_utils.scalebook.judge.campaign import Campaign

from generated.text import ROOT, table

PAGE = "docs/experiments/torchtitan_llama.md"
MARKS = re.compile(r"(<!-- pooled: made by scripts/pages -->\n).*?(\n<!-- end of pooled -->)", re.DOTALL)
ENOUGH = 5
"""Runs from which on the range of a case is useful: docs/explanation/repeats.md."""
GPU = "NVIDIA H200"
DTYPES = ("bf16", "fp8")
HEAD = (
    *("model", "tokens", "compiled", "GPUs"),
    *(name for dtype in DTYPES for name in (f"{dtype}, tokens/s per GPU", "runs", "spread")),
    "campaigns",
)


def key(case: Case) -> tuple[Any, ...]:
    """Return what two campaigns must have in common; the window may differ.

    A setting that is empty is as one that an earlier version did not have.
    """
    settings = sorted(item for item in case["settings"].items() if item[1] != "")
    where = case["nodes"], case["gpus"]
    return *where, case["model"], case["xla"], case["bsz"], case["accumulation"], *settings


def order(case: Case) -> tuple[Any, ...]:
    """Return the place of a case in the table."""
    return case["model"], case["settings"]["seq_length"], case["xla"], case["nodes"] * case["gpus"]


def cells(rates: list[float]) -> tuple[str, str, str]:
    """Return the median, number and spread of the rates of a case."""
    median = statistics.median(rates)
    return f"{median:,.0f}", str(len(rates)), f"{100 * (max(rates) - min(rates)) / median:.1f} %"


def lines(campaigns: Iterable[tuple[str, Campaign]]) -> Iterator[tuple[str, ...]]:
    """Yield a line per case of which each precision has ENOUGH runs."""
    kinds: dict[tuple[Any, ...], tuple[Case, dict[str, list[float]], dict[str, None]]] = {}
    for name, campaign in campaigns:
        gpus = {gpu["name"] for entry in campaign.hardware for gpu in entry.get("gpus") or ()}
        for run in campaign.runs:
            case = campaign.cases[run["case"]]
            is_meant = case["workload"] == "torchtitan_llama" and case["dtype"] in DTYPES and gpus == {GPU}
            if not is_meant or run["status"] != "ok" or not run["rate"]:
                continue
            _, rates, links = kinds.setdefault(key(case), (case, {dtype: [] for dtype in DTYPES}, {}))
            tokens = run["rate"] * case["settings"]["seq_length"] / (case["nodes"] * case["gpus"])
            rates[case["dtype"]].append(tokens)
            folder, campaign_name = name.split("/")
            links[f"[{folder}](../results/{folder}/README.md#{campaign_name.lower()})"] = None
    for case, rates, links in sorted(kinds.values(), key=lambda kind: order(kind[0])):
        if min(map(len, rates.values())) >= ENOUGH:
            compiled, devices = "yes" if case["xla"] else "no", str(case["nodes"] * case["gpus"])
            measured = [cell for dtype in DTYPES for cell in cells(rates[dtype])]
            length = f"{case['settings']['seq_length']:,}"
            yield case["model"], length, compiled, devices, *measured, " ".join(links)


def files(campaigns: Iterable[tuple[str, Campaign]]) -> dict[str, str]:
    """Return the page with its table as the archives are; `campaigns` are those of docs/results by name."""
    new_table = table(HEAD, lines(campaigns))
    return {PAGE: MARKS.sub(lambda match: f"{match[1]}\n{new_table}{match[2]}", (ROOT / PAGE).read_text())}
