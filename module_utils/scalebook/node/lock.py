# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The lock of a machine, and the command that goes before giving it back."""

import subprocess
from pathlib import Path
from typing import Any, Dict, Mapping, Sequence

from ansible.module_utils.scalebook.launch import lock_file

LIMIT = 15
"""Seconds that the command of `before` may take."""


def run_before(command: Sequence[str]) -> None:
    """Run the command of `before`; the lock is given back however it ends."""
    if len(command) > 1 and Path(command[1]).exists():
        try:
            subprocess.run(command, timeout=LIMIT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except (OSError, subprocess.TimeoutExpired):
            return


def run(options: Mapping[str, Any], check: bool) -> Dict[str, Any]:
    """Take the lock or give it back; module campaign_lock describes options and result."""
    if not options["holder"].get("id"):
        raise ValueError("holder: has no id")
    path = options["path"]
    try:
        path = path or lock_file.machine_path()
        if options["state"] == "present" and not check:
            lock_file.make_directory(Path(path).parent)
        changed, held, took_over = lock_file.turn(
            path,
            options["holder"],
            options["over"],
            options["state"],
            not check,
            lambda: run_before(options["before"]),
        )
    except OSError as error:
        raise OSError("cannot take or give back the lock %s: %s" % (path or lock_file.NAME, error)) from error
    return {"changed": changed, "held": held, "taken": took_over, "path": str(path)}
