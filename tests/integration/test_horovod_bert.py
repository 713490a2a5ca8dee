# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""horovod_bert for real: Horovod's release is built for torch, and nodes train together."""

import json

import pytest
from frameworks import record_of
from local_nodes import changed

pytestmark = pytest.mark.slow


def test_provisioning_again_changes_nothing(horovod_bert):
    """Takes half a minute, minutes more the first time."""
    assert changed(horovod_bert.said) == []


def test_nodes_and_the_devices_of_a_node_train_together(horovod_bert, tmp_path):
    """Takes a minute: one process, two on two nodes, two on one node."""
    place = {"campaign_results": str(tmp_path), "campaign_port": 24760, "bsz": 4, "repeats": 1}
    horovod_bert.play("bench.yml", campaign="nodes", nodes="1,2", gpus=1, **place)
    horovod_bert.play("bench.yml", campaign="devices", nodes=1, gpus=2, slots=2, dtype="fp16", **place)
    records = [json.loads(path.read_text()) for path in tmp_path.glob("*/runs/*/1/result.json")]
    assert {(record["case"]["label"], record["status"], record["reason"]) for record in records} == {
        ("1n1g", "ok", None),
        ("2n1g", "ok", None),
        ("1n2g", "ok", None),
    }
    steps = [node["steps"] for record in records for node in record["nodes"]]
    assert steps == [list(range(1, 121))] * 4


@pytest.mark.cluster
def test_four_hosts_train_together(four_hosts, horovod_bert, tmp_path):
    """Takes two minutes."""
    horovod_bert.provision_hosts()
    place = {"campaign": "hosts", "campaign_results": str(tmp_path)}
    horovod_bert.on_hosts("bench.yml", nodes=4, gpus=1, bsz=4, repeats=1, **place)
    record, _ = record_of(tmp_path)
    assert (record["status"], record["reason"]) == ("ok", None)
