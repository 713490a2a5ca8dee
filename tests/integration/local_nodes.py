# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What the checkout's own local nodes have installed: tests that run beside each other install it once."""

import contextlib
import fcntl
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / ".scalebook"


@contextlib.contextmanager
def turn():
    """Let one test at a time install."""
    HOME.mkdir(exist_ok=True)
    with (HOME / "test-provision.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def provision(framework):
    """Run provision.yml on inventory/local: minutes the first time, seconds when all is there."""
    argv = [ROOT / ".venv/bin/ansible-playbook", "-i", ROOT / "inventory/local", "provision.yml"]
    env = {
        **os.environ,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_ROLES_PATH": f"{ROOT}/roles:{ROOT}/tests/roles",
    }
    with turn():
        done = subprocess.run(
            [*argv, "-e", f"framework={framework}"],
            capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=ROOT, env=env, timeout=1500,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
