#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Start one gang and wait for it: mpirun in a session of its own, under a hard time limit.

usage: run_gang.py --timeout SECONDS --pid FILE --id RUN -- mpirun ...

Prints one JSON line: {"rc", "seconds", "started", "ended", "timed_out", "stderr"}; `seconds` is
the time mpirun ran, `stderr` the end of what it said. The session outlives a controller that
dies, but never the limit; FILE (`{"pid", "id", "boot"}`) is there while it runs, so that the
next start can find the gang and end it.

Runs on the nodes' own Python, 3.6 or later, standard library only.
"""

import argparse
import json
import os
import signal
import subprocess
import time
from datetime import datetime, timezone

GRACE = 10.0
"""Seconds that mpirun gets to end its ranks before it is killed itself."""


def now():
    """Return the time of day in UTC, in seconds, as ISO 8601."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def end_group(pid, wait):
    """End a process group: SIGTERM, then SIGKILL for what `wait` (a function of seconds) did not see end."""
    for number, seconds in ((signal.SIGTERM, GRACE), (signal.SIGKILL, 1)):
        try:
            os.killpg(pid, number)
        except ProcessLookupError:
            return
        wait(seconds)


def main():
    """Run the gang and print how it ended; the exit status is always 0, `rc` is mpirun's."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--timeout", type=float, required=True)
    parser.add_argument("--pid", required=True)
    parser.add_argument("--id", required=True)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    # `timeout` outlives this process should somebody kill it: the gang stays bounded.
    command = ["timeout", "--kill-after=%d" % GRACE, "%d" % (args.timeout + GRACE)] + command

    said, started, clock = args.pid + ".stderr", now(), time.monotonic()
    with open(said, "w+b") as stderr:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr, start_new_session=True
        )
        with open(args.pid + ".new", "w", encoding="utf-8") as file:
            json.dump({"pid": process.pid, "id": args.id, "started": time.time()}, file)
        os.replace(args.pid + ".new", args.pid)

        def wait(seconds):
            try:
                return process.wait(seconds) is not None
            except subprocess.TimeoutExpired:
                return False

        timed_out = not wait(args.timeout)
        if timed_out:
            end_group(process.pid, wait)
        seconds = time.monotonic() - clock
        stderr.seek(max(0, stderr.seek(0, os.SEEK_END) - 4000))
        tail = stderr.read().decode("utf-8", "replace")
    for path in (args.pid, said):
        os.remove(path)
    code = process.wait()
    print(
        json.dumps(
            {
                "rc": code if code >= 0 else 128 - code,
                "seconds": round(seconds, 3),
                "started": started,
                "ended": now(),
                "timed_out": timed_out,
                "stderr": tail,
            }
        )
    )


if __name__ == "__main__":
    main()
