# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Which systems nodes of the test cluster have, and where their packages come from."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests/cluster"))

from testcluster import hostsettings, image, systems  # noqa: E402

TARGETS = """\
http://mirror/debian bookworm main
http://mirror/debian bookworm-updates main
http://mirror/security bookworm-security main
http://mirror/debian bookworm contrib
http://elsewhere/cuda bookworm-cuda main
"""


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Let this machine get Debian 12 from a mirror, and have every image."""
    monkeypatch.setattr(hostsettings.shutil, "which", lambda name: name)
    said = subprocess.CompletedProcess([], 0, TARGETS, "")
    monkeypatch.setattr(hostsettings, "run", lambda argv, **options: said)
    monkeypatch.setattr(image, "ensure", lambda engine, host: None)
    monkeypatch.setattr(image, "known_bundle", lambda suite: tmp_path / "ca.crt")
    (tmp_path / "ca.crt").write_text("")


def test_another_release_comes_from_where_the_machine_gets_its_own(machine):
    host = hostsettings.discover("10.11.0.0/24", "trixie")
    assert host.apt_sources == [
        "deb http://mirror/debian trixie main",
        "deb http://mirror/debian trixie-updates main",
        "deb http://mirror/security trixie-security main",
    ]
    assert host.mirror == "http://mirror/debian"


def test_each_node_has_its_system_and_further_ones_the_last(machine):
    made = systems.kinds(None, "10.11.0.0/24", ["debian13", "like-ubuntu22"], 3)
    assert [kind.image for kind in made] == [f"{image.NAME}-trixie", image.NAME, image.NAME]
    assert ["usr/lib/os-release" in kind.files for kind in made] == [False, True, True]
