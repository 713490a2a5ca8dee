# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Workloads that no other test installs are installed on a bare host; again, that changes nothing."""

import json
import os
import subprocess

import bare_node
import pytest

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="containers with networks of their own need root"),
]


@pytest.fixture(scope="module")
def wrong(request, tmp_path_factory):
    """Play the scenario; return what is wrong, or None. The environments outlive the host."""
    request.addfinalizer(bare_node.NODES.down)
    try:
        bare_node.play(tmp_path_factory.mktemp("sources"))
    except AssertionError as error:
        return str(error)
    return None


def test_every_other_workload_passes_the_scenario_on_a_bare_host(wrong):
    assert wrong is None


def test_each_node_makes_the_same_tfrecord_files(wrong, tmp_path):
    """Nodes whose data differ are refused. The order of a map of protobuf is another in each process."""
    home = bare_node.HOME / "tf1_resnet50"
    made = []
    for node in ("NODE1", "NODE2"):
        program = [home / "horovod/venv/bin/python", home / "code/make_images.py"]
        subprocess.run([*program, tmp_path / node, "2", "1"], check=True, capture_output=True)
        made.append((tmp_path / node / "train-00000-of-00001").read_bytes())
    assert made[0] == made[1]


def test_paddle_trains_on_images_in_files(wrong, tmp_path):
    """provision.yml has made them on the host."""
    few = {"paddle_resnet50_image_size": 64, "bsz": 1, "warmup": 1, "window": 3}
    record = bare_node.bench(tmp_path, workload="paddle_resnet50", **few)
    assert (record["status"], record["reason"]) == ("ok", None)
    assert record["nodes"][0]["shown"]["data"] == ["files"]
    provenance = json.loads((tmp_path / "test/provenance.json").read_text())
    images = provenance["workloads"]["paddle_resnet50"]["NODE1"]["data"]
    assert images.startswith("8 images in 8 classes, sha256 ")
