# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What apt and dpkg complain of is reported, without the token of a repository that apt names."""

import json
import os
import subprocess
import sys
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from guarded import Guarded
from own_packages import apart

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "canary-of-a-repository"
SOURCES = "Types: deb\nURIs: http://me:{token}@127.0.0.1:{port}\nSuites: ./\n"
# What a dpkg that was killed leaves: the package has to be fetched again.
HALF = "Package: half\nStatus: install reinstreq half-installed\nArchitecture: all\nVersion: 1\n"
# An unpacked package; its script fails.
UNPACKED = (
    "Package: broken\nStatus: install ok unpacked\nArchitecture: all\nVersion: 1\n"
    "Maintainer: me\nDescription: me\n"
)
SCRIPT = "#!/bin/sh\necho 'broken: no room for the index' >&2\nexit 3\n"
ROLES = {
    "node": {"node_needs": ["scalebook-nothing"]},
    "mirror": {
        "mirror_packages": ["scalebook-nothing"],
        "mirror_source": "/etc/apt/sources.list.d/scalebook.sources",
    },
}
PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  vars: {{ansible_python_interpreter: /usr/bin/python3, mirror_scratch: {{path: {scratch}}}}}
  tasks:
    - ansible.builtin.include_role: {{name: {role}, tasks_from: packages}}
      vars: {variables}
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="mounts of its own need root"),
]


@pytest.fixture
def port():
    """Serve to nobody."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Guarded) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def play(tmp_path, port, role):
    """Include a role's packages.yml with a repository that refuses TOKEN; return what was printed."""
    for folder in ("etc/sources.list.d", "scratch/gathered"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "etc/sources.list.d/scalebook.sources").write_text(SOURCES.format(token=TOKEN, port=port))
    playbook = tmp_path / "play.yml"
    playbook.write_text(
        PLAY.format(role=role, variables=json.dumps(ROLES[role]), scratch=tmp_path / "scratch")
    )
    play = [Path(sys.executable).parent / "ansible-playbook", "-vvvv", "-i", "localhost,", playbook]
    done = subprocess.run(
        apart(tmp_path, *play),
        capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"},
    )  # fmt: skip
    output = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 2, output[-3000:]
    return output


@pytest.mark.parametrize("role", ROLES)
def test_a_repository_that_refuses_its_token_is_named_without_it(port, tmp_path, role):
    output = play(tmp_path, port, role)
    assert "localhost could not read the lists of its package repositories" in output
    assert f"http://***@127.0.0.1:{port}/./InRelease 401 Unauthorized" in output
    assert TOKEN not in output


def test_what_cannot_be_repaired_is_reported_without_the_token(port, tmp_path):
    (tmp_path / "dpkg").mkdir()
    (tmp_path / "dpkg/status").write_text(HALF)
    output = play(tmp_path, port, "node")
    assert (
        "A package manager was interrupted on localhost, and its installation cannot be completed" in output
    )
    assert f"http://***@127.0.0.1:{port}/./InRelease 401 Unauthorized" in output
    assert TOKEN not in output


def test_the_reason_that_the_script_of_a_package_gives_is_reported(port, tmp_path):
    (tmp_path / "dpkg/info").mkdir(parents=True)
    (tmp_path / "dpkg/status").write_text(UNPACKED)
    (tmp_path / "dpkg/info/broken.list").write_text("/.\n")
    (tmp_path / "dpkg/info/broken.postinst").write_text(SCRIPT)
    (tmp_path / "dpkg/info/broken.postinst").chmod(0o755)
    output = play(tmp_path, port, "node")
    assert "broken: no room for the index" in output
    assert "post-installation script subprocess returned error exit status 3" in output
