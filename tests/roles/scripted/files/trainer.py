#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Says what a trainer would say, at a set pace; goes wrong on one node at one step if told to.

usage: trainer.py SECONDS_PER_STEP KIND:NODE:STEP[,KIND:NODE:STEP ...]

The first fault is that of the first repeat, the second that of the second, and so on.
"""

import os
import signal
import sys
import time


def main():
    """Print the steps of one run."""
    pace = float(sys.argv[1])
    repeat = int(os.environ["SCALEBOOK_RUN"].rpartition("/")[2])
    faults = sys.argv[2].split(",")
    kind, node, at = faults[repeat - 1].split(":") if repeat <= len(faults) else ("", "", "0")
    kind = kind if node == os.environ["NODE"] else ""
    steps = int(os.environ["STEPS"])
    devices = 1 if kind == "alone" else int(os.environ["WORLD_SIZE"])
    print("SCRIPTED devices=%d\nSCRIPTED task=%s" % (devices, os.environ["TASK_INDEX"]), flush=True)
    due = time.time()
    for step in range(1, steps + 1):
        due += pace * (2 if kind == "slow" and step > int(at) else 1)
        time.sleep(max(0, due - time.time()))
        loss = "nan" if kind == "nan" and step >= int(at) else "%.6f" % (7 - step / steps)
        print("SCRIPTED step=%d/%d loss=%s time=%.6f" % (step, steps, loss, time.time()), flush=True)
        if step == int(at):
            if kind == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            elif kind == "exit":
                sys.exit(3)
            elif kind == "hang":
                time.sleep(3600)
            elif kind == "short":
                return
            elif kind == "oom":
                print("SCRIPTED out of memory", flush=True)
                sys.exit(1)
    print("SCRIPTED end", flush=True)


if __name__ == "__main__":
    main()
