# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""hf_mlm for real: installed from its lock, two nodes under torchrun, a small epoch, and the report on it.

Then four hosts of their own, which see what is installed here.
"""

import json
import os
import subprocess

import pytest
from container_nodes import Nodes, shown
from local_nodes import HOME, ROOT, provision
from nets import free_net

NODES = Nodes(free_net("10.11.21", "10.12.21", "10.13.21", "10.14.21"))
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
    provision("hf_mlm", stack_name="modern")
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


@pytest.mark.cluster
@pytest.mark.skipif(os.geteuid() != 0, reason="containers with networks of their own need root")
def test_four_hosts_train_together(campaign, tmp_path):
    """Takes three minutes."""
    given = {
        "stack_name": "modern",
        "framework": "hf_mlm",
        "hf_mlm_train_samples": 512,
        "hf_mlm_eval_samples": 64,
    }
    NODES.up(*shown(HOME / "openmpi", HOME / "hf_mlm"))
    try:
        NODES.playbook("provision.yml", HOME, **given)
        NODES.playbook(
            "bench.yml", HOME, nodes=4, repeats=1, campaign="hosts", campaign_results=str(tmp_path), **given
        )
    finally:
        NODES.down()
    [path] = (tmp_path / "hosts/runs").glob("*/1/result.json")
    record = json.loads(path.read_text())
    assert (record["status"], record["reason"]) == ("ok", None)
