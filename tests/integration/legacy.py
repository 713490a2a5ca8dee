# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The environment of requirements-legacy.txt, and a Python 3.6 to be driven from it."""

import fcntl
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from local_nodes import CACHE, ROOT
from run_module import run_module

HOME = CACHE / "legacy"
LOCK = ROOT / "requirements-legacy.txt"


def find_python(*versions):
    """Return the first interpreter of these versions that role python finds here, None if there is none."""
    found = run_module("python_find", versions=versions)["found"]
    return found and Path(found["executable"])


def environment():
    """Return the directory of the environment's commands, made once for every lock."""
    mark = HOME / ".scalebook-lock"
    want = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    HOME.parent.mkdir(parents=True, exist_ok=True)
    with HOME.with_suffix(".being-made").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not mark.is_file() or mark.read_text() != want:
            shutil.rmtree(HOME, ignore_errors=True)
            # ansible-core 2.16 was made for these.
            python = find_python("3.11", "3.12", "3.10") or sys.executable
            subprocess.run([python, "-m", "venv", HOME], check=True)
            pip = [HOME / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, "--no-compile", "--require-hashes", "-r", LOCK], check=True, timeout=300)
            mark.write_text(want)
    return HOME / "bin"
