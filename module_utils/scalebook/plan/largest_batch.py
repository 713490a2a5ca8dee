# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The search for the largest batch per device that does not run out of memory (`bsz=max`).

It doubles the workload's own batch until a run is out of memory, and then halves the distance between the
largest batch that ran and the smallest that did not, in multiples of STEP.  All of this is done at the first
topology of the campaign.  A batch needs other memory with other devices (buffers of the gradients, states
that are split), so the answer is tried at every further topology, and lowered in the same way where it does
not run.  All topologies are then measured with one batch: rows of different batches have no speedup.

Nothing is kept but the records of the runs: the same outcomes always lead to the same next run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ansible.module_utils.scalebook.contracts import BatchSearch, Case, Message, Trial, message, vary_case
from ansible.module_utils.scalebook.plan.parameters import LARGEST_BATCH

STEP = 8
"""Batches are multiples of this: tensor cores want it, and a finer answer is worth no run."""

STEPS = {"warmup": 2, "window": 2}
"""The steps of a search run.  From the second on, the states of the optimizer are in memory as well."""

DECIDED = {"ok": True, "oom": False}
"""Whether a batch fits, by the status of its run; a run that ended otherwise does not tell."""


class Outcome(NamedTuple):
    """What became of a search run."""

    status: str
    reason: Message | None = None


def next_batch(fits: Mapping[int, bool], first: int, grows: bool = True) -> int | None:
    """Return the batch to try next at one topology, None when it is known which one is the largest.

    `fits` says of each batch that was tried whether it ran, `first` is the one to begin with.  Where the
    batch may not grow, `first` is the answer if it runs.
    """
    good, bad = bounds(fits)
    if bad is None:
        next_size = 2 * good if good else first
        return next_size if next_size <= LARGEST_BATCH and (grows or not good) else None
    middle = (good + bad) // 2 // STEP * STEP
    between = (batch for batch in (middle, middle + STEP) if good < batch < bad)
    return next(between, None)


def bounds(fits: Mapping[int, bool]) -> tuple[int, int | None]:
    """Return the largest batch that ran, 0 without one, and the smallest that did not, None without one."""
    bad = min((batch for batch, fitted in fits.items() if not fitted), default=None)
    return max(
        (batch for batch, fitted in fits.items() if fitted and (bad is None or batch < bad)), default=0
    ), bad


def search(cases: Sequence[Case], limit: int, outcome: Callable[[str], Outcome | None]) -> BatchSearch:
    """Return where the search for the largest batch stands.

    `cases` are one of each topology, with the batch to begin with; `limit` is how many runs each topology
    may take, and `outcome` returns what became of the search run of a case by name, None if it is to be made.
    """
    result: BatchSearch = {
        "workload": cases[0]["workload"],
        "model": cases[0]["model"],
        "device": cases[0]["device"],
        "dtype": cases[0]["dtype"],
        "xla": cases[0]["xla"],
        "accumulation": cases[0]["accumulation"],
        "settings": cases[0]["settings"],
        "points": [case["label"] for case in cases],
        "first": cases[0]["bsz"],
        "limit": limit,
        "trials": [],
        "next": None,
        "largest": None,
        "failed": None,
        "failed_at": None,
        "reason": None,
    }
    largest = 0
    for case in cases:
        largest = _largest_of_case(case, largest, result, outcome)
        if not largest:
            return result
    result["largest"] = largest
    return result


def _largest_of_case(
    case: Case, largest: int, search: BatchSearch, outcome: Callable[[str], Outcome | None]
) -> int:
    """Return the largest batch at the topology of `case`, 0 if there is none or it is not known yet.

    `largest` is that of the topologies before, 0 at the first.  Trials and reasons are noted in `search`.
    """
    fits: dict[int, bool] = {}
    while (batch := next_batch(fits, largest or case["bsz"], grows=not largest)) is not None:
        if len(fits) == search["limit"]:
            search["reason"] = message("skipped.search-limit", limit=search["limit"], batch=batch)
            break
        tried = vary_case(case, bsz=batch, **STEPS)
        became = outcome(tried["name"])
        if became is None:
            search["next"] = tried
            return 0
        search["trials"].append(_trial(tried, became))
        if became.status not in DECIDED:
            values = {"batch": batch, "point": case["label"], "status": became.status}
            search["reason"] = message("skipped.search-failed", **values, why=became.reason)
            return 0
        fits[batch] = DECIDED[became.status]
    good, bad = bounds(fits)
    if bad is not None:
        search["failed"], search["failed_at"] = bad, case["label"]
    if not good:
        search["reason"] = search["reason"] or message("skipped.search-oom", batch=bad, point=case["label"])
    return good


def _trial(case: Case, became: Outcome) -> Trial:
    return {
        "case": case["name"],
        "label": case["label"],
        "bsz": case["bsz"],
        "status": became.status,
        "reason": became.reason,
    }
