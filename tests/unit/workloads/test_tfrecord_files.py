# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""tfrecord_files.py: what a record says of files of ImageNet, and files that the nodes cannot share."""

import json

import pytest
from role_files import run


@pytest.fixture
def check(tmp_path, monkeypatch):
    """Return a function that checks a directory with some files, made or named, for some nodes."""

    def start(count, nodes, named="", stamp=None):
        monkeypatch.setenv("WORKLOAD", "tf1_resnet50")
        monkeypatch.setenv("NNODES", str(nodes))
        for number in range(count):
            (tmp_path / f"train-{number:05}-of-{count:05}").touch()
        if stamp:
            (tmp_path / "made.json").write_text(json.dumps(stamp))
        return run("workload", "tfrecord_files.py", tmp_path, named, 8, 4)

    return start


def test_files_that_were_made_are_random_images(check):
    done = check(4, 2, stamp={"images": 8, "files": 4})
    assert (done.returncode, done.stdout) == (0, "4 tfrecord files with random images\n")


def test_files_of_the_users_own_need_no_stamp(check):
    assert check(3, 2, named="/imagenet").stdout == "3 tfrecord files\n"


def test_other_images_than_those_that_are_asked_for_are_refused(check):
    done = check(4, 2, stamp={"images": 16, "files": 4})
    assert "made with images=16, files=4, required are tf1_resnet50_images=8, " in done.stderr
    assert done.returncode == 1


def test_fewer_files_than_nodes_are_refused_by_the_variable(check):
    done = check(1, 2, named="/imagenet")
    assert done.stderr.startswith("tf1_resnet50_tfrecords=/imagenet: found 1 files train-* in ")
    assert "put at least 2 there" in done.stderr
