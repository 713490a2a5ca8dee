# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""remove.yml takes away what provision.yml has installed of a workload, and says before what that is."""

import json
import os
import shutil
import subprocess

import pytest
from ansible.module_utils.scalebook.launch.lock_holder import identity
from local_nodes import ROOT

pytestmark = pytest.mark.slow


def play(home, *options):
    """Run remove.yml for the scripted trainer; return the status and what it printed."""
    env = {**os.environ, "ANSIBLE_ROLES_PATH": f"{ROOT}/roles:{ROOT}/tests/roles"}
    given = {
        "workload": "scripted",
        "scalebook_home": str(home),
        "campaign_lock_directory": f"{home}/locks",
    }
    done = subprocess.run(
        ["ansible-playbook", "-i", "inventory/local", "remove.yml", *options, "-e", json.dumps(given)],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=ROOT, env=env, timeout=300,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """An installation of the scripted trainer, and what a run has left."""
    folder = tmp_path_factory.mktemp("home")
    shutil.copytree(ROOT / "tests/roles/scripted/files", folder / "scripted")
    (folder / "scripted/install.json").write_text("{}")
    (folder / "work/NODE1/night/scripted-script-1n1g/1").mkdir(parents=True)
    return folder


def test_a_check_says_what_and_how_much_and_changes_nothing(home):
    status, shown = play(home, "--check")
    size = subprocess.run(["du", "-sB1", home / "scripted"], capture_output=True, text=True).stdout.split()[0]
    assert status == 0, shown
    assert f"NODE1: {home}/scripted: {int(size):,} bytes to remove" in shown
    assert (home / "scripted/install.json").exists()


def test_a_machine_on_which_a_campaign_runs_is_refused(home):
    """This process holds the lock, as bench.yml would."""
    lock = home / "locks/scalebook.lock"
    lock.parent.mkdir()
    lock.write_text(json.dumps(identity()))
    status, shown = play(home)
    lock.unlink()
    assert status != 0 and "are in use by" in shown, shown
    assert (home / "scripted/install.json").exists()


def test_removing_takes_it_away_once(home):
    status, shown = play(home)
    assert status == 0, shown
    assert sorted(path.name for path in home.iterdir()) == ["locks", "work"]
    assert "there is nothing to remove of scripted" in play(home)[1]
