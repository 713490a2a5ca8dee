# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The test cluster runs on the container engine that is asked for, or says why not."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "cluster"))

from testcluster import engine  # noqa: E402
from testcluster.base import ClusterError  # noqa: E402


def test_an_engine_that_there_is_not_is_refused_by_name(monkeypatch):
    monkeypatch.setenv("SCALEBOOK_CLUSTER_ENGINE", "lxc")
    with pytest.raises(ClusterError, match="SCALEBOOK_CLUSTER_ENGINE=lxc: wanted podman or docker"):
        engine.prepare()


def test_docker_is_not_replaced_by_podman_where_it_is_asked_for(monkeypatch, tmp_path):
    monkeypatch.setenv("SCALEBOOK_CLUSTER_ENGINE", "docker")
    monkeypatch.setenv("PATH", str(tmp_path))  # nothing to run, so nothing that answers
    with pytest.raises(ClusterError, match="=docker, but none answers"):
        engine.prepare()


def test_a_mount_that_only_podman_knows_is_refused_with_docker():
    with pytest.raises(ClusterError, match="--mount /a:/b:O: only Podman knows :O"):
        engine.Engine("docker").refuse_mounts(["/c:/c:ro", "/a:/b:O"])


def test_podman_takes_every_mount():
    engine.Engine("podman").refuse_mounts(["/c:/c:ro", "/a:/b:O"])
