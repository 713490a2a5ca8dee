# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Plays on simulated nodes of this machine, whose installations all tests share."""

import contextlib
import fcntl
import json
import os
import subprocess
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
# The versions and commits that DLPerf measured with.
DLPERF = yaml.safe_load((ROOT / "playbooks/vars/stack_dlperf2020.yml").read_text())["stack"]
HOME = ROOT / ".scalebook"
# What takes minutes to install. scripts/test names a directory that outlives the checkout in CI.
CACHE = Path(os.environ.get("SCALEBOOK_TEST_CACHE", HOME))
# Two workers of pytest measure at the same time, and a node belongs to one campaign at a time.
WORK = HOME / f"test-work-{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"


@contextlib.contextmanager
def turn(home=HOME):
    """Let one test at a time install below `home`."""
    home.mkdir(parents=True, exist_ok=True)
    with (home / "test-provision.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def provision(framework, **variables):
    """Run provision.yml on inventory/local: minutes the first time, seconds if all is installed."""
    argv = [ROOT / ".venv/bin/ansible-playbook", "-i", ROOT / "inventory/local", "provision.yml"]
    env = {
        **os.environ,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_ROLES_PATH": f"{ROOT}/roles:{ROOT}/tests/roles",
    }
    with turn():
        done = subprocess.run(
            [*argv, "-e", json.dumps({"workload": framework, **variables})],
            capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=ROOT, env=env, timeout=1500,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr


def play(playbook, *options, **variables):
    """Run a playbook on inventory/local with these variables; return what it printed.

    With the option `-v` there is a recap of every host, of localhost too (see `changed`).
    """
    if playbook == "bench.yml":
        variables = {"campaign_work": str(WORK), **variables}
    done = subprocess.run(
        ["ansible-playbook", "-i", "inventory/local", playbook, *options, "-e", json.dumps(variables)],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=ROOT, timeout=1800,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout


def changed(shown):
    """Return the lines of a play's recap whose host was changed."""
    return [line for line in shown.splitlines() if "unreachable=" in line and "changed=0 " not in line]


def provision_twice(provision):
    """Have `provision()` install what is not there yet; return what it prints once all is in place."""
    shown = provision()
    return provision() if changed(shown) else shown
