# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Workloads that no other test installs are installed on a bare host; again, that changes nothing."""

import importlib
import json
import os
import subprocess

import bare_node
import pytest
from container_nodes import ROOT

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="containers with networks of their own need root"),
]


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    return tmp_path_factory.mktemp("sources")


@pytest.fixture(scope="module")
def wrong(request, sources):
    """Play the scenario; return what is wrong, or None. The environments outlive the host."""
    request.addfinalizer(bare_node.NODES.down)
    try:
        bare_node.play(sources)
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


def test_gluoncvs_trainer_is_installed_beside_nvidias_and_trains(wrong, tmp_path):
    """A stand-in of it, with real MXNet and Horovod."""
    asked = {"workload": "gluoncv_resnet50", "gluoncv_resnet50_image_size": 64}
    record = bare_node.bench(tmp_path, **asked, bsz=1, warmup=1, window=8)
    assert (record["status"], record["reason"]) == ("ok", None)
    assert record["nodes"][0]["shown"]["data"][0].startswith("records images=8 ")


def test_paddle_trains_on_images_in_files(wrong, tmp_path):
    """provision.yml has made them on the host."""
    few = {"paddle_resnet50_image_size": 64, "bsz": 1, "warmup": 1, "window": 3}
    record = bare_node.bench(tmp_path, workload="paddle_resnet50", **few)
    assert (record["status"], record["reason"]) == ("ok", None)
    assert record["nodes"][0]["shown"]["data"] == ["files"]
    provenance = json.loads((tmp_path / "test/provenance.json").read_text())
    images = provenance["workloads"]["paddle_resnet50"]["NODE1"]["data"]
    assert images.startswith("8 images in 8 classes, sha256 ")


def test_paddlecv_is_installed_with_the_stack_of_2020_and_trains(wrong, tmp_path):
    """A stand-in of it, with real Paddle 1.8."""
    asked = {"workload": "paddlecv_resnet50", "paddlecv_resnet50_image_size": 64}
    record = bare_node.bench(tmp_path, **asked, bsz=1, warmup=1, window=8)
    assert (record["status"], record["reason"]) == ("ok", None)
    assert record["nodes"][0]["shown"]["version"] == ["1.8.5"]


# They print the labels of images as trainers read them, for MXNet also those of each of two processes.
READ_RECORDS = """
import json, sys
import mxnet as mx
path = sys.argv[1] + "/train.rec"
given = {"path_imgrec": path, "path_imgidx": path.replace(".rec", ".idx")}
records = mx.recordio.MXIndexedRecordIO(given["path_imgidx"], path, "r")
labels = [[mx.recordio.unpack(records.read_idx(key))[0].label for key in records.keys]]
for rank in (0, 1):
    batches = mx.io.ImageRecordIter(
        num_parts=2, part_index=rank, seed=7 + rank, shuffle=True, batch_size=2, data_shape=(3, 64, 64),
        random_resized_crop=1, min_random_area=0.05, preprocess_threads=1, **given
    )
    labels.append([label for batch in batches for label in batch.label[0].asnumpy().tolist()])
print(json.dumps(labels))
"""
READ_OFRECORDS = """
import json, sys
import oneflow as flow
given = {"batch_size": 8, "data_part_num": 2, "part_name_suffix_length": 5}
record = flow.nn.OfrecordReader(sys.argv[1] + "/train", **given)()
images = flow.nn.OFRecordImageDecoderRandomCrop("encoded", color_space="RGB")(record)
shape = flow.nn.image.Resize(target_size=[224, 224])(images)[0].shape
labels = flow.nn.OfrecordRawDecoder("class/label", shape=tuple(), dtype=flow.int32)(record)
print(json.dumps([labels.numpy().tolist(), list(shape)]))
"""


@pytest.fixture
def labels(monkeypatch):
    """Return the labels of the eight images that a node makes."""
    monkeypatch.syspath_prepend(ROOT / "roles/workload/files/kit")
    return [label for _, label in importlib.import_module("labelled_images").random_images(8)]


def read(workload, program):
    """Return what a program prints about the images that the host has made for a workload."""
    home = bare_node.HOME / workload
    record = json.loads((home / "install.json").read_text())
    env = {**os.environ, "PYTHONNOUSERSITE": "1", "LD_LIBRARY_PATH": record.get("libraries", "")}
    words = [record["python"], "-c", program, home / "images"]
    done = subprocess.run(words, check=True, capture_output=True, text=True, env=env)
    return json.loads(done.stdout)


def test_mxnet_reads_the_images_that_a_node_makes_and_gives_each_process_its_own(wrong, labels):
    made, *of_processes = read("mxnet_resnet50", READ_RECORDS)
    assert made == labels
    assert list(map(sorted, of_processes)) == [sorted(made[:4]), sorted(made[4:])]


def test_oneflow_reads_the_images_that_a_node_makes(wrong, labels):
    assert read("oneflow_resnet50", READ_OFRECORDS) == [labels[::2] + labels[1::2], [8, 224, 224, 3]]
