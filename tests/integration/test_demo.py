# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The demo, on a small matrix: TensorFlow is installed, trains on 1 and 2 nodes, and is reported on."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CAMPAIGN = ROOT / "results/test-demo"
PROVISIONED = ROOT / ".scalebook/provisioned.json"

pytestmark = pytest.mark.slow


def demo():
    return subprocess.run(
        [
            ROOT / "scripts/demo",
            "-e",
            f"nodes=1,2 repeats=1 bsz=8 warmup=5 window=25 campaign={CAMPAIGN.name} campaign_port=15111",
        ],
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=1500,
    )


def records():
    return {path: json.loads(path.read_text()) for path in CAMPAIGN.glob("runs/*/*/result.json")}


@pytest.fixture(scope="module")
def first():
    shutil.rmtree(CAMPAIGN, ignore_errors=True)
    return demo()


def test_the_demo_ends_well(first):
    assert first.returncode == 0, (first.stdout + first.stderr)[-4000:]


def test_every_run_of_the_matrix_is_measured(first):
    done = sorted(
        (record["case"]["label"], record["repeat"], record["status"]) for record in records().values()
    )
    assert done == [("1n1g", 1, "ok"), ("2n1g", 1, "ok")]


def test_both_nodes_of_a_run_took_part(first):
    (two,) = (record for record in records().values() if record["case"]["nodes"] == 2)
    assert [node["node"] for node in two["nodes"]] == ["NODE1", "NODE2"]
    assert len({node["loss"]["last"] for node in two["nodes"]}) == 1


def test_the_report_is_written(first):
    report = CAMPAIGN / "report"
    assert {"report.md", "report.html", "results.json", "results.csv"} <= {
        path.name for path in report.iterdir()
    }
    assert re.search(r"^2n1g \| 2 \| \d", (report / "report.md").read_text(), re.M)


def test_a_second_start_installs_and_measures_nothing(first):
    before = {path: path.stat().st_mtime_ns for path in [*records(), PROVISIONED]}
    second = demo()
    assert second.returncode == 0, (second.stdout + second.stderr)[-4000:]
    assert "2 already measured" in second.stdout
    # provision.yml writes the record again whenever its roles ran.
    assert {path: path.stat().st_mtime_ns for path in [*records(), PROVISIONED]} == before


def test_the_output_fits_60_lines(first):
    assert len((first.stdout + first.stderr).splitlines()) <= 60, first.stdout
