# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A campaign on four container nodes survives faults of nodes, links, disks and the control node.

The command that a user types, real mpirun over ssh, and a scripted trainer whose throughput is known. Each
kind of fault that unit tests cannot make is made once; `tests/cluster/soak` makes all of them, for as long as
one likes. The limits in seconds are those of an idle machine; a loaded one gets PATIENCE times as long.
"""

import subprocess
import sys

import bare_hosts
import pytest
from ansible.module_utils.scalebook.contracts import message
from container_nodes import TOOLS, WORK
from in_english import in_english
from local_nodes import HOME

sys.path.insert(0, str(TOOLS))

from testcluster import engine, faults, nodes  # noqa: E402
from testcluster.base import run as command  # noqa: E402
from testcluster.campaign import Campaign, wait_for  # noqa: E402

NET = bare_hosts.NODES.net
SEED, PATIENCE = 4, 5
KINDS = (
    "orted killed",
    "link down",
    "disk full on a node",
    "disk full on the control node",
    "ansible-playbook killed",
    "second control node",
)
INSTALLED = {"scalebook_home": str(HOME), "campaign_work": WORK}

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@pytest.fixture(scope="module")
def cluster(provisioned_hosts):
    """The hosts with the scripted trainer, which needs nothing that they lack. Half a minute."""
    done = bare_hosts.play("provision.yml", workload="scripted")
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return nodes.Cluster(engine.existing(), NET)


@pytest.fixture(scope="module")
def soaked(cluster):
    """The output of soak for one fault of each kind. Two minutes."""
    argv = ["--net", NET, "--seed", str(SEED), "--rounds", "1", "--patience", str(PATIENCE)]
    argv += [word for kind in KINDS for word in ("--only", kind)]
    argv += [word for name, value in INSTALLED.items() for word in ("--variable", f"{name}={value}")]
    return subprocess.run(
        [TOOLS / "soak", *argv], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=2400
    )


def test_no_fault_breaks_what_must_hold(soaked):
    assert soaked.returncode == 0, soaked.stdout[-6000:] + soaked.stderr[-2000:]


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_fault_was_injected(soaked, kind):
    assert f" s  {kind}" in soaked.stdout


def test_a_lost_node_is_left_out_and_reported(cluster, tmp_path):
    """One minute."""
    command([str(TOOLS / "up"), "--net", NET], timeout=300)
    variables = {**faults.VARIABLES, **INSTALLED, "nodes": "3,4", "gpus": 1, "repeats": 1}
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
    assert "ran on NODE1, NODE3, NODE4: NODE2 lost" in in_english(by_label["3n1g"]["notes"])
    assert by_label["4n1g"]["status"] == "skipped"
    assert in_english(by_label["4n1g"]["reason"]) == "NODE2 lost: 4 nodes are needed, 3 are left"
    (first,) = campaign.failures().values()
    assert first["reason"]["values"]["what"] == message("reason.lost", node="NODE2")
    campaign.refresh()
    wait_for("the end of all processes", lambda: not campaign.orphans(), 30)
