# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""--limit leaves out localhost, and with it the report: it is refused before anything is measured."""

import subprocess

import pytest
from local_nodes import ROOT

pytestmark = pytest.mark.slow


REPORTS = ["report.yml", "import.yml", "verify.yml", "index.yml", "share.yml", "evaluation.yml", "claim.yml"]


@pytest.mark.parametrize(
    "playbook", ["acceptance.yml", "bench.yml", "microbench.yml", "playbooks/preflight.yml", *REPORTS]
)
def test_a_limit_is_refused_where_all_hosts_are_needed(playbook):
    argv = ["ansible-playbook", "-i", "inventory/local", playbook, "--limit", "NODE1"]
    done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=ROOT)
    assert done.returncode != 0
    assert "--limit NODE1: this playbook needs all nodes of the inventory" in done.stderr
    assert done.stdout == ""


NODES = [
    *("acceptance.yml", "provision.yml", "bench.yml", "microbench.yml"),
    *("playbooks/preflight.yml", "playbooks/mirror.yml", "remove.yml"),
]


@pytest.mark.parametrize("playbook", NODES)
@pytest.mark.parametrize(
    ("inventory", "said"),
    [
        ("inventory/myclustr", f"parse inventory source {ROOT}/inventory/myclustr"),
        ("localhost,", "The inventory has no hosts in the group nodes (-i: localhost,). Fix: "),
    ],
)
def test_an_inventory_without_nodes_is_refused(playbook, inventory, said):
    argv = ["ansible-playbook", "-i", inventory, playbook, "-e", "mirror=nowhere"]
    done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=ROOT)
    assert done.returncode != 0
    assert said in " ".join(done.stderr.split())
    assert done.stdout == ""


def test_one_host_can_be_provisioned():
    argv = ["ansible-playbook", "-i", "inventory/local", "provision.yml", "--limit", "NODE1", "--list-hosts"]
    done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "pattern: ['nodes']" in done.stdout
