# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A campaign on four container nodes survives what happens to nodes, links, disks and controllers.

The command a user types, real mpirun over ssh, and a scripted trainer whose throughput is known.
The limits in seconds are those of an idle machine; a loaded one gets PATIENCE times as long.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from nets import free_net

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/cluster"))

from testcluster import engine, faults, nodes  # noqa: E402
from testcluster.base import run as command  # noqa: E402
from testcluster.campaign import Campaign, wait_for  # noqa: E402

TOOLS = ROOT / "tests" / "cluster"
NET = free_net("10.11.7", "10.12.7", "10.13.7", "10.14.7")
SEED, MINUTES, PATIENCE = 4, 4, 5

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="containers with networks of their own need root"),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Four nodes with Open MPI and a mesh of ssh; the scripted trainer needs nothing else. Three minutes."""
    command([str(TOOLS / "up"), "--net", NET, "--fresh"], timeout=900)
    there = nodes.Cluster(engine.existing(), NET)
    log = tmp_path_factory.mktemp("provision") / "log"
    ansible = {"cwd": ROOT, "env": Campaign.environment(), "stdin": subprocess.DEVNULL, "timeout": 900}
    inventory = ["-i", there.access.inventory]
    venv = ["ansible", *inventory, "nodes", "-m", "apt", "-a", "name=python3-venv update_cache=true"]
    with log.open("wb") as file:
        for argv in venv, ["ansible-playbook", *inventory, "provision.yml", "-e", "framework=scripted"]:
            done = subprocess.run(argv, stdout=file, stderr=file, **ansible)
            assert done.returncode == 0, log.read_text()[-4000:]
    yield there
    command([str(TOOLS / "down"), "--net", NET], timeout=300)


def test_faults_drawn_at_random_are_named_and_cost_no_finished_run(cluster):
    """Five minutes. On a loaded machine all nodes queue for its cores: none can be told to be slow there."""
    argv = ["--net", NET, "--seed", str(SEED), "--minutes", str(MINUTES), "--patience", str(PATIENCE)]
    done = subprocess.run(
        [TOOLS / "soak", *argv, "--without", "straggler"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=2400,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_a_lost_node_is_left_out_and_never_in_silence(cluster, tmp_path):
    """One minute."""
    command([str(TOOLS / "up"), "--net", NET], timeout=300)
    variables = {**faults.VARIABLES, "nodes": "3,4", "gpus": 1, "repeats": 1}
    campaign = Campaign(cluster, tmp_path / "results", "test", **variables)
    campaign.start()
    try:
        campaign.wait_for_step(10, 60 * PATIENCE)
        faults.NODE_DIES.inject(campaign, campaign.nodes[1])
        assert campaign.process.wait(60 * PATIENCE) != 0, campaign.said()[-2000:]
    finally:
        campaign.kill()
    by_label = {record["case"]["label"]: record for record in campaign.records().values()}
    assert by_label["3n1g"]["status"] == "ok"
    assert [node["node"] for node in by_label["3n1g"]["nodes"]] == ["NODE1", "NODE3", "NODE4"]
    assert "ran on NODE1, NODE3, NODE4: NODE2 lost" in by_label["3n1g"]["notes"]
    assert by_label["4n1g"]["status"] == "skipped"
    assert by_label["4n1g"]["reason"] == "NODE2 lost: 4 nodes are wanted, 3 are left"
    (first,) = campaign.failures().values()
    assert "NODE2 was lost" in first["reason"]
    campaign.refresh()
    wait_for("the end of all processes", lambda: not campaign.orphans(), 30)
