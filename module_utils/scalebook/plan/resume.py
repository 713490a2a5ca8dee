# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Resume support: which runs have a result, how long they took, and archiving of failed attempts."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook.contracts import OLDEST_SCHEMA, Message, upgrade
from ansible.module_utils.scalebook.files import read_small
from ansible.module_utils.scalebook.json_file import decode

RUNS, SEARCH = "runs", "search"
"""Folders of a campaign: of its runs, and of the short runs that search for the largest batch."""


class ResumeError(ValueError):
    """A campaign that cannot be continued."""


def check_plan(directory: Path) -> None:
    """Raise ResumeError where the campaign in `directory` was planned by an earlier version."""
    earlier = read_object(directory / "plan.json")
    schema = earlier.get("schema")
    if isinstance(schema, int) and schema < OLDEST_SCHEMA:
        raise ResumeError(
            f"campaign={directory.name}: {directory} was planned by an earlier version of scalebook. "
            "It cannot be continued: choose another campaign name"
        )


def outcome(directory: Path, case: str, repeat: int, folder: str = RUNS) -> tuple[str, Message | None] | None:
    """Return status and reason of a run of the campaign in `directory`, None without a readable record."""
    record = upgrade(read_object(directory / folder / case / str(repeat) / "result.json"))
    # Without a readable record the run is measured again.
    return (str(record["status"]), record.get("reason")) if "status" in record else None


def status(directory: Path, case: str, repeat: int, folder: str = RUNS) -> str | None:
    """Return the status of a run of the campaign in `directory`, None without a readable record."""
    result = outcome(directory, case, repeat, folder)
    return result[0] if result else None


def statuses(directory: Path, runs: Iterable[tuple[str, int]]) -> dict[tuple[str, int], str]:
    """Return (case, repeat) -> status of those `runs` that have a record."""
    status_of = {run: status(directory, *run) for run in runs}
    return {run: each for run, each in status_of.items() if each is not None}


def earlier_seconds(results: Path, cases: Iterable[str], most: int = 5) -> dict[str, float]:
    """Return how long runs of the cases took in any campaign below `results`, on average, by case.

    The name of a case holds a hash of all that makes it, so a run of the same name measured the same.
    """
    seconds = {}
    for case in dict.fromkeys(cases):
        durations = []
        for path in sorted(results.glob(f"*/runs/{case}/*/result.json"))[:most]:
            record = read_object(path)
            job = record.get("job")
            took = job.get("seconds") if isinstance(job, dict) and record.get("status") == "ok" else None
            if isinstance(took, (int, float)):
                durations.append(float(took))
        if durations:
            seconds[case] = sum(durations) / len(durations)
    return seconds


def set_aside(directory: Path, case: str, repeat: int, folder: str = RUNS) -> None:
    """Move the files of an attempt at a run to failed/<case>/<repeat>-<n>: attempts are not lost or mixed.

    The log of one attempt must never be read as that of the next.  A skipped run leaves nothing to keep.
    """
    run_directory = directory / folder / case / str(repeat)
    if not run_directory.exists():
        return
    if status(directory, case, repeat, folder) == "skipped":
        shutil.rmtree(run_directory)
        return
    failed_directory = directory / "failed" / case
    failed_directory.mkdir(parents=True, exist_ok=True)
    number = max(
        (int(path.name.partition("-")[2]) for path in failed_directory.glob(f"{repeat}-*")), default=0
    )
    run_directory.rename(failed_directory / f"{repeat}-{number + 1}")


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file, {} where there is none that can be read."""
    try:
        return decode(read_small(path))
    except (OSError, ValueError):
        return {}
