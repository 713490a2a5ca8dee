#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Wait on a node until the ranks that another node's DeepSpeed launcher starts here have come and gone.

usage: await_ranks.py NAME=VALUE

The ranks are the processes that have NAME=VALUE in their environment. Their output goes to the launcher, and
so does how they end: a gang of which one part fails is ended as a whole.

Runs on the nodes' own Python, 3.6 or later, standard library only.
"""

import os
import sys
import time

EVERY = 0.5
"""Seconds between two looks; one costs a few milliseconds of one core."""


def there(word):
    """Tell whether a process with `word` (bytes, NAME=value) in its environment is there."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/environ" % name, "rb") as file:
                    if word in file.read().split(b"\0"):
                        return True
            except OSError:
                continue  # it ended meanwhile, or it is another user's
    return False


def main():
    """Return when they are gone; the gang's limits end a wait for ranks that never come."""
    word = sys.argv[1].encode()
    while not there(word):
        time.sleep(EVERY)
    while there(word):
        time.sleep(EVERY)


if __name__ == "__main__":
    main()
