# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The results of the campaigns in docs/results, as report.yml makes them; each archive is read once."""

from __future__ import annotations

import csv
import functools
import json
import shutil
from pathlib import Path

from run_module import call_module

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs/results"
MICROBENCH = "h200-2026-11-21/microbench"


def campaigns(pattern="*"):
    """Return the names of the measured campaigns below folders whose name has this pattern.

    They are those of numbers.csv, which test_golden.py compares with the archives: these take long to open.
    """
    names = set()
    for sheet in FOLDER.glob(f"{pattern}/numbers.csv"):
        lines = csv.DictReader(sheet.read_text().splitlines())
        names |= {f"{sheet.parent.name}/{line['campaign']}" for line in lines}
    return sorted(names)


@functools.cache
def source(name):
    """Return the files of a campaign, or of micro-benchmarks, in their archive."""
    from ansible.module_utils.scalebook.store.source import open_archive

    return open_archive(FOLDER / name)


def unpack(name, top):
    """Write the files of a campaign, or of micro-benchmarks, to the directory `top`, and return it."""
    packed = source(name)
    for file in [*packed.covered(), "manifest.json"]:
        (top / file).parent.mkdir(parents=True, exist_ok=True)
        (top / file).write_bytes(packed.read(file))
    return top


def results(name):
    """Return a copy of the results.json of a campaign, such as h200x4-2026-11-21/scaling."""
    return json.loads(_written(name))


def micro_benchmarks(root):
    """Return where the report on the measured micro-benchmarks is, of a copy of their archive in `root`."""
    import microbench_report

    archive = FOLDER / MICROBENCH.partition("/")[0] / "runs.tar.xz"
    copy = root / "docs/results" / MICROBENCH
    copy.parent.mkdir(parents=True)
    shutil.copy(archive, copy.parent)
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
    from ansible.module_utils.scalebook.store import manifest
    from ansible.module_utils.scalebook.store.load import read_source

    workloads, peaks = _tables()
    campaign = read_source(source(name), files=manifest.files_of(source(name)))
    return json.dumps(build_results(campaign, workloads, peaks=peaks))
