# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""hf_mlm for real: installed from its lock, two nodes under torchrun, a small epoch, and the report on it."""

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FEW = "hf_mlm_train_samples=256 hf_mlm_eval_samples=64"

pytestmark = pytest.mark.slow


def play(playbook, extra):
    words = ["ansible-playbook", playbook, "-e", f"stack_name=modern framework=hf_mlm {extra}"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    results = tmp_path_factory.mktemp("hf_mlm")
    play("provision.yml", "")
    play(
        "bench.yml",
        f"{FEW} nodes=2 repeats=1 campaign=real campaign_results={results} campaign_port=24740",
    )
    return results / "real"


def test_two_nodes_train_together(campaign):
    [path] = (campaign / "runs").glob("*/1/result.json")
    record = json.loads(path.read_text())
    assert (record["status"], record["reason"]) == ("ok", None)
    assert record["nodes"][0]["steps"] == [1, 2, 3, 4]


def test_the_report_has_the_row_of_the_published_table(campaign):
    text = (campaign / "report/report.md").read_text()
    assert "As hf_mlm itself reports" in text.replace("\\", "")
    assert "CPU_2x1cpu_16" in text.replace("\\", "")
