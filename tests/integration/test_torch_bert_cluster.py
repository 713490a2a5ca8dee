# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""torch_bert for real: installed from its lock, then four hosts under torchrun, which see the same."""

import json
import os

import pytest
from container_nodes import Nodes, shown
from local_nodes import HOME, provision
from nets import free_net

NODES = Nodes(free_net("10.11.22", "10.12.22", "10.13.22", "10.14.22"))
GIVEN = {"stack_name": "modern", "framework": "torch_bert"}

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="containers with networks of their own need root"),
]


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Measure one and four hosts; return {nodes: record}. Takes four minutes."""
    results = tmp_path_factory.mktemp("torch_bert")
    provision(**GIVEN)
    NODES.up(*shown(HOME / "openmpi", HOME / "torch_bert"))
    try:
        NODES.playbook("provision.yml", HOME, **GIVEN)
        place = {"campaign": "hosts", "campaign_results": str(results)}
        NODES.playbook("bench.yml", HOME, nodes="1,4", gpus=1, bsz=4, repeats=1, **place, **GIVEN)
    finally:
        NODES.down()
    found = (json.loads(path.read_text()) for path in results.glob("hosts/runs/*/1/result.json"))
    return {record["case"]["nodes"]: record for record in found}


@pytest.mark.parametrize("nodes", [1, 4])
def test_the_hosts_train_together(records, nodes):
    assert (records[nodes]["status"], records[nodes]["reason"]) == ("ok", None)


def test_four_hosts_see_each_step_of_four_ranks(records):
    assert records[4]["nodes"][0]["steps"] == list(range(1, 121))
