# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Who runs a campaign, so that a second control node can find out whether the first still runs."""

from __future__ import annotations

import getpass
import multiprocessing
import os
import re
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook.launch import lock_file
from ansible.module_utils.scalebook.text import clean

FIRST_NAMESPACE = "pid:[4026531836]"
"""The namespace of the processes of a Linux outside of all containers."""


OVER = re.compile(
    r"\bJobState=(COMPLETED|CANCELLED|FAILED|TIMEOUT|NODE_FAIL|PREEMPTED|BOOT_FAIL|DEADLINE|OUT_OF_MEMORY)\b"
)
"""The states in which nothing of a job of Slurm runs any more."""

ANSWER = 10
"""Seconds that slurmctld has to answer."""


def identity() -> dict[str, Any]:
    """Return this ansible-playbook: its host, its process, and what tells that from a later one.

    `id` is all of that as one word.  Ansible runs tasks in children; the process is their parent.  `slurm` is
    the job that it works in, and whether Slurm runs it there itself: then it ends with the job.
    """
    parent = multiprocessing.parent_process()
    pid = os.getpid() if parent is None or parent.pid is None else parent.pid
    about: dict[str, Any] = {
        "host": socket.gethostname(),
        "machine": _text("/etc/machine-id"),
        "boot": _text("/proc/sys/kernel/random/boot_id"),
        "namespace": _link("/proc/self/ns/pid"),
        "pid": pid,
        "started": _start_of(pid),
    }
    return {
        **about,
        "id": ":".join(str(value) for value in about.values()),
        "hardware": _hardware(),
        "user": _user(),
        "since": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "slurm": _slurm_job(),
    }


def gone(holder: Mapping[str, Any]) -> bool:
    """Return whether the control node `holder` (an identity) has certainly stopped, says the kernel.

    Whatever cannot be known is held: of another host, of another container on this one, of a process whose
    start is hidden (/proc mounted with hidepid).
    """
    here = identity()

    def same(*keys: str) -> bool:
        return all(here[key] and holder.get(key) == here[key] for key in keys)

    if same("boot", "namespace"):
        return _has_ended(holder.get("pid"), holder.get("started"))
    if _slurm_job_is_over(holder, here):
        return True
    # The same machine was booted since. A clone of it has the name and the id too, but other network cards;
    # a container may have all of them on another machine.
    return (
        same("host", "machine", "hardware", "namespace")
        and here["namespace"] == FIRST_NAMESPACE
        and bool(here["boot"] and holder.get("boot"))
    )


def _has_ended(pid: Any, started: Any) -> bool:
    """Return whether there is no process `pid` of this namespace that was `started` then."""
    if isinstance(pid, bool) or not isinstance(pid, int) or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        pass  # another user's
    fields = _fields_of(pid)
    return bool(fields) and (fields[0] in ("Z", "X") or fields[19] != started)


def _slurm_job() -> dict[str, Any]:
    """Return the job of Slurm that this process works in, {} without one."""
    job = os.environ.get("SLURM_JOB_ID", "")
    return (
        {}
        if not job
        else {
            "job": job,
            "cluster": os.environ.get("SLURM_CLUSTER_NAME", ""),
            "restarts": os.environ.get("SLURM_RESTART_COUNT", "0"),
            "inside": "SLURMD_NODENAME" in os.environ,
        }
    )


def _slurm_job_is_over(holder: Mapping[str, Any], here: Mapping[str, Any]) -> bool:
    """Tell whether Slurm has ended the job that ran the control node `holder`, wherever that was.

    Slurm does not know for long what has ended.  It may hide the jobs of other users, as if there were none.
    """
    about = holder.get("slurm")
    if not isinstance(about, Mapping) or about.get("inside") is not True:
        return False
    job, cluster, restarts = (str(about.get(key)) for key in ("job", "cluster", "restarts"))
    if not (job.isdecimal() and restarts.isdecimal() and cluster == here["slurm"].get("cluster")):
        return False
    try:
        answer = subprocess.run(
            ["scontrol", "--oneliner", "show", "job", job], capture_output=True, text=True, timeout=ANSWER
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    if answer.returncode:
        return holder.get("user") == here["user"] and "Invalid job id" in answer.stderr
    begun_again = re.search(r"\bRestarts=(\d+)", answer.stdout)
    return bool(OVER.search(answer.stdout)) or bool(begun_again and int(begun_again[1]) > int(restarts))


def holders(locks: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return {node: holder} of the nodes that are held; `locks` are what their lock files hold.

    A control node that has certainly stopped holds nothing. Other lines are what the login prints.
    """
    holders_by_host = {}
    for node, text in locks.items():
        for line in text.splitlines():
            holder = lock_file.parse(line) if line.lstrip().startswith("{") else {}
            if holder and holder["id"] != lock_file.UNREADABLE and not gone(holder):
                holders_by_host[node] = holder
    return holders_by_host


def taken_by(held: Mapping[str, Mapping[str, Any]]) -> str:
    """Return in words who holds which nodes (or directories of results), and the fix."""
    nodes: dict[str, list[str]] = {}
    for node, holder in held.items():
        nodes.setdefault(str(holder.get("id")), []).append(node)
    sentences = []
    for names in nodes.values():
        holder, verb = held[names[0]], "is" if len(names) == 1 else "are"
        # Other users of the node can write the lock.
        user, host, pid, since = (
            clean(holder.get(key, "?"))[:100] for key in ("user", "host", "pid", "since")
        )
        who = f"by {user}@{host}, process {pid}, since {since}"
        about = holder.get("slurm")
        if isinstance(about, Mapping) and about:
            who += f", in Slurm's job {clean(about.get('job', '?'))[:20]}"
        if holder.get("id") == lock_file.UNREADABLE:
            who = "by somebody unknown: the lock cannot be read"
        sentences.append(f"{', '.join(names)} {verb} in use {who}.")
    fix = "if that host is gone for good, -e campaign_takeover=true takes over from it"
    return f"{' '.join(sentences)} Wait for it or stop it; {fix}."


def _start_of(pid: int) -> str | None:
    """Return when a process was started, in ticks since boot; None when it is not there or a zombie."""
    fields = _fields_of(pid)
    return fields[19] if fields and fields[0] not in ("Z", "X") else None


def _fields_of(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on, none where they cannot be read."""
    fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return fields if len(fields) > 19 else []


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run as any number
        return f"user {os.getuid()}"


def _hardware() -> str:
    """Return the addresses of the network cards, which a copy of the machine's disk does not have."""
    cards = sorted(path.parent for path in Path("/sys/class/net").glob("*/device"))
    return ",".join(filter(None, (_text(str(card / "address")) for card in cards)))


def _text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError:  # no Linux, or no such process
        return ""


def _link(path: str) -> str:
    try:
        return str(Path(path).readlink())
    except OSError:  # no Linux
        return ""
