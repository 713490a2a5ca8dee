# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The campaigns of a directory, and what the parameter baseline names among them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ansible.module_utils.scalebook.judge.baseline import LIMIT, BaselineError
from ansible.module_utils.scalebook.store.load import load_baseline
from ansible.module_utils.scalebook.store.source import ARCHIVE, open_archive

PUBLISHED = ("dlperf", "published")
"""What compare takes, not baseline."""


class Campaigns(NamedTuple):
    """Names of campaigns and imports, newest first: those that have runs, and those that only have a plan."""

    measured: list[str]
    planned: list[str]


def campaigns(results: Path) -> Campaigns:
    """Return the campaigns in the directory `results`; a plan alone is what plan_only and preflight leave."""
    plans = [path for path in results.glob("*/plan.json") if not path.parent.name.startswith(".")]
    tops = [path.parent for path in sorted(plans, key=lambda path: path.stat().st_mtime, reverse=True)]
    measured = [top.name for top in tops if (top / "runs").is_dir() or (top / ARCHIVE).is_file()]
    return Campaigns(measured, [top.name for top in tops if top.name not in measured])


def find_baseline(named: str, path: Path, results: Path) -> Path:
    """Return what baseline=`named` means, a campaign in `results` or else `path`, once it has been read.

    Raises ValueError that says why it cannot be compared with.
    """
    names = campaigns(results)
    if named in names.measured:
        path = results / named
    elif not path.exists() and not open_archive(path):
        raise BaselineError(_missing(named, results, names))
    load_baseline(path, LIMIT)
    return path


def _missing(named: str, results: Path, campaigns_there: Campaigns) -> str:
    """Return why there is no baseline of this name, and which there are."""
    if named in PUBLISHED:
        return f"baseline={named}: to compare with published results, use compare={named}"
    why = "has no runs yet; it " if named in campaigns_there.planned else ""
    there = (
        f", or one of {', '.join(campaigns_there.measured)} in {results}"
        if campaigns_there.measured
        else f"; there is no campaign with runs in {results}"
    )
    return f"baseline={named}: {why}must be the path of a results.json, a campaign or a runs.tar.xz{there}"
