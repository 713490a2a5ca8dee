#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""One node's part of one run: started by mpirun on every node, ends with exit.json.

usage: run_node.py --processes P NODE=DIR [NODE=DIR ...]

The directories are the nodes' job directories in task_index order; this node's is the one of
its own mpirun rank. It checks that rank and job agree, starts DIR/run.sh in a process group of
its own with the environment of DIR/job.env, stamps every line of its output with the time it
was received (monotonic and wall clock, a reading that needs no framework), ends the group when
it says nothing for STALL_SECONDS or when mpirun ends the gang, and leaves no process behind.

Runs on the nodes' own Python, 3.6 or later, standard library only.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

KILL_AFTER = 3.0
"""Seconds between asking a process group to end and making it."""

LAST_LINES = 20


class RefusedError(Exception):
    """This rank is not the node that the job is for."""


def read_env(path):
    """Return the variables of a job.env file (KEY=VALUE lines) as a dict."""
    with open(path, encoding="utf-8") as file:
        return dict(line.rstrip("\n").split("=", 1) for line in file if "=" in line)


def find_job(rank, processes, jobs):
    """Return (node, directory, environment) of mpirun rank `rank`.

    `jobs` are NODE=DIR words in task_index order, `processes` how many ranks a node has.
    Raises RefusedError when this host has no such job: mpirun ordered the hosts otherwise.
    """
    if rank // processes >= len(jobs):
        raise RefusedError("mpirun rank %d has no job: there are %d nodes" % (rank, len(jobs)))
    node, directory = jobs[rank // processes].split("=", 1)
    try:
        env = read_env(os.path.join(directory, "job.env"))
    except OSError as error:
        there = [job.split("=", 1)[0] for job in jobs if os.path.exists(job.split("=", 1)[1])]
        raise RefusedError(
            "mpirun made host %s rank %d, which is %s, but its job is not here (%s); here is the job of %s"
            % (socket.gethostname(), rank, node, error, ", ".join(there) or "no node")
        ) from error
    if int(env["TASK_INDEX"]) != rank // processes or env["NODE"] != node:
        raise RefusedError(
            "mpirun rank %d is %s, but its job says task_index %s of %s"
            % (rank, node, env["TASK_INDEX"], env["NODE"])
        )
    return node, directory, env


def check_port(port):
    """Refuse a port that something else listens on: the framework's own message would be a riddle."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError as error:
            raise RefusedError(
                "port %d on %s is in use (%s): end what holds it or choose others with campaign_port"
                % (port, socket.gethostname(), error.strerror)
            ) from error


class Log:
    """The node's log file: every line behind two time stamps, the last lines kept in memory."""

    def __init__(self, path):
        self.file = open(path, "wb")  # noqa: SIM115 - open for the life of the run
        self.lines = 0
        self.heard = time.monotonic()

    def write(self, line):
        """Append one line of bytes (its end may be missing) with the stamps of now."""
        self.heard = time.monotonic()
        self.file.write(b"%.6f %.6f " % (self.heard, time.time()))
        self.file.write(line if line.endswith(b"\n") else line + b"\n")
        self.file.flush()
        self.lines += 1

    def event(self, **values):
        """Append a line of our own: SCALEBOOK and a JSON object."""
        self.write(b"SCALEBOOK " + json.dumps(values, sort_keys=True).encode() + b"\n")


def end_group(process):
    """End the process group of `process`: asked first, made after KILL_AFTER seconds."""
    # What was killed and only waits for an init that is slow to reap is no reason to wait long.
    for number, patience in ((signal.SIGTERM, KILL_AFTER), (signal.SIGKILL, 0.5)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            process.poll()
            try:
                os.killpg(process.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.05)


def copy_output(process, log, failures):
    """Copy the output of `process` into `log` line by line until it ends; keep what goes wrong."""
    try:
        for line in iter(lambda: process.stdout.readline(1 << 20), b""):
            log.write(line)
    except OSError as error:  # a full disk: the run must not be counted
        failures.append("%s: %s" % (log.file.name, error.strerror))
        process.stdout.close()


def run(directory, env, log):
    """Run DIR/run.sh and return how it ended: {"rc", "signal", "status", "reason"}."""
    ended_by = []

    def on_signal(number, _frame):
        ended_by.append(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, on_signal)
    stall, failures = float(env.get("STALL_SECONDS") or 0), []
    process = subprocess.Popen(
        ["/bin/sh", os.path.join(directory, "run.sh")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=directory,
        env=dict(os.environ, **env),
        start_new_session=True,
    )
    reader = threading.Thread(target=copy_output, args=(process, log, failures), daemon=True)
    reader.start()
    status, reason = "exited", None
    while process.poll() is None:
        if ended_by:
            status, reason = "terminated", "ended by the gang (signal %d)" % ended_by[0]
        elif failures:
            status, reason = "failed", failures[0]
        elif stall and time.monotonic() - log.heard > stall:
            status, reason = "hung", "no output for %g s" % stall
        if status != "exited":
            break
        reader.join(0.1)
        if not reader.is_alive():
            time.sleep(0.02)
    end_group(process)  # also what the workload left behind after it ended
    code = process.wait()
    reader.join(KILL_AFTER)
    if status == "exited" and failures:
        status, reason = "failed", failures[0]
    if status == "exited" and code < 0:
        status = "signaled"
    return {"rc": max(code, 0), "signal": -code if code < 0 else None, "status": status, "reason": reason}


def write_whole(path, text):
    """Write `text` to `path` whole or not at all."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)


def main():
    """Run this rank's job; the exit status is the workload's own, so that mpirun ends the gang."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("jobs", nargs="+")
    args = parser.parse_args()
    rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
    started, clock = time.time(), time.monotonic()
    try:
        node, directory, env = find_job(rank, args.processes, args.jobs)
    except RefusedError as error:
        sys.exit("scalebook: refused: %s" % error)
    local = rank % args.processes
    name = node if local == 0 else "%s.%d" % (node, local)
    log = Log(os.path.join(directory, name + ".log"))
    about = {"node": node, "task_index": int(env["TASK_INDEX"]), "host": socket.gethostname()}
    log.event(event="start", run=env["SCALEBOOK_RUN"], pid=os.getpid(), **about)
    try:
        if local == 0:
            check_port(int(env["PORT"]))
        ended = run(directory, env, log)
    except RefusedError as error:
        ended = {"rc": 1, "signal": None, "status": "refused", "reason": str(error)}
        sys.stderr.write("scalebook: refused: %s\n" % error)
    record = dict(about, event="exit", started=started, ended=time.time(), lines=log.lines, **ended)
    record["seconds"] = round(time.monotonic() - clock, 3)
    try:
        log.event(**record)
        write_whole(
            os.path.join(directory, "exit.json" if local == 0 else name + ".exit.json"),
            json.dumps(record, sort_keys=True) + "\n",
        )
    except OSError as error:
        sys.exit("scalebook: failed: %s: %s" % (error.filename or directory, error.strerror))
    sys.exit(0 if ended["status"] == "exited" and ended["rc"] == 0 else ended["rc"] or 1)


if __name__ == "__main__":
    main()
