#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Run DeepSpeed's launcher; when it fails, name in the last line the rank that failed first, and its node.

usage: report_failure.py COMMAND [ARGUMENT ...]

The launcher logs in to other nodes with pdsh or mpirun; its exit status does not show what failed there.
After a failure pdsh waits for the other nodes, whose ranks wait for the one that failed. This program ends
without pdsh, and run_node stops what remains. The output is copied unchanged. The exit status is 0 or 1: 137
would mean that this node had been killed.

Runs on the nodes' own Python, 3.6 or later, standard library only.
"""

import os
import re
import subprocess
import sys
import threading
import time
from typing import IO, Match, Optional

GRACE_SECONDS = 5.0
"""How long the launcher may take to end by itself after the first failure."""

FAILURE = re.compile(
    # launch.py on a node, through pdsh; pdsh itself; Open MPI's mpirun
    rb"^(?P<ranks>\S+): .*exits with return code = (?P<code>-?\d+)"
    rb"|^pdsh@\S+: (?P<ssh>\S+): ssh exited with exit code (?P<status>\d+)"
    rb"|process rank (?P<rank>\d+) with PID \d+ on node (?P<node>\S+) exited on signal (?P<signal>\d+)"
)


def describe(match: Match[bytes]) -> str:
    """Return a match of FAILURE as a sentence."""
    groups = {name: text.decode("utf-8", "replace") for name, text in match.groupdict().items() if text}
    if "rank" in groups:
        return "rank %(rank)s on %(node)s was ended by signal %(signal)s" % groups
    if "ssh" in groups:
        return "ssh to %(ssh)s ended with exit code %(status)s" % groups
    if groups["code"].startswith("-"):
        return "a rank on %s was ended by signal %s" % (groups["ranks"], groups["code"][1:])
    return "a rank on %(ranks)s ended with exit code %(code)s" % groups


class Copy(threading.Thread):
    """Copies a stream to standard output, and keeps the first failure and its time."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self.stream = stream
        self.failure: Optional[Match[bytes]] = None
        self.failed_at: Optional[float] = None

    def run(self) -> None:
        """Copy until the stream ends."""
        for line in iter(self.stream.readline, b""):
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
            if self.failure is None:
                self.failure = FAILURE.search(line)
                self.failed_at = time.monotonic() if self.failure else None

    def is_overdue(self) -> bool:
        """Return whether something failed and the launcher has not ended within its grace period."""
        return self.failed_at is not None and time.monotonic() - self.failed_at > GRACE_SECONDS


def main() -> None:
    """Copy the command's output, then report the failure."""
    process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None  # it is a pipe
    copy = Copy(process.stdout)
    copy.start()
    while copy.is_alive() and not copy.is_overdue():
        copy.join(0.1)
    code = 1 if copy.is_alive() else process.wait()
    if code:
        reason = describe(copy.failure) if copy.failure else "the launcher ended with %d" % code
        print("deepspeed: " + reason, flush=True)
    os._exit(1 if code else 0)  # does not wait for the copy, which may be in the middle of a line


if __name__ == "__main__":
    main()
