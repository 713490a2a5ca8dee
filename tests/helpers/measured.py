# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The results of the campaigns in docs/results, as report.yml makes them; each archive is read once."""

from __future__ import annotations

import functools
import json
import shutil
from pathlib import Path

from run_module import call_module

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs/results"
MICROBENCH = FOLDER / "h200-2026-11-21/microbench"


def campaigns(pattern="*"):
    """Return the names of the measured campaigns below folders whose name has this pattern."""
    archives = sorted(FOLDER.glob(f"{pattern}/*/runs.tar.xz"))
    return [archive.parent.relative_to(FOLDER).as_posix() for archive in archives]


def results(name):
    """Return a copy of the results.json of a campaign, such as h200x4-2026-11-21/scaling."""
    return json.loads(_written(name))


def micro_benchmarks(root):
    """Return a copy of the measured micro-benchmarks at its place below `root`, with its report."""
    import microbench_report

    copy = root / MICROBENCH.relative_to(ROOT)
    shutil.copytree(MICROBENCH, copy)
    data = {name: str(ROOT / "data" / f"{name}.csv") for name in ("microbench-published", "gpus")}
    done = call_module(
        microbench_report,
        path=str(copy),
        published=data["microbench-published"],
        gpus=data["gpus"],
        templates=str(ROOT / "templates"),
    )
    assert done["unmeasured"] == [], done
    return copy


@functools.cache
def _tables():
    from ansible.module_utils.scalebook.files import read_table
    from ansible.module_utils.scalebook.judge import mfu
    from ansible.module_utils.scalebook.workloads import load_workloads

    return load_workloads([str(ROOT / "roles")]), read_table(ROOT / "data/gpus.csv", mfu.read_peaks)


@functools.cache
def _written(name):
    from ansible.module_utils.scalebook.judge.results import build_results
    from ansible.module_utils.scalebook.store.load import load_campaign

    workloads, peaks = _tables()
    return json.dumps(build_results(load_campaign(FOLDER / name), workloads, peaks=peaks))
