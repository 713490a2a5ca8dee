#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Wait on a node until the ranks that another node's DeepSpeed launcher starts here have started and ended.

usage: await_ranks.py NAME=VALUE

The ranks are the processes that have NAME=VALUE in their environment. Their output and exit status go to the
launcher. When one part of a job fails, the whole job is stopped.

Runs on the nodes' own Python, 3.6 or later, standard library only.
"""

import os
import sys
import time

INTERVAL = 0.5
"""Seconds between two scans of /proc; one scan costs a few milliseconds of one core."""


def is_running(variable: bytes) -> bool:
    """Return whether a process has `variable` (bytes, NAME=value) in its environment."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/environ" % name, "rb") as file:
                    if variable in file.read().split(b"\0"):
                        return True
            except OSError:
                continue  # it ended meanwhile, or belongs to another user
    return False


def main() -> None:
    """Return when the ranks have ended; the limits of the job end a wait for ranks that never start."""
    variable = sys.argv[1].encode()
    while not is_running(variable):
        time.sleep(INTERVAL)
    while is_running(variable):
        time.sleep(INTERVAL)


if __name__ == "__main__":
    main()
