# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Plans with inventories that sites have: their values are reported with the file, or refused at once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow

SILENT = "tests/data/inventories/own_names_silent"


def plan(inventory, extra="device=cpu"):
    """Print the plan of a campaign on hosts that nobody can reach; return status and output."""
    done = subprocess.run(
        [
            Path(sys.executable).parent / "ansible-playbook",
            "-i", f"tests/data/inventories/{inventory}",
            "bench.yml", "-e", f"plan_only=true {extra}",
        ],
        cwd=ROOT, env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_a_wrong_value_of_group_vars_names_that_file():
    status, said = plan("own_names", "workload=tf2_bert")
    assert status == 2
    assert "device=mlx5_0: allowed are auto, cpu, gpu" in said
    assert (
        "tests/data/inventories/own_names/group_vars/all.yml sets device, dtype, gpus, model, nodes, window"
        in said
    )


def test_values_of_group_vars_are_reported_and_remote_nodes_need_no_home():
    status, said = plan("own_names_silent", "workload=tf2_bert")
    assert status == 0, said
    assert f"bsz=16 gpus=1 repeats=1 window=30 device=cpu ({SILENT}/group_vars/all.yml)" in said
    assert "/opt/scalebook/work/bin/run_node.py --binding=numa" in said


def test_names_with_underscores_are_planned():
    status, said = plan("underscore")
    assert status == 0 and "gpu_node_01=/opt/scalebook/work/gpu_node_01/" in said


def test_nodes_of_one_address_are_refused_by_the_plan():
    status, said = plan("same_ip")
    assert status == 2
    assert "worker1 and worker2 have the address 203.0.113.7" in said and "set node_address" in said


def test_a_parameter_that_one_node_alone_has_is_refused_by_the_plan():
    status, said = plan("one_node_alone")
    assert status == 2 and "bsz: b has 32, a has none, and all nodes have one" in said
