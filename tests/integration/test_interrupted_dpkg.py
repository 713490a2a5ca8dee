# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""repair_packages.sh completes, with the real apt and dpkg, what a killed dpkg leaves."""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest
from own_packages import apart

SCRIPT = Path(__file__).resolve().parents[2] / "roles/node/files/repair_packages.sh"
CONTROL = (
    "Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: me <me@localhost>\nDescription: empty\n"
)
SHOW = ["dpkg-query", "--show", "--showformat", "${Package} ${Status}\n"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="mounts of its own need root"),
]


@pytest.fixture
def left(tmp_path):
    """Return a function: run the script on packages with these statuses, and return what they are then."""
    repository = tmp_path / "repository"
    (tmp_path / "etc/sources.list.d").mkdir(parents=True)
    source = f"Types: deb\nURIs: file:{repository}\nSuites: ./\nTrusted: yes\n"
    (tmp_path / "etc/sources.list.d/own.sources").write_text(source)

    def run(statuses):
        index, status = [], []
        for name, state in statuses.items():
            control = CONTROL.format(name=name)
            root = tmp_path / name
            (root / "DEBIAN").mkdir(parents=True)
            (root / "DEBIAN/control").write_text(control)
            deb = repository / f"{name}.deb"
            repository.mkdir(exist_ok=True)
            subprocess.run(
                ["dpkg-deb", "--root-owner-group", "--build", root, deb], check=True, capture_output=True
            )
            digest = hashlib.sha256(deb.read_bytes()).hexdigest()
            index.append(f"{control}Filename: ./{deb.name}\nSize: {deb.stat().st_size}\nSHA256: {digest}\n")
            status.append(control.replace("\n", f"\nStatus: {state}\n", 1))
            (tmp_path / "dpkg/info").mkdir(parents=True, exist_ok=True)
            (tmp_path / f"dpkg/info/{name}.list").write_text("/.\n")
        (repository / "Packages").write_text("\n".join(index))
        (tmp_path / "dpkg/status").write_text("\n".join(status))
        repaired = subprocess.run(apart(tmp_path, "sh", SCRIPT, tmp_path), capture_output=True, text=True)
        assert repaired.returncode == 0, repaired.stdout + repaired.stderr
        shown = subprocess.run(apart(tmp_path, *SHOW), check=True, capture_output=True, text=True)
        return dict(line.split(" ", 1) for line in shown.stdout.splitlines())

    return run


@pytest.mark.parametrize("state", ["half-installed", "unpacked", "half-configured"])
def test_a_package_that_dpkg_wants_reinstalled_is_reinstalled(left, state):
    assert left({"package": f"install reinstreq {state}"}) == {"package": "install ok installed"}


@pytest.mark.parametrize("state", ["unpacked", "half-configured"])
def test_a_package_that_was_not_configured_is_configured(left, state):
    assert left({"package": f"install ok {state}"}) == {"package": "install ok installed"}


def test_packages_in_different_states_are_repaired_together(left):
    states = {
        "one": "install reinstreq unpacked",
        "two": "install reinstreq half-installed",
        "three": "install ok unpacked",
    }
    assert left(states) == dict.fromkeys(states, "install ok installed")
