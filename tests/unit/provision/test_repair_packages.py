# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What a killed package manager left is completed, and locks of dead processes are removed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "roles/node/files/repair_packages.sh"


@pytest.fixture
def repair(tmp_path):
    """Run the script with a dpkg that does nothing and an apt-get that fails as often as is said."""
    programs = tmp_path / "bin"
    programs.mkdir()
    calls = tmp_path / "calls"
    left = tmp_path / "left"
    apt = f"""
echo "$1 $2" >>{calls}
[ "$1" = update ] && exit
n=$(cat {left})
echo $((n - 1)) >{left}
[ "$n" -le 0 ]"""
    for name, text in {"dpkg": "exit 2", "apt-get": apt}.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)

    def run(failures=0):
        left.write_text(str(failures))
        env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
        done = subprocess.run(["sh", SCRIPT, tmp_path], env=env, capture_output=True, text=True)
        return done.returncode, [line.split()[0] for line in calls.read_text().splitlines()]

    return run


def test_what_apt_can_repair_is_repaired(repair):
    assert repair() == (0, ["--yes"])


def test_the_lists_are_read_where_an_archive_is_gone(repair):
    assert repair(failures=1) == (0, ["--yes", "update", "--yes"])


def test_what_cannot_be_repaired_fails(repair):
    assert repair(failures=2)[0] != 0


@pytest.mark.parametrize("holder", ["", "\0", "999999999", "self"])
def test_a_lock_that_no_useradd_holds_is_taken_away(repair, tmp_path, holder):
    lock = tmp_path / "group.lock"
    lock.write_text(str(os.getpid()) if holder == "self" else holder)
    repair()
    assert not lock.exists()


def test_a_lock_that_a_useradd_holds_is_left(repair, tmp_path):
    program = tmp_path / "useradd"
    shutil.copy("/bin/sleep", program)
    running = subprocess.Popen([program, "60"])
    try:
        (tmp_path / "passwd.lock").write_text(str(running.pid))
        repair()
        assert (tmp_path / "passwd.lock").exists()
    finally:
        running.kill()
        running.wait()
