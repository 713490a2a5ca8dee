# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The campaigns in docs/results are what was measured, byte for byte, and few files."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import measured
import pytest
from ansible.module_utils.scalebook import workloads
from ansible.module_utils.scalebook.store import manifest
from ansible.module_utils.scalebook.workload import called_today

ROOT = Path(__file__).parents[3]
RESULTS = measured.FOLDER
WORKLOADS = workloads.load_workloads([str(ROOT / "roles")])
CAMPAIGNS = measured.campaigns()


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_every_file_is_as_its_manifest_says(name):
    source = measured.source(name)
    assert manifest.differences(manifest.read(source), manifest.files_of(source)) == []


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_no_path_of_the_machine_is_in_the_plan(name):
    plan = json.loads(measured.source(name).read("plan.json"))
    assert not plan["inventory"].startswith("/")


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_its_cases_can_be_compared_with_those_of_today(name):
    """`settings_before` has the settings that are younger than a campaign, `was` those that went."""
    differing = set()
    for row in measured.results(name)["rows"]:
        workload, settings = called_today(row["workload"], row["settings"], WORKLOADS)
        differing |= set(WORKLOADS[workload].setting_names) ^ set(settings)
    assert differing == set()


def test_the_runs_of_pytorchs_example_are_of_its_workload():
    rows = measured.results("h100x2-2026-11-25/torch")["rows"]
    (example,) = [row for row in rows if row["settings"].get("trainer") == "examples"]
    assert called_today("torch_resnet50", example["settings"], WORKLOADS)[0] == "torch_examples_resnet50"


def ignored(folder, names):
    """Return which of these files git ignores by .gitignore."""
    shutil.copy(ROOT / ".gitignore", folder)
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    check = ["git", "-C", folder, "check-ignore", "--stdin"]
    return set(subprocess.run(check, input="\n".join(names), capture_output=True, text=True).stdout.split())


def tracked():
    """Return the files of docs/results that git has, by their path in the repository."""
    listed = ["git", "-C", ROOT, "ls-files", "docs/results"]
    return subprocess.run(listed, capture_output=True, text=True).stdout.split()


def test_what_is_made_beside_the_archives_is_ignored(tmp_path):
    made = [f"docs/results/{name}/report/report.md" for name in CAMPAIGNS]
    made += [f"docs/results/{path.parent.name}/{path.stem}/evaluation.md" for path in RESULTS.glob("*/*.yml")]
    assert set(made) - ignored(tmp_path, made) == set()
    assert ignored(tmp_path, tracked()) == set()


def test_the_report_of_the_micro_benchmarks_leaves_what_was_measured_as_it_was(tmp_path):
    copy = measured.micro_benchmarks(tmp_path)
    archive = Path(measured.MICROBENCH).parent / "runs.tar.xz"
    assert (copy.parent / "runs.tar.xz").read_bytes() == (RESULTS / archive).read_bytes()
    made = {str(path.relative_to(tmp_path)) for path in copy.iterdir()}
    assert len(made) >= 3 and made - ignored(tmp_path, made) == set()


def test_the_micro_benchmarks_are_as_their_manifests_say():
    tops = [f"{archive.parent.name}/microbench" for archive in RESULTS.glob("*/runs.tar.xz")]
    sources = [source for top in tops if (source := measured.source(top))]
    assert len(sources) == 2
    for source in sources:
        assert manifest.differences(manifest.read(source), manifest.files_of(source)) == []


def test_the_results_are_few_files_and_none_is_rendered():
    files = tracked() or [str(path) for path in RESULTS.rglob("*") if path.is_file()]
    folders = {name.partition("/")[0] for name in CAMPAIGNS}
    assert len(CAMPAIGNS) >= 27
    # README.md, numbers.csv and an archive each; five archives of single campaigns; five files about all.
    assert len(files) <= 3 * len(folders) + 10
    assert {Path(name).suffix for name in files} == {".md", ".csv", ".xz", ".yml"}
    lines = [line for name in files if not name.endswith(".xz") for line in (ROOT / name).open()]
    assert len(lines) < 6000
