# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What is there of a campaign's runs: which are settled, and where attempts that do not count are kept."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path


def status(directory: Path, case: str, repeat: int) -> str | None:
    """Return the status of a run of the campaign in `directory`, None without a readable record."""
    try:
        record = json.loads((directory / "runs" / case / str(repeat) / "result.json").read_bytes())
        return str(record["status"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # an unreadable record proves nothing: the run is measured again


def statuses(directory: Path, runs: Iterable[tuple[str, int]]) -> dict[tuple[str, int], str]:
    """Return (case, repeat) -> status of those `runs` that have a record."""
    found = {run: status(directory, *run) for run in runs}
    return {run: said for run, said in found.items() if said is not None}


def set_aside(directory: Path, case: str, repeat: int) -> None:
    """Move what an attempt at a run left to failed/<case>/<repeat>-<n>: none is lost, none mixed.

    A log that an attempt left behind must never be read as that of the next one.  Of a run that was
    skipped there is nothing to keep.
    """
    left = directory / "runs" / case / str(repeat)
    if not left.exists():
        return
    if status(directory, case, repeat) == "skipped":
        shutil.rmtree(left)
        return
    kept = directory / "failed" / case
    kept.mkdir(parents=True, exist_ok=True)
    number = max((int(path.name.partition("-")[2]) for path in kept.glob(f"{repeat}-*")), default=0)
    left.rename(kept / f"{repeat}-{number + 1}")
