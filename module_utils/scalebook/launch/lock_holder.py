# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Who runs a campaign, so that a second control node can find out whether the first still runs."""

from __future__ import annotations

import contextlib
import getpass
import json
import multiprocessing
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook.text import clean


def identity() -> dict[str, Any]:
    """Return this ansible-playbook: host, process, and what tells it from a later process of the same number.

    `id` is all of that as one word.  Ansible runs tasks in children; the process is their parent.
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
        "user": getpass.getuser(),
        "since": time.strftime("%Y-%m-%d %H:%M:%S %z"),
    }


def gone(holder: Mapping[str, Any]) -> bool:
    """Return whether the control node `holder` (an identity) has certainly stopped.

    Nothing can be known of another host or of another container on this one: not gone.
    """
    here = identity()

    def same(*keys: str) -> bool:
        return all(here[key] and holder.get(key) == here[key] for key in keys)

    if same("boot", "namespace"):
        started = _start_of(int(holder.get("pid") or 0))
        return started is None or started != holder.get("started")
    # The same machine was booted since.
    return same("host", "machine") and bool(here["boot"]) and holder.get("boot") != here["boot"]


def holders(locks: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return {node: holder} of the nodes that are held; `locks` are their lock files as `cat` shows them.

    A control node that has certainly stopped holds nothing.
    """
    found = {}
    for node, text in locks.items():
        with contextlib.suppress(ValueError):  # none, or not written whole
            holder = json.loads(text[text.index("{") : text.rindex("}") + 1])
            if holder and not gone(holder):
                found[node] = holder
    return found


def taken_by(held: Mapping[str, Mapping[str, Any]]) -> str:
    """Return in words who holds which nodes, and the fix."""
    nodes: dict[str, list[str]] = {}
    for node, holder in held.items():
        nodes.setdefault(str(holder.get("id")), []).append(node)
    sentences = []
    for names in nodes.values():
        # Other users of the node can write the lock.
        user, host, pid, since = (
            clean(held[names[0]].get(key, "?"))[:100] for key in ("user", "host", "pid", "since")
        )
        verb = "is" if len(names) == 1 else "are"
        sentences.append(f"{', '.join(names)} {verb} in use by {user}@{host}, process {pid}, since {since}.")
    fix = "if that host is gone for good, -e campaign_takeover=true takes its nodes over"
    return f"{' '.join(sentences)} Wait for it or stop it; {fix}."


def _start_of(pid: int) -> str | None:
    """Return when a process was started, in ticks since boot; None when it is not there or a zombie."""
    fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] not in ("Z", "X") else None


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
