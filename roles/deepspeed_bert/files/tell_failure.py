#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Run DeepSpeed's launcher; where it fails, say in one last line which node's rank did so first.

usage: tell_failure.py COMMAND [ARGUMENT ...]

The launcher logs in to other nodes with pdsh or mpirun, and of what fails there its exit status says nothing.
pdsh besides waits for the other nodes, whose ranks wait for the one that is gone: this ends without it, and
run_node ends what it leaves. The output is copied as it comes. The exit status is 0 or 1: 137 would read as
if this node had been killed.

Runs on the nodes' own Python, 3.6 or later, standard library only.
"""

import os
import re
import subprocess
import sys
import threading
import time

PATIENCE = 5.0
"""Seconds that the launcher has to end by itself."""

FIRST = re.compile(
    # launch.py on a node, through pdsh; pdsh itself; Open MPI's mpirun
    rb"^(?P<ranks>\S+): .*exits with return code = (?P<code>-?\d+)"
    rb"|^pdsh@\S+: (?P<ssh>\S+): ssh exited with exit code (?P<status>\d+)"
    rb"|process rank (?P<rank>\d+) with PID \d+ on node (?P<node>\S+) exited on signal (?P<signal>\d+)"
)


def words(found):
    """Return a match of FIRST as a sentence."""
    said = {name: text.decode("utf-8", "replace") for name, text in found.groupdict().items() if text}
    if "rank" in said:
        return "rank %(rank)s on %(node)s was ended by signal %(signal)s" % said
    if "ssh" in said:
        return "ssh to %(ssh)s ended with exit code %(status)s" % said
    if said["code"].startswith("-"):
        return "a rank on %s was ended by signal %s" % (said["ranks"], said["code"][1:])
    return "a rank on %(ranks)s ended with exit code %(code)s" % said


class Copy(threading.Thread):
    """Copies a stream to standard output, and keeps what is told of the first failure, and when."""

    def __init__(self, stream):
        super().__init__(daemon=True)
        self.stream = stream
        self.first = self.since = None

    def run(self):
        """Copy until the stream ends."""
        for line in iter(self.stream.readline, b""):
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
            if self.first is None:
                self.first = FIRST.search(line)
                self.since = self.first and time.monotonic()

    def waits(self):
        """Tell whether something failed and the launcher has had its time to end."""
        return self.since is not None and time.monotonic() - self.since > PATIENCE


def main():
    """Copy the command's output, then tell."""
    process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    copy = Copy(process.stdout)
    copy.start()
    while copy.is_alive() and not copy.waits():
        copy.join(0.1)
    code = 1 if copy.is_alive() else process.wait()
    if code:
        said = words(copy.first) if copy.first else "the launcher ended with %d" % code
        print("deepspeed: " + said, flush=True)
    os._exit(1 if code else 0)  # without waiting for the copy, which may be in the middle of a line


if __name__ == "__main__":
    main()
