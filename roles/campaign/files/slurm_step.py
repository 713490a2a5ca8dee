#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A job that srun starts: how it is bounded, how it is ended, and which of its nodes still answer.

usage: slurm_step.py SECONDS srun ...     run a command as a job's srun is run, for at most so long

Slurm knows the job's step by its name, which is the job's SCALEBOOK_JOB: so it is found and ended also when
its srun is dead. Only SIGUSR1 is passed on by srun: after SIGTERM it kills the tasks before they have written
their records, and when its process group is killed the step runs on.

Runs on the nodes' own Python, 3.6 or later, standard library only.
"""

import contextlib
import errno
import math
import os
import select
import socket
import subprocess
import sys
import time
from typing import Dict, Iterable, List, Sequence, Tuple

INHERITED = ("SLURM_", "SBATCH_", "SALLOC_", "SRUN_")
"""How variables begin that are options of srun, which those of the allocation's own command must not be."""

NODES = "--nodelist="
"""How the word of srun's command begins that names a node for each process."""

ARGUMENT = 128 << 10
"""Bytes that Linux allows one argument of a program to have, with its closing NUL."""

ANSWER = 10.0
"""Seconds that slurmctld has to answer."""

PROBE, SILENCE, AT_ONCE = 3.0, 9.0, 256
"""Seconds between two questions to a node; seconds without an answer; how many are asked at the same time."""

DISCARD = 9
"""The port that nodes are asked at; that nobody listens there is an answer too."""


def starts(command: Sequence[str]) -> bool:
    """Tell whether `command` starts a job with srun."""
    return os.path.basename(command[0]) == "srun"


def bounded(command: Sequence[str], limit: float, grace: float) -> List[str]:
    """Return `command` so that its step ends by itself, also when nothing of it is left on this machine."""
    timeout = ["timeout", "--foreground", "--signal=USR1", "--kill-after=%d" % grace, "%d" % (limit + grace)]
    return timeout + [command[0], "--time=%d" % (math.ceil((limit + grace) / 60) + 1)] + list(command[1:])


def with_node_file(command: Sequence[str], directory: str) -> List[str]:
    """Return `command`, with its list of nodes in a file if the list is too long an argument for Linux.

    Not always: Slurm 22.05 takes no more than 64 KiB from a file, with ranges where names end in numbers.
    """
    path = os.path.join(os.path.abspath(directory), "nodes")  # to srun a word with a slash is a file
    [names] = [word for word in command if word.startswith(NODES)]
    if len(names) < ARGUMENT:
        return list(command)
    with open(path, "w", encoding="utf-8") as file:
        file.write(names[len(NODES) :].replace(",", "\n") + "\n")
    return [NODES + path if word is names else word for word in command]


def environment() -> Dict[str, str]:
    """Return the environment for srun: without the options of the allocation or step that this runs in."""
    return {
        name: value
        for name, value in os.environ.items()
        if name == "SLURM_CONF" or not name.startswith(INHERITED)
    }


def steps(places: Iterable[str]) -> Dict[str, str]:
    """Return {step: job} of this user's steps that are, or whose name is below, one of `places`."""
    names = [os.path.join(place, "") for place in places]
    argv = ["squeue", "--steps", "--noheader", "--user=%d" % os.getuid(), "--format=%i %j"]
    pairs = (line.split(" ", 1) for line in _output(argv).splitlines() if " " in line)
    return {step: job for step, job in pairs if os.path.join(job, "").startswith(tuple(names))}


def cancel(places: Iterable[str]) -> Dict[str, str]:
    """End the steps of jobs in or below `places`, asked first and made to by Slurm; return {step: job}."""
    there = steps(places)
    if there:
        _output(["scancel"] + sorted(there))
    return there


def _output(argv: Sequence[str]) -> str:
    """Return what a program of Slurm prints, "" where there is none or it does not answer."""
    try:
        return subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
            timeout=ANSWER,
            check=False,
        ).stdout.decode("utf-8", "replace")
    except (OSError, subprocess.TimeoutExpired):
        return ""


class Peers:
    """The other nodes of a job, asked again and again whether they answer.

    Slurm itself gives a silent node up only after SlurmdTimeout, 300 s by default. A node that has never
    answered, as behind a firewall, is not taken for lost.
    """

    def __init__(self, addresses: Iterable[str]) -> None:
        self.places: Dict[str, str] = {}
        for address in addresses:
            try:
                self.places[address] = socket.gethostbyname(address)
            except OSError:
                continue  # a name that only others can resolve
        self.heard: Dict[str, float] = {}
        self.asked: Dict[int, Tuple[socket.socket, str]] = {}
        self.waiting: List[str] = []
        self.next = 0.0
        self.poll = select.poll()

    def silent(self) -> List[str]:
        """Ask where it is time, and return the nodes that have answered before and do not any more."""
        now = time.monotonic()
        for descriptor, _ in self.poll.poll(0):
            connection, address = self.asked[descriptor]
            self._hear(address, connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
            self._close(descriptor)
        if now >= self.next:
            for descriptor in list(self.asked):
                self._close(descriptor)
            self.waiting, self.next = list(self.places), now + PROBE
        while self.waiting and len(self.asked) < AT_ONCE:
            self._ask(self.waiting.pop())
        return [name for name in self.places if now - self.heard.get(name, now) > SILENCE]

    def _ask(self, address: str) -> None:
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        connection.setblocking(False)
        self.asked[connection.fileno()] = connection, address
        code = connection.connect_ex((self.places[address], DISCARD))
        if code == errno.EINPROGRESS:
            self.poll.register(connection, select.POLLOUT)
        else:
            self._hear(address, code)
            self._close(connection.fileno())

    def _hear(self, address: str, code: int) -> None:
        if code in (0, errno.ECONNREFUSED):
            self.heard[address] = time.monotonic()

    def _close(self, descriptor: int) -> None:
        connection, _ = self.asked.pop(descriptor)
        with contextlib.suppress(KeyError):  # it answered at once
            self.poll.unregister(connection)
        connection.close()


def main() -> None:
    """Run the command, and end as it does."""
    try:
        sys.exit(subprocess.call(sys.argv[2:], env=environment(), timeout=float(sys.argv[1])))
    except OSError as error:
        sys.exit("%s: %s" % (sys.argv[2], error.strerror))
    except subprocess.TimeoutExpired:
        sys.exit("%s: the nodes have not answered within %s s" % (sys.argv[2], sys.argv[1]))


if __name__ == "__main__":
    main()
