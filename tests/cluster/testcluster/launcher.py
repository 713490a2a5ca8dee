#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Starts a process per device of its node, as torchrun does, and ends all when one of them fails.

usage: launcher.py COMMAND ...

Only the first process of all prints its steps. Runs on the nodes, Python 3.6 or newer.
"""

import os
import signal
import subprocess
import sys
import threading
import time


def copy(source, steps):
    """Print the lines of a process, those of its steps only if `steps`."""
    for line in iter(source.readline, b""):
        if steps or b" step=" not in line:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()


def start(number, devices):
    """Start the process of device `number` of this node."""
    rank = int(os.environ["TASK_INDEX"]) * devices + number
    world = int(os.environ["NNODES"]) * devices
    env = dict(os.environ, TASK_INDEX=str(rank), NNODES=str(world))
    process = subprocess.Popen(sys.argv[1:], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    reader = threading.Thread(target=copy, args=(process.stdout, rank == 0), daemon=True)
    reader.start()
    return process, reader


def main():
    """Run the processes of this node."""
    devices = int(os.environ["GPUS_PER_NODE"])
    started = [start(number, devices) for number in range(devices)]
    failed = None
    while failed is None and any(process.poll() is None for process, _ in started):
        failed = next((process for process, _ in started if process.poll()), None)
        time.sleep(0.02)
    failed = failed or next((process for process, _ in started if process.poll()), None)
    if failed is not None:
        for process, _ in started:
            if process.poll() is None:
                process.kill()
    for process, reader in started:
        process.wait()
        reader.join(1)
    if failed is not None:
        code = failed.returncode
        how = "Signal %d (%s) received by PID %d" % (-code, signal.Signals(-code).name, failed.pid)
        print("  exitcode  : %d (pid: %d)" % (code, failed.pid))
        print("  traceback : %s" % how if code < 0 else "  error_file: <N/A>", flush=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
