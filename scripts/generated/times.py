# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The table of docs/how-to/time.md: how long the recorded runs took, from start to start."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from ansible.module_utils.scalebook.contracts import ENOUGH_RUNS
from ansible.module_utils.scalebook.judge.campaign import Campaign

from generated.text import table, with_table

PAGE = "docs/how-to/time.md"
PAUSE = 200
"""Seconds from a start to the next one above which somebody paused."""
GPUS = (1, 2, 4)


class Took(NamedTuple):
    """How many seconds passed from the start of a run to that of the next one, and its window."""

    workload: str
    compiled: bool
    devices: int
    seconds: float
    window: float


def durations(campaign: Campaign) -> Iterator[Took]:
    """Yield how long the runs on GPUs took, but for the last and those beside which another host measured."""
    started = [
        (datetime.fromisoformat(run["started"].rstrip("Z")), run) for run in campaign.runs if run["started"]
    ]
    for (start, run), (following, _) in pairwise(sorted(started, key=lambda pair: pair[0])):
        case, seconds = campaign.cases[run["case"]], (following - start).total_seconds()
        window = run["seconds"] or 0.0
        if case["device"] == "gpu" and window < seconds < PAUSE:
            yield Took(case["workload"], case["xla"], case["nodes"] * case["gpus"], seconds, window)


def lines(every: Iterable[Took]) -> Iterator[tuple[str, ...]]:
    """Yield a line per workload, compiled or not: the median per number of GPUs, and of all windows."""
    kinds: dict[tuple[str, bool], list[Took]] = {}
    for took in every:
        kinds.setdefault((took.workload, took.compiled), []).append(took)
    for (workload, compiled), runs in sorted(kinds.items()):
        by_gpus = [[took.seconds for took in runs if took.devices == count] for count in GPUS]
        medians = [
            f"{statistics.median(seconds):.0f}" if len(seconds) >= ENOUGH_RUNS else "–" for seconds in by_gpus
        ]
        window = f"{statistics.median(took.window for took in runs):.0f}"
        if set(medians) != {"–"}:
            yield workload, "yes" if compiled else "no", *medians, window


def files(campaigns: Iterable[Campaign]) -> dict[str, str]:
    """Return the page with its table as the archives are."""
    every = [took for campaign in campaigns for took in durations(campaign)]
    head = (
        "workload",
        "compiled",
        *(f"{count} GPU{'s' * (count > 1)}, s" for count in GPUS),
        "of it the window, s",
    )
    new_table = table(head, lines(every))
    return with_table(PAGE, "times", new_table)
