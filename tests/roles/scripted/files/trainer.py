#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Says what a trainer would say, at a set pace; goes wrong on one node at one step if told to.

usage: trainer.py [--sync] [--work SHARE] SECONDS_PER_STEP KIND:NODE:STEP[,KIND:NODE:STEP ...]

The first fault is that of the first repeat, the second that of the second, and so on. With --sync
the nodes wait for each other at every step, as a collective does, for ever if one is gone, and the
times they print are those of the slowest's script. SHARE is the part of a step that is computed
instead of slept.
"""

import argparse
import os
import signal
import socket
import sys
import time


class Alone:
    """Nobody to wait for."""

    def meet(self, due):
        return due


class Peers:
    """A barrier over TCP at the first node: everybody leaves it with the latest `due` of all."""

    def __init__(self, first, address, nodes):
        self.first = first
        if first:
            server = socket.socket()
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind(("", address[1]))
            server.listen(nodes)
            connections = [server.accept()[0] for _ in range(nodes - 1)]
        else:
            connections = [self.connect(address)]
        self.files = [connection.makefile("rw") for connection in connections]

    def connect(self, address):
        while True:
            try:
                connection = socket.create_connection(address, timeout=5)
            except OSError:
                time.sleep(0.05)
            else:
                connection.settimeout(None)
                return connection

    def meet(self, due):
        """Wait for all and return the latest `due`."""
        if not self.first:
            self.say(self.files[0], due)
            return self.hear(self.files[0])
        due = max([due] + [self.hear(file) for file in self.files])
        for file in self.files:
            self.say(file, due)
        return due

    def say(self, file, due):
        try:
            file.write("%.9f\n" % due)
            file.flush()
        except OSError:
            time.sleep(86400)  # TensorFlow 2.3 waits for a killed peer just so

    def hear(self, file):
        try:
            line = file.readline()
        except OSError:
            line = ""
        if not line:
            time.sleep(86400)
        return float(line)


def burn(seconds):
    """Use the processor for `seconds` of its time."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def go_wrong(kind):
    """Do what is said of `kind` in the role's defaults."""
    if kind == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif kind == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif kind == "exit":
        sys.exit(3)
    elif kind == "hang":
        time.sleep(86400)
    elif kind == "short":
        sys.exit(0)
    elif kind == "oom":
        print("SCRIPTED out of memory", flush=True)
        sys.exit(1)
    elif kind == "eat":
        kept = []
        while True:
            kept.append(b"x" * (1 << 24))
    elif kind == "fill":
        while True:
            print("SCRIPTED " + "x" * 4000, flush=True)


def main():
    """Print the steps of one run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sync", action="store_true")
    parser.add_argument("--work", type=float, default=0)
    parser.add_argument("pace", type=float)
    parser.add_argument("faults")
    args = parser.parse_args()
    repeat = int(os.environ["SCALEBOOK_RUN"].rpartition("/")[2])
    faults = args.faults.split(",")
    kind, node, at = faults[repeat - 1].split(":") if repeat <= len(faults) else ("", "", "0")
    kind = kind if node == os.environ["NODE"] else ""
    if kind == "absent":
        time.sleep(86400)
    steps, nodes = int(os.environ["STEPS"]), int(os.environ["NNODES"])
    devices = 1 if kind == "alone" else int(os.environ["WORLD_SIZE"])
    print("SCRIPTED devices=%d\nSCRIPTED task=%s" % (devices, os.environ["TASK_INDEX"]), flush=True)
    address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    peers = Peers(os.environ["TASK_INDEX"] == "0", address, nodes) if args.sync and nodes > 1 else Alone()
    due = began = peers.meet(time.time())
    for step in range(1, steps + 1):
        pace = args.pace * (2 if kind == "slow" and step > int(at) else 1)
        burn(pace * args.work)
        due = peers.meet(due + pace)
        time.sleep(max(0, due - time.time()))
        loss = "nan" if kind == "nan" and step >= int(at) else "%.6f" % (7 - step / steps)
        # By the script, not by the clock: two runs of the same script measure the same.
        now = due if args.sync else time.time()
        print("SCRIPTED step=%d/%d loss=%s time=%.6f" % (step, steps, loss, now), flush=True)
        if step == int(at):
            go_wrong(kind)
    print("SCRIPTED end, %.3f s" % (time.time() - began), flush=True)


if __name__ == "__main__":
    main()
