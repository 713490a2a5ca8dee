#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Prints what a trainer prints, at a given pace, and fails on one node at one step if asked to.

usage: trainer.py [--sync] [--work SHARE] [--memory BATCH] SECONDS_A_STEP KIND:NODE:STEP[,KIND:NODE:STEP ...]

The first fault is for the first repeat, the second for the second, and so on. With --sync the nodes wait for
each other at every step, as a collective does, forever if one has ended, and print the times of the slowest
script. SHARE is the part of a step that is computed instead of slept. With a batch per device above BATCH the
first step is out of memory.
"""

import argparse
import os
import signal
import socket
import sys
import time

import trainer_kit

say = trainer_kit.Say("SCRIPTED")


class Alone:
    """A node that waits for no other."""

    def meet(self, due):
        return due


class Peers:
    """A barrier over TCP at the first node: all nodes leave it with the latest `due`."""

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
            self.send(self.files[0], due)
            return self.receive(self.files[0])
        due = max([due] + [self.receive(file) for file in self.files])
        for file in self.files:
            self.send(file, due)
        return due

    def send(self, file, due):
        try:
            file.write("%.9f\n" % due)
            file.flush()
        except OSError:
            time.sleep(86400)  # TensorFlow 2.3 waits for a killed peer like this

    def receive(self, file):
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


def fail(kind):
    """Do what meta/argument_specs.yml describes for `kind`."""
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
    parser.add_argument("--memory", type=int, default=0)
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
    say(devices=devices)
    say(task=os.environ["TASK_INDEX"])
    address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    peers = Peers(os.environ["TASK_INDEX"] == "0", address, nodes) if args.sync and nodes > 1 else Alone()
    due = began = peers.meet(time.time())
    for step in range(1, steps + 1):
        pace = args.pace * (2 if kind == "slow" and step > int(at) else 1)
        burn(pace * args.work)
        due = peers.meet(due + pace)
        time.sleep(max(0, due - time.time()))
        loss = "nan" if kind == "nan" and step >= int(at) else "%.6f" % (7 - step / steps)
        # The time of the script, not of the clock: two runs of one script give the same result.
        now = due if args.sync else time.time()
        say(step="%d/%d" % (step, steps), loss=loss, time="%.6f" % now)
        if step == int(at):
            fail(kind)
        if 0 < args.memory < int(os.environ["BSZ"]):
            fail("oom")
    print("SCRIPTED end, %.3f s" % (time.time() - began), flush=True)


if __name__ == "__main__":
    main()
