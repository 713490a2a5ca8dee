# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The campaigns in docs/results are what was measured, byte for byte, and few files."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from ansible.module_utils.scalebook import workloads
from ansible.module_utils.scalebook.contracts import upgrade_row
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.report import render
from ansible.module_utils.scalebook.store import manifest
from ansible.module_utils.scalebook.store.load import load_campaign
from ansible.module_utils.scalebook.store.source import ARCHIVE, open_source

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "docs" / "results"
WORKLOADS = workloads.load_workloads([str(ROOT / "roles")])
CAMPAIGNS = sorted(path.parent for path in RESULTS.glob(f"*/*/{ARCHIVE}"))


MADE_AGAIN = {"report.html", "results.csv", "results.xlsx", "environment.csv", "metrics.prom"}
"""What report.yml -e campaign_dir=DIR makes from the archive when somebody wants it, as the results in
DLPerf's format and the charts of single runs."""


def named(path: Path) -> str:
    return str(path.relative_to(RESULTS))


@pytest.fixture(params=CAMPAIGNS, ids=named)
def source(request):
    return open_source(request.param)


def test_every_file_is_as_its_manifest_says(source):
    assert manifest.differences(manifest.read(source), manifest.files_of(source)) == []


def test_no_path_of_the_machine_is_in_the_plan(source):
    assert not json.loads(source.read("plan.json"))["inventory"].startswith("/")


def test_a_report_stands_next_to_every_archive(source):
    report = source.top / "report"
    listed = json.loads((report / "results.json").read_text())["files"]
    here = {path.name for path in report.iterdir()}
    missing = set(listed) - here
    derived = {name for name in missing if re.fullmatch(r"[\w.-]+_result\.json|\w+\d\.svg", name)}
    assert missing - derived <= MADE_AGAIN
    assert here <= set(listed)


def test_its_cases_can_be_compared_with_those_of_today(source):
    """`settings_before` has the value of each setting that is younger than a campaign."""
    lacking = set()
    for row in json.loads((source.top / "report/results.json").read_text())["rows"]:
        row = upgrade_row(row)
        name, declaration = row["workload"], WORKLOADS[row["workload"]]
        today = {setting.removeprefix(f"{name}_") for setting in declaration["settings"]}
        lacking |= today - set(workloads.settings_of(declaration, row["settings"]))
    assert lacking == set()


@pytest.fixture(scope="module")
def written():
    """Return the files that report.yml writes for a campaign with many charts, by their path below ROOT."""
    top = RESULTS / "h100x2-2026-11-25" / "torch"
    made = render.files(build_results(load_campaign(top), WORKLOADS), str(ROOT / "templates"))
    return {str((top / "report" / name).relative_to(ROOT)): text for name, text in made.items()}


def ignored(folder, names):
    """Return which of these files git ignores by .gitignore."""
    shutil.copy(ROOT / ".gitignore", folder)
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    check = ["git", "-C", folder, "check-ignore", "--stdin"]
    return set(subprocess.run(check, input="\n".join(names), capture_output=True, text=True).stdout.split())


def test_what_a_report_writes_beside_the_committed_files_is_ignored(tmp_path, written):
    others = {name for name in written if not re.search(r"(report\.md|results\.json|[a-z]\.svg)$", name)}
    assert others - ignored(tmp_path, others) == set()
    assert len(others) > 20


def test_a_committed_report_is_not_ignored(tmp_path, written):
    kept = [name for name in written if re.search(r"(report\.md|results\.json|[a-z]\.svg)$", name)]
    assert ignored(tmp_path, kept) == set()


def test_a_report_shows_no_chart_that_is_not_committed(tmp_path, written):
    [page] = [text for name, text in written.items() if name.endswith("report.md")]
    folder = "docs/results/h100x2-2026-11-25/torch/report"
    assert ignored(tmp_path, [f"{folder}/{name}" for name in re.findall(r"!\[.*?\]\((.*?)\)", page)]) == set()
    assert "- timeline1.svg: " in page


def test_there_are_campaigns():
    assert len(CAMPAIGNS) >= 27


def test_the_results_are_at_most_250_files():
    listed = subprocess.run(
        ["git", "-C", RESULTS, "ls-files", "-z", "."], capture_output=True, text=True
    ).stdout
    tracked = listed.split("\0")[:-1] or list(RESULTS.rglob("*"))
    assert len(tracked) <= 250
    assert not [path for path in RESULTS.rglob("runs") if path.is_dir()]
