#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""One node's part of one run: started by mpirun or srun on every node, ends with exit.json.

usage: run_node.py --processes P [--binding numa] NODE=DIR [NODE=DIR ...]

The directories are the nodes' job directories in task_index order; this node's is the one of its own
rank, OMPI_COMM_WORLD_RANK or SLURM_PROCID. It checks that rank and job agree, starts DIR/run.sh in a
process group of its own with the environment of DIR/job.env, and stamps every line of its output with
the time it was received (monotonic and wall clock, a reading that needs no framework). It ends the
workload when no step comes in time, when it falls silent (limits in DIR/watch.json), when the disk is
full and when mpirun ends the job or dies, and leaves no process behind, even if it is itself killed.
Where DIR/telemetry.json asks for it, a sampler reads meanwhile how busy the node is. With --binding numa
each rank is bound to the processors beside its GPU (binding.py). Where there is a DIR/container.json,
DIR/run.sh runs in a container (container.py), which ends as its processes do.

Runs on the nodes' own Python, 3.6 or later, standard library only.
"""

import argparse
import errno
import glob
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import binding
import container
import flight
import messages
import orphans
import procfs
import stacks
import telemetry

PR_SET_CHILD_SUBREAPER = 36
"""The option of prctl that makes this process the parent of all its descendants whose parent has ended."""

KEPT = 1 << 20
"""Bytes of the beginning and of the end that are kept of a log that is too large."""

KILL_AFTER = 0.5
"""Seconds between asking the workload to end and making it; mpirun gives run_node itself one."""

REFUSED = "scalebook: refused: "
"""What a line begins with that says why this run is refused; a node script may end with such a line too."""

LATER = 5.0
"""Seconds by which a node's further processes are more patient than its first, whose record is read."""

SILENT = 3.0
"""Seconds of silence from which a workload that the job ends may be the one that the others wait for."""

RESERVE = 16384
"""Bytes kept free so that a full disk cannot keep the closing line from being written."""


ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)
"""Signals by which a launcher ends the job; SIGUSR1 is the one that srun passes on."""


class RefusedError(messages.MessageError):
    """This rank is not the node that the job is for."""


def read_env(path: str) -> Dict[str, str]:
    """Return the variables of a job.env file (KEY=VALUE lines) as a dict."""
    with open(path, encoding="utf-8") as file:
        return dict(line.rstrip("\n").split("=", 1) for line in file if "=" in line)


def read_limits(directory: str) -> Dict[str, Any]:
    """Return the content of the directory's watch.json, see Watch; without one there is no limit."""
    path = os.path.join(directory, "watch.json")
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        limits: Dict[str, Any] = json.load(file)
        return limits


def find_job(rank: int, processes: int, jobs: Sequence[str]) -> Tuple[str, str, Dict[str, str]]:
    """Return (node, directory, environment) of mpirun rank `rank`.

    `jobs` are NODE=DIR words in task_index order, `processes` how many ranks a node has.
    Raises RefusedError when this host has no such job: mpirun ordered the hosts otherwise.  On a file system
    that nodes share every job is here; there Slurm's name of this node tells.
    """
    if rank // processes >= len(jobs):
        raise RefusedError("refused.no-job", rank=rank, nodes=len(jobs))
    node, directory = jobs[rank // processes].split("=", 1)
    here = os.environ.get("SLURMD_NODENAME", node)
    if here != node:
        raise RefusedError("refused.other-node", rank=rank, here=here, node=node)
    try:
        env = read_env(os.path.join(directory, "job.env"))
    except OSError as error:
        there = [job.split("=", 1)[0] for job in jobs if os.path.exists(job.split("=", 1)[1])]
        values = {"host": socket.gethostname(), "rank": rank, "node": node, "why": str(error)}
        if there:
            raise RefusedError("refused.job-elsewhere", there=", ".join(there), **values) from error
        raise RefusedError("refused.no-job-here", **values) from error
    if int(env["TASK_INDEX"]) != rank // processes or env["NODE"] != node:
        other = {"index": env["TASK_INDEX"], "other": env["NODE"]}
        raise RefusedError("refused.other-job", rank=rank, node=node, **other)
    return node, directory, env


def world_rank(processes: int) -> int:
    """Return the rank of this process; where Slurm gave it, node scripts read it by mpirun's names too."""
    if "OMPI_COMM_WORLD_RANK" not in os.environ:
        rank = int(os.environ["SLURM_PROCID"])
        ranks = {"RANK": rank, "LOCAL_RANK": rank % processes, "LOCAL_SIZE": processes}
        os.environ.update({"OMPI_COMM_WORLD_" + name: str(value) for name, value in ranks.items()})
    return int(os.environ["OMPI_COMM_WORLD_RANK"])


def take_gpus(env: Dict[str, str]) -> None:
    """Take the GPUs that the job needs from those that Slurm gave it: the others are somebody else's."""
    count = len(env.get("CUDA_VISIBLE_DEVICES", "").split(",")) if env.get("CUDA_VISIBLE_DEVICES") else 0
    if not count or "SLURM_PROCID" not in os.environ:
        return
    visible = [each for each in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if each]
    if len(visible) < count:
        raise RefusedError("refused.few-gpus", node=env["NODE"], count=len(visible), needed=count)
    env["CUDA_VISIBLE_DEVICES"] = ",".join(visible[:count])


def check_port(port: int) -> None:
    """Refuse a port that is in use: the framework's own message does not explain it."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError as error:
            values = {"port": port, "host": socket.gethostname(), "why": error.strerror}
            raise RefusedError("refused.port", **values) from error


class TooLargeError(OSError):
    """The log has the size that it may have."""


class Log:
    """The node's log file: every line behind two time stamps; 0 or the bytes that it may have."""

    def __init__(self, path: str, most: int = 0) -> None:
        self.most, self.size, self.too_large = most, 0, False
        self.reserve = path + ".reserve"
        with open(self.reserve, "wb") as file:
            file.write(b"\0" * RESERVE)
        self.file = open(path, "wb", buffering=0)  # noqa: SIM115 - open for the life of the run
        self.lines = 0
        self.torn = False
        self.heard = time.monotonic()
        self.said = b""

    def write(self, line: bytes) -> None:
        """Append one line of bytes (its end may be missing) with the stamps of now."""
        self.heard = time.monotonic()
        line = line if line.endswith(b"\n") else line + b"\n"
        line = b"%b%.6f %.6f %b" % (b"\n" if self.torn else b"", self.heard, time.time(), line)
        byte_count = self.file.write(line)
        self.torn = 0 < byte_count < len(line)
        self.size += byte_count
        if byte_count != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.file.name)
        self.lines += 1
        if self.most and self.size > self.most and not self.too_large:
            self.too_large = True  # there is still a place for the closing line
            raise TooLargeError(errno.EFBIG, os.strerror(errno.EFBIG), self.file.name)

    def event(self, **values: Any) -> None:
        """Append a line of our own: SCALEBOOK and a JSON object."""
        self.write(b"SCALEBOOK " + json.dumps(values, sort_keys=True).encode() + b"\n")

    def cut(self) -> None:
        """Keep the first and the last KEPT bytes, in whole lines."""
        with open(self.file.name, "r+b") as file:
            file.seek(-KEPT, os.SEEK_END)
            tail = file.read().partition(b"\n")[2]
            file.seek(0)
            head = file.read(KEPT).rpartition(b"\n")[0] + b"\n"
            file.truncate(len(head))
        self.file.seek(0, os.SEEK_END)
        self.event(event="cut", bytes=self.size - len(head) - len(tail))
        self.file.write(tail)

    def sync(self) -> None:
        """Wait until the log is on the disk."""
        os.fsync(self.file.fileno())

    def free_reserve(self) -> None:
        """Give back the space that was kept for the last lines."""
        if os.path.exists(self.reserve):
            os.remove(self.reserve)


class Watch:
    """What the workload has printed so far, compared with the limits of watch.json.

    `literal` and `pattern` tell a step line (group `step`), `warmup` and `last` the steps between which
    the workload, whose processes `pids` returns, is measured. `rendezvous` are the seconds in which the
    first step must come, `stall` those that may pass in silence afterwards. Without `literal` only silence
    counts; 0 switches a limit off. `silences` are shorter limits, in seconds, for silence between a line
    that has such a text and the first step. `mark` is called with the words `first` and `last` when the
    steps `warmup` and `last` are heard.
    """

    def __init__(
        self,
        limits: Dict[str, Any],
        pids: Callable[[], List[int]],
        mark: Callable[[str], Any] = lambda word: None,
    ) -> None:
        self.pids = pids
        self.mark = mark
        self.began = time.monotonic()
        self.said = 0
        self.stepped = False
        self.stall = float(limits.get("stall") or 0)
        self.rendezvous = float(limits.get("rendezvous") or 0)
        self.silences = sorted((limits.get("silences") or {}).items())
        self.since: Tuple[str, float] = ("", 0)
        self.literal = (limits.get("literal") or "").encode()
        self.pattern = re.compile((limits.get("pattern") or "(?P<step>$^)").encode())
        self.marks = [int(limits.get(name) or 0) for name in ("warmup", "last")] if self.literal else []
        self.readings: List[Tuple[float, Tuple[float, float]]] = []

    def hear(self, line: bytes) -> None:
        """Take note of one line of output."""
        self.said += 1
        if self.silences and not self.stepped:
            self.since = next((rule for rule in self.silences if rule[0].encode() in line), self.since)
        if self.literal and self.literal in line:
            self.stepped = True
            if self.marks:
                match = self.pattern.search(line)
                if match and int(match.group("step")) >= self.marks[0]:
                    self.marks.pop(0)
                    self.mark("last" if self.readings else "first")
                    self.readings.append((time.monotonic(), procfs.work_of(self.pids())))

    def overdue(self, last_output: float) -> "Optional[Tuple[str, messages.Message, Dict[str, Any]]]":
        """Return (status, reason, limit) when a limit has passed since `last_output`, else None."""
        now = time.monotonic()
        if self.literal and not self.stepped:
            text, most = self.since
            if text and now - last_output > most:
                limit = {"seconds": most, "after": text}
                return "hung", messages.message("reason.silent-after", **limit), limit
            if self.rendezvous and now - self.began > self.rendezvous:
                limit = {"seconds": self.rendezvous}
                code = "reason.late" if self.said else "reason.late-unsaid"
                return "rendezvous", messages.message(code, **limit), limit
        elif self.stall and now - last_output > self.stall:
            limit = {"seconds": self.stall}
            return "hung", messages.message("reason.silent", **limit), limit
        return None

    def busy(self) -> Optional[Dict[str, float]]:
        """Return {"seconds", "work", "queued"} between the steps `warmup` and `last`.

        `work` is the time that the workload computed or queued for a processor, `queued` the latter alone.
        None if not both steps were seen.
        """
        if len(self.readings) < 2:
            return None
        (begin, before), (end, after) = self.readings
        return {
            "seconds": round(end - begin, 3),
            "work": round(sum(after) - sum(before), 3),
            "queued": round(after[1] - before[1], 3),
        }


class Guard:
    """A process that stops the workload in case run_node is killed by SIGKILL.

    It waits for the end of a pipe, which the kernel closes however run_node ends. It is there before the
    workload is, and is then given the pid to watch: `end` gets that pid, 0 where none was given.
    """

    def __init__(self, end: Callable[[int], Any]) -> None:
        there, self.here = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setsid()  # whoever ends run_node by its process group does not end this
                null = os.open(os.devnull, os.O_RDWR)
                for number in (0, 1, 2):
                    os.dup2(null, number)
                os.closerange(3, there)
                os.closerange(there + 1, 1024)
                answer = os.read(there, 64)
                while answer[-1:] != b".":
                    more = os.read(there, 64)
                    if not more:
                        time.sleep(0 if answer else 0.2)  # it may have been started just now
                        end(int(answer or 0))
                        break
                    answer += more
            finally:
                os._exit(0)
        os.close(there)

    def watch(self, pid: int) -> None:
        """Tell it of the workload."""
        os.write(self.here, b"%d " % pid)

    def dismiss(self) -> None:
        """Let it go: the workload has been ended."""
        os.write(self.here, b".")
        os.close(self.here)
        os.waitpid(self.pid, 0)


def run_behind_proxy(clear: Callable[[], Any]) -> int:
    """Fork: go on in a child with its own session; the parent stays as mpirun's child and forwards signals.

    mpirun kills what it started, with its process group, as soon as it has asked it to stop: the second that
    it would wait otherwise it waits for one node after the other. The child sees that its parent is gone,
    stops the workload and writes its last lines. Where the child is killed, the parent ends what it has
    left, the guard too, and calls `clear`.
    """
    adopt_descendants()  # those of the child, when it is gone
    mpirun, front = os.getppid(), os.getpid()
    behind = os.fork()
    if behind == 0:
        os.setsid()
        return front
    for number in ENDING:
        signal.signal(number, lambda number, _frame: os.kill(behind, number))
    while True:
        ended, status = os.waitpid(behind, os.WNOHANG)
        if ended and os.WIFSIGNALED(status):
            orphans.end(lambda: procfs.family(front)[1:], 0)
            reap()
            clear()
            if os.WTERMSIG(status) != signal.SIGKILL:
                signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
            os.kill(front, os.WTERMSIG(status))
        if ended or os.getppid() != mpirun:
            os._exit(os.WEXITSTATUS(status) if ended else 1)
        time.sleep(0.05)


def adopt_descendants() -> None:
    """Become the parent of descendants whose parent ends, so that they are found by it alone."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        return  # no Linux; they are found by their environment


def reap() -> None:
    """Take the statuses of adopted descendants: an engine waits for a process until somebody has."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def copy_output(
    process: "subprocess.Popen[bytes]", log: Log, watch: Watch, failures: "List[messages.Message]"
) -> None:
    """Copy the output of `process` into `log` line by line until it ends; keep what goes wrong."""
    output = process.stdout
    assert output is not None  # it is a pipe
    try:
        for line in iter(lambda: output.readline(1 << 20), b""):
            log.write(line)
            # Of a trainer's refusal a launcher, such as torchrun, speaks after it.
            log.said = log.said if log.said.startswith(REFUSED.encode()) else line
            watch.hear(line)
    except TooLargeError:
        failures.append(messages.message("end.large-log", megabytes=log.most / 1e6))
        output.close()
    except OSError as error:  # a full disk: the run must not be counted
        failures.append(messages.message("text", text="%s: %s" % (log.file.name, error.strerror)))
        output.close()


def run(
    directory: str,
    env: Dict[str, str],
    limits: Dict[str, Any],
    log: Log,
    front: int,
    settings: Dict[str, Any],
    binder: Optional[binding.Binding] = None,
) -> Dict[str, Any]:
    """Run DIR/run.sh and return how it ended, for the exit record; `settings` are those of the telemetry.

    The node's first process has the `binder` of all its ranks.
    """
    ended_by: List[int] = []

    def on_signal(number: int, _frame: Any) -> None:
        ended_by.append(number)

    for number in ENDING:
        signal.signal(number, on_signal)
    env = dict(os.environ, **dict(env, JOB_DIR=directory))
    mine = [("%s=%s" % (name, env[name])).encode() for name in ("JOB_DIR", "OMPI_COMM_WORLD_RANK")]
    rank = env["OMPI_COMM_WORLD_RANK"]
    contained = container.remove(directory, rank)  # of a start that went down with the machine
    script = ["/bin/sh", os.path.join(directory, "run.sh")]
    kills = procfs.oom_kills(bool(contained))
    failures: "List[messages.Message]" = []

    def members(pid: int) -> List[int]:
        """Return the pids of the workload: its process group, those who left it, and their descendants."""
        descendants = set(procfs.family(os.getpid())) - {os.getpid(), guard.pid, sampler.pid}
        return sorted(descendants.union(orphans.with_group(pid, *mine)))

    def end_group(pid: int) -> None:
        orphans.end(lambda: orphans.with_group(pid, *mine), 0)
        container.remove(directory, rank)

    adopt_descendants()
    guard = Guard(end_group)
    # After the guard, which would otherwise hold its pipe open.
    sampler = telemetry.Telemetry(settings, directory, env["NODE"], env)
    process = subprocess.Popen(
        container.command(contained, container.name_of(directory, rank), env) if contained else script,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=directory,
        env=env,
        start_new_session=True,
    )
    guard.watch(process.pid)
    looking = binder is not None
    if binder:
        binder.start(process.pid)
    # The processes of a container are not below that of its engine.
    find = members if contained else procfs.family
    watch = Watch(limits, lambda: find(process.pid), sampler.mark)
    reader = threading.Thread(target=copy_output, args=(process, log, watch, failures), daemon=True)
    reader.start()
    status, reason, limit = "exited", None, None

    def by_the_job() -> "messages.Message":
        return messages.message("end.by-the-job", number=int(ended_by[0]))

    while process.poll() is None:
        if binder and looking:
            looking = not watch.stepped
            binder.look({sampler.pid, os.getpid()}, last=watch.stepped)
        overdue = watch.overdue(log.heard)
        if ended_by:
            status, reason = "terminated", by_the_job()
        elif os.getppid() != front:
            status, reason = "terminated", messages.message("end.without-the-job")
        elif failures:
            status, reason = "failed", failures[0]
        elif overdue:
            status, reason, limit = overdue
        if status != "exited":
            break
        reader.join(0.1)
        if not reader.is_alive():
            time.sleep(0.02)
    if status == "exited" and process.returncode and ended_by:
        # Slurm's signal may reach the workload before this process.
        status, reason = "terminated", by_the_job()
    if status == "exited" and watch.marks:
        reader.join(0.3)  # the window's last step may not be read yet
    sampler.end()  # first: it bears the job's environment, and its last words are needed
    # Also those of the node's other processes, which those of this one wait for.
    near = (
        set() if status == "exited" else set(members(process.pid) + orphans.with_group(process.pid, mine[0]))
    )
    stopped = procfs.stopped(near)
    if status in ("hung", "rendezvous") or (status == "terminated" and time.monotonic() - log.heard > SILENT):
        flight.ask(members(process.pid), log.event)
        stacks.ask(members(process.pid), int(env["OMPI_COMM_WORLD_RANK"]), log.event, lambda: log.lines)
    # Also what the workload left behind after it ended.
    orphans.end(lambda: members(process.pid), KILL_AFTER)
    code = process.wait()
    guard.dismiss()
    if contained:
        reap()
        container.remove(directory, rank)
        code = 128 - code if code > 128 else code  # engines report a signal as shells do
    reader.join(3)
    if status == "exited" and failures:
        status, reason = "failed", failures[0]
    if status == "exited" and code < 0:
        status = "signaled"
    log_text = log.said.decode("utf-8", "replace").strip()
    if status == "exited" and code and log_text.startswith(REFUSED):
        status, reason = "refused", messages.message("text", text=log_text[len(REFUSED) :])
    return {
        "rc": max(code, 0),
        "signal": -code if code < 0 else None,
        "status": status,
        "reason": reason,
        "limit": limit,
        "said": watch.said,
        "stepped": watch.stepped if watch.literal else None,
        "stopped": len(stopped),
        "oom_kills": None if kills is None else (procfs.oom_kills(bool(contained)) or kills) - kills,
        "busy": watch.busy(),
        **({"binding": binder.record()} if binder else {}),
        **({"telemetry": sampler.record()} if sampler.wanted else {}),
    }


def how(ended: Dict[str, Any], last_line: bytes) -> str:
    """Return in words how a workload ended that did not end well; `last_line` is that of its output."""
    if ended["status"] == "signaled":
        number = ended["signal"]
        named = {each.value: " (%s)" % each.name for each in signal.Signals}
        return "was ended by signal %d%s" % (number, named.get(number, ""))
    if ended["status"] != "exited":
        return "was ended: %s" % messages.in_english(ended["reason"])
    line = last_line.decode("utf-8", "replace").strip()[:300]
    return "ended with exit code %d%s" % (ended["rc"], line and ": " + line)


def pack_nccl(directory: str, name: str) -> None:
    """Keep in NAME.nccl.xz what NCCL said in the node's further processes, whose logs are not fetched."""
    logs = sorted(glob.glob(os.path.join(glob.escape(directory), glob.escape(name) + ".[0-9]*.log")))
    try:
        import lzma

        lines: List[bytes] = []
        for log in logs:
            with open(log, "rb") as file:
                lines += [line for line in file if b" NCCL INFO " in line]
        if lines:
            with lzma.open(os.path.join(directory, name + ".nccl.xz"), "wb", preset=0) as packed:
                packed.writelines(lines)
    except (ImportError, OSError):
        return  # a Python without lzma, or a full disk: the lines of the first process are in its log


def write_whole(path: str, text: str) -> None:
    """Write `text` to `path` whole or not at all, and wait until it is on the disk."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)
    directory = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(directory)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EBADF, errno.ENOTSUP):  # not all file systems can
            raise
    finally:
        os.close(directory)


def main() -> None:
    """Run this rank's job; the exit status is the workload's own, so that mpirun ends the job."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--binding", choices=("numa", "none"), default="none")
    parser.add_argument("jobs", nargs="+")
    args = parser.parse_args()
    rank = world_rank(args.processes)
    job = (rank, args.processes, args.jobs)
    front = run_behind_proxy(lambda: container.remove(find_job(*job)[1], str(rank)))
    started, clock = time.time(), time.monotonic()
    try:
        node, directory, env = find_job(*job)
    except RefusedError as error:
        sys.exit(REFUSED + messages.in_english(error.message))
    local = rank % args.processes
    name = node if local == 0 else "%s.%d" % (node, local)
    about: Dict[str, Any] = {
        "node": node,
        "task_index": int(env["TASK_INDEX"]),
        "rank": rank,
        "host": socket.gethostname(),
        "boot": procfs.boot(),
    }
    try:
        limits = read_limits(directory)
        if local:
            limits.update({key: limits[key] + LATER for key in ("stall", "rendezvous") if limits.get(key)})
        log = Log(os.path.join(directory, name + ".log"), int(limits.get("log") or 0))
        log.event(event="start", run=env["SCALEBOOK_RUN"], pid=os.getpid(), **about)
    except OSError as error:
        sys.exit("scalebook: failed: %s: %s: %s" % (node, error.filename or directory, error.strerror))
    try:
        if local == 0:
            check_port(int(env["PORT"]))
        take_gpus(env)
        settings = telemetry.read_settings(directory) if local == 0 else {}
        binder = (
            None if local else binding.Binding(args.binding, dict(env, JOB_DIR=directory), args.processes)
        )
        ended = run(directory, env, limits, log, front, settings, binder)
    except RefusedError as error:
        ended = {"rc": 1, "signal": None, "status": "refused", "reason": error.message}
        sys.stderr.write("%s%s\n" % (REFUSED, messages.in_english(error.message)))
    well = ended["status"] == "exited" and ended["rc"] == 0
    if local and not well and ended["status"] != "terminated":
        # Its log stays here, and the node's own process only knows that the job ended it.
        words = (name, rank, about["host"], how(ended, log.said))
        sys.stderr.write("scalebook: failed: %s (rank %d, host %s) %s\n" % words)
    if not local:
        pack_nccl(directory, name)
    record = dict(about, event="exit", started=started, ended=time.time(), lines=log.lines, **ended)
    record["seconds"] = round(time.monotonic() - clock, 3)
    try:
        log.free_reserve()
        if log.too_large and log.size > 2 * KEPT:
            log.cut()
        log.event(**record)
        log.sync()
        write_whole(
            os.path.join(directory, "exit.json" if local == 0 else name + ".exit.json"),
            json.dumps(record, sort_keys=True) + "\n",
        )
    except OSError as error:
        sys.exit("scalebook: failed: %s: %s: %s" % (node, error.filename or directory, error.strerror))
    sys.exit(0 if well else ended["rc"] or 1)


if __name__ == "__main__":
    main()
