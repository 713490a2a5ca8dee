# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""repair_packages.sh completes, with the real apt and dpkg, what a killed dpkg leaves."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from own_packages import apart
from role_files import load

mirror_seal = load("mirror", "mirror_seal")
SCRIPT = Path(__file__).resolve().parents[2] / "roles/node/files/repair_packages.sh"
CONTROL = (
    "Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: me <me@localhost>\nDescription: empty\n"
)
SHOW = ["dpkg-query", "--show", "--showformat", "${Package} ${Status}\n"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="mounts of its own need root"),
]


def build(name, folder, repository):
    """Build a package without files; return its lines in the index of the repository."""
    control = CONTROL.format(name=name)
    (folder / "DEBIAN").mkdir(parents=True)
    (folder / "DEBIAN/control").write_text(control)
    deb = repository / f"{name}.deb"
    argv = ["dpkg-deb", "--root-owner-group", "--build", folder, deb]
    subprocess.run(argv, check=True, capture_output=True)
    digest = hashlib.sha256(deb.read_bytes()).hexdigest()
    return f"{control}Filename: ./{deb.name}\nSize: {deb.stat().st_size}\nSHA256: {digest}\n"


@pytest.fixture
def repaired(tmp_path):
    """Return a function: run the script on packages with these statuses, and return what they are then."""
    repository = tmp_path / "mirror/apt/own"
    for folder in (repository, tmp_path / "etc/sources.list.d", tmp_path / "dpkg/info"):
        folder.mkdir(parents=True)
    source = f"Types: deb\nURIs: file:{repository}\nSuites: ./\nSigned-By: /etc/apt/own.gpg\n"
    (tmp_path / "etc/sources.list.d/own.sources").write_text(source)

    def run(statuses):
        index = [build(name, tmp_path / name, repository) for name in statuses]
        (repository / "Packages.new").write_text("\n".join(index))
        mirror_seal.seal(str(tmp_path / "mirror"))
        shutil.copy(repository.parent / "key.gpg", tmp_path / "etc/own.gpg")
        status = [f"{CONTROL.format(name=name)}Status: {state}\n" for name, state in statuses.items()]
        (tmp_path / "dpkg/status").write_text("\n".join(status))
        for name in statuses:
            (tmp_path / f"dpkg/info/{name}.list").write_text("/.\n")
        done = subprocess.run(apart(tmp_path, "sh", SCRIPT, tmp_path), capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        shown = subprocess.run(apart(tmp_path, *SHOW), check=True, capture_output=True, text=True)
        return dict(line.split(" ", 1) for line in shown.stdout.splitlines())

    return run


@pytest.mark.parametrize("state", ["half-installed", "unpacked", "half-configured"])
def test_a_package_that_dpkg_wants_reinstalled_is_reinstalled(repaired, state):
    assert repaired({"package": f"install reinstreq {state}"}) == {"package": "install ok installed"}


@pytest.mark.parametrize("state", ["unpacked", "half-configured"])
def test_a_package_that_was_not_configured_is_configured(repaired, state):
    assert repaired({"package": f"install ok {state}"}) == {"package": "install ok installed"}


def test_packages_in_different_states_are_repaired_together(repaired):
    states = {
        "one": "install reinstreq unpacked",
        "two": "install reinstreq half-installed",
        "three": "install ok unpacked",
    }
    assert repaired(states) == dict.fromkeys(states, "install ok installed")
