# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A campaign that srun starts on four hosts with Slurm, one of which falls silent: named, and left out."""

import json
import os
import subprocess
import time

import pytest
from container_nodes import ROOT, TOOLS, Nodes
from nets import free_net

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="containers with networks of their own need root"),
]
NODE, PATIENCE = "NODE3", 45


@pytest.fixture(scope="module")
def nodes():
    made = Nodes(free_net("10.11.47", "10.11.48", "10.11.49"), ANSIBLE_ROLES_PATH="roles:tests/roles")
    made.up("--slurm")
    made.env["PATH"] = f"{made.files}/slurm:{made.env['PATH']}"
    yield made
    made.down()


def test_a_silent_node_is_named_within_seconds_whatever_slurmd_timeout_is(nodes, tmp_path):
    nodes.run("ansible-playbook", "-i", nodes.files / "inventory", "provision.yml", "-e", "workload=scripted")
    nodes.run("salloc", "--no-shell", "--nodes=4", "--exclusive", "--no-kill")
    variables = {"workload": "scripted", "launcher": "srun", "nodes": 4, "repeats": 1, "campaign": "silent"}
    variables |= {"campaign_results": str(tmp_path), "preflight": False, "scripted_step": 1}
    with subprocess.Popen(
        ["ansible-playbook", "-i", nodes.files / "inventory", "bench.yml", "-e", json.dumps(variables)],
        env={**nodes.env, "SLURM_JOB_ID": nodes.run("squeue", "-h", "-o", "%i").stdout.strip()},
        cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
    ) as playing:  # fmt: skip
        await_that(lambda: nodes.run("squeue", "--steps", "-h").stdout, 240)
        time.sleep(8)  # it has answered before
        nodes.run(TOOLS / "link", "--net", nodes.net, NODE, "down")
        silent_since = time.time()
        (record,) = await_that(lambda: list(tmp_path.glob("silent/failed/*/*/result.json")), 60)
        assert record.stat().st_mtime - silent_since < PATIENCE
        assert json.loads(record.read_text())["reason"]["values"]["what"] == {
            "code": "reason.lost",
            "values": {"node": NODE},
        }
        playing.wait(120)


def await_that(look, seconds):
    """Return what `look()` returns once there is something."""
    deadline = time.monotonic() + seconds
    while not (there := look()):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    return there
