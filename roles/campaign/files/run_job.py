#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Start one job and wait for it: its launcher, mpirun or srun, in a session of its own, under limits.

usage: run_job.py --dir DIR --timeout SECONDS --rendezvous SECONDS [--lock FILE --holder ID] [-- mpirun ...]

DIR is the job directory of the job's first node, which is this machine; its launch.json has the command
where none is given. Prints one JSON line: {"rc", "seconds", "cpu", "started", "ended", "timed_out",
"ended_by", "unstarted", "lingered", "hosts", "launcher", "stderr"}; `seconds` is the time the launcher ran,
`cpu` the processor time of the job on this machine, `stderr` the beginning and the end of what it said.

`ended_by` says why this program ended the job, null where it ended by itself: `timeout` (its time limit),
`rendezvous` (the first node's part has not begun in time; `unstarted` are the hosts that mpirun still logs
in to), `failure` (the first node's part went wrong, and mpirun did not end), `signal` (somebody ended this
program), `connection` (to the control node), `lost` (the `hosts` do not answer this machine any more; with
srun only, mpirun notices it itself), or `lingered`: the first node's part ended well, and the launcher did
not end. Then `rc` is 0, since the logs tell what the nodes did, and `hosts` are those that mpirun still
waited for, as far as this machine knows.

A job ends with the connection to the control node, as after Ctrl-C there: nobody would read what this prints.
All its processes carry SCALEBOOK_JOB=DIR in their environment: that is how the next start finds and ends
those of a control node that was killed. With --lock, nothing is started unless ID holds the lock FILE: a
control node that another one took for dead must not start a job beside the other's.

Runs on the nodes' own Python, 3.6 or later, standard library only.
"""

import argparse
import glob
import json
import os
import select
import signal
import subprocess
import sys
import time
from datetime import datetime, timezone
from typing import BinaryIO, Dict, List, Optional

import orphans
import slurm_step

GRACE = 10.0
"""Seconds that mpirun gets to end its ranks before it is killed itself."""

LINGER = 12.0
"""Seconds that mpirun may take to end the others when the first node's part has gone wrong."""

FAREWELL = 30.0
"""Seconds that mpirun may take to end when the first node's part has ended well."""

SETTLE = 5.0
"""Seconds that the tasks of a step get to end before Slurm ends it."""

END = 3000
"""Bytes of the beginning, and of the end, of what mpirun said that are reported."""


def now() -> str:
    """Return the time of day in UTC, in seconds, as ISO 8601."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def holds(path: str, holder: Optional[str]) -> bool:
    """Tell whether the lock at `path` is that of `holder`."""
    try:
        with open(path, encoding="utf-8") as file:
            same: bool = json.load(file).get("id") == holder
            return same
    except (OSError, ValueError, AttributeError):
        return False


def ends_of(file: BinaryIO) -> str:
    """Return the beginning and the end of `file`: the cause of a failure mostly comes first."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if size <= 2 * END:
        return file.read().decode("utf-8", "replace")
    first = file.read(END)
    file.seek(size - END)
    return (first + b"\n...\n" + file.read()).decode("utf-8", "replace")


def launch_command(directory: str) -> List[str]:
    """Return the command in the directory's launch.json."""
    with open(os.path.join(directory, "launch.json"), encoding="utf-8") as file:
        command: List[str] = json.load(file)
        return command


def read_by_nobody(descriptor: int) -> bool:
    """Tell whether the other end of a pipe or socket is closed, as that of the control node may be."""
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def read_env(directory: str) -> Dict[str, str]:
    """Return the variables of the directory's job.env, none where it has none."""
    try:
        with open(os.path.join(directory, "job.env"), encoding="utf-8") as file:
            return dict(line.rstrip("\n").split("=", 1) for line in file if "=" in line)
    except OSError:
        return {}


class Job:
    """The launcher of a job, and what is known of it."""

    def __init__(self, args: argparse.Namespace, command: List[str], stderr: BinaryIO) -> None:
        self.directory, self.rendezvous, self.command = args.dir, args.rendezvous, command
        self.began = time.monotonic()
        self.ended_since: Optional[float] = None
        self.ended_by: Optional[str] = None
        self.unstarted: List[str] = []
        self.awaited: List[str] = []
        self.by_srun = slurm_step.starts(command)
        hosts = read_env(args.dir).get("HOSTS", "").split(",") if self.by_srun else [""]
        self.peers = slurm_step.Peers(set(hosts) - {hosts[0]})
        if self.by_srun:
            command = slurm_step.with_node_file(command, args.dir)
            command = slurm_step.bounded(command, args.timeout, GRACE)
        else:
            # `timeout` outlives this process should somebody kill it: the job stays bounded.
            command = ["timeout", "--kill-after=%d" % GRACE, "%d" % (args.timeout + GRACE)] + command
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stderr,
            stderr=stderr,
            start_new_session=True,
            env=dict(slurm_step.environment() if self.by_srun else os.environ, **{orphans.MARK: args.dir}),
        )

    def wait(self, seconds: float) -> bool:
        """Tell whether the launcher ended within `seconds`."""
        try:
            return self.process.wait(seconds) is not None
        except subprocess.TimeoutExpired:
            return False

    def overdue(self) -> Optional[str]:
        """Return how the job is overdue: not begun in time, or not ended though the first node's part has.

        mpirun waits without an end for a host whose login hangs, and for one whose processes are frozen.
        """
        now = time.monotonic()
        if self.rendezvous and now - self.began > self.rendezvous:
            if not glob.glob(os.path.join(glob.escape(self.directory), "*.log")):
                self.unstarted = self.logins()
                return "rendezvous"
            self.rendezvous = 0
        self.awaited = self.peers.silent()
        if self.awaited:
            return "lost"
        well = self._ended_well()
        if well is None:
            return None
        self.ended_since = self.ended_since or now
        if now - self.ended_since <= (FAREWELL if well else LINGER):
            return None
        if well:
            self.awaited = self.logins()
        return "lingered" if well else "failure"

    def find(self) -> List[int]:
        """Return the pids of the job's processes on this machine."""
        return orphans.with_group(self.process.pid, ("%s=%s" % (orphans.MARK, self.directory)).encode())

    def end(self) -> None:
        """End it: its launcher is asked first, so that it ends the other nodes' parts."""
        if self.by_srun:
            self._end_step()
        else:
            self._end_mpirun()
        orphans.end(self.find)

    def _end_step(self) -> None:
        """End it in Slurm's ways, which SIGTERM and a kill of the process group are not, see slurm_step."""
        self.process.send_signal(signal.SIGUSR1)
        if not self.wait(SETTLE):
            slurm_step.cancel([self.directory])
            self.wait(GRACE)  # by then `timeout` has killed an srun that waits for a lost node
        slurm_step.cancel([self.directory])

    def _end_mpirun(self) -> None:
        for number, seconds in ((signal.SIGTERM, GRACE), (signal.SIGKILL, 1)):
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:
                break
            if self.wait(seconds):
                break

    def logins(self) -> List[str]:
        """Return the hosts of mpirun's --host list that it still logs in to."""
        hosts = self.command[self.command.index("--host") + 1] if "--host" in self.command else ""
        names = [word.rsplit(":", 1)[0] for word in hosts.split(",")]
        remaining = set()
        for pid in self.find():
            try:
                with open("/proc/%d/cmdline" % pid, "rb") as file:
                    words = file.read().decode("utf-8", "replace").split("\0")
            except OSError:
                continue  # it ended meanwhile
            if os.path.basename(words[0]) == "ssh":
                remaining.update(set(words) & set(names))
        return [name for name in names if name in remaining]

    def _ended_well(self) -> Optional[bool]:
        """Tell whether the first node's part ended well, None where it has not ended."""
        try:
            with open(os.path.join(self.directory, "exit.json"), encoding="utf-8") as file:
                record = json.load(file)
        except (OSError, ValueError):
            return None
        well: bool = record.get("status") == "exited" and record.get("rc") == 0
        return well


def catch_signals() -> List[int]:
    """Return a list that gets the signals that ask this program to end."""
    signals: List[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, lambda number, _frame: signals.append(number))
    return signals


def supervise(job: Job, limit: float, signals: List[int]) -> None:
    """Wait until the job has ended, and end it where it has to be."""
    while not job.wait(0.25):
        if time.monotonic() - job.began > limit:
            job.ended_by = "timeout"
        elif signals:
            job.ended_by = "signal"
        elif read_by_nobody(1):
            job.ended_by = "connection"
        else:
            job.ended_by = job.overdue()
        if job.ended_by:
            job.end()
            return


def main() -> None:
    """Run the job and print how it ended; the exit status is always 0, `rc` is mpirun's."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--dir", required=True)
    parser.add_argument("--timeout", type=float, required=True)
    parser.add_argument("--rendezvous", type=float, default=0)
    parser.add_argument("--lock")
    parser.add_argument("--holder")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    if args.lock and not holds(args.lock, args.holder):
        sys.exit(
            "scalebook: the lock %s is not %s's any more: nothing was started" % (args.lock, args.holder)
        )
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    command = command or launch_command(args.dir)

    stderr_path, started = os.path.join(args.dir, "mpirun.stderr"), now()
    signals = catch_signals()  # before there is anything that would be left
    with open(stderr_path, "w+b") as stderr:
        job = Job(args, command, stderr)
        supervise(job, args.timeout, signals)
        code = job.process.wait()
        seconds = time.monotonic() - job.began
        text = ends_of(stderr)
    if job.ended_by == "connection":
        return
    lingered = job.ended_by == "lingered"
    if lingered:
        code = 0  # the ranks ended before it was ended
    print(
        json.dumps(
            {
                "rc": code if code >= 0 else 128 - code,
                "seconds": round(seconds, 3),
                "cpu": round(sum(os.times()[2:4]), 3),
                "started": started,
                "ended": now(),
                "timed_out": job.ended_by == "timeout",
                "ended_by": job.ended_by,
                "unstarted": job.unstarted,
                "lingered": lingered,
                "hosts": job.awaited,
                "launcher": "srun" if job.by_srun else "mpirun",
                "stderr": text,
            }
        )
    )


if __name__ == "__main__":
    main()
