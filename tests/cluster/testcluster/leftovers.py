# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What a killed or deleted cluster leaves on the machine, and its removal.

Podman can only remove containers that it still knows. When .scalebook was deleted under a running
cluster, the nodes run on, and only the files below /run tell which processes they are.
"""

import contextlib
import os
import signal
import time
from pathlib import Path

from . import image
from .base import RUN, STATE, run, say


def conmons() -> list:
    """Return the process ids of Podman's monitors that keep our containers (one per container)."""
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # it ended meanwhile
        if words[0].endswith(b"conmon") and any(word.startswith(f"{RUN}/".encode()) for word in words):
            found.append(int(process.name))
    return found


def reap(nets: list) -> None:
    """End containers of ours that Podman no longer knows; remove their namespaces and bridges.

    nets: the clusters (first three numbers of the subnet) whose bridges go.
    """
    for monitor in conmons():
        say(f"ending a node that Podman no longer knows (monitor process {monitor})")
        for child in _children(monitor):
            _forget_namespace(child)
            _kill(child)
        _gone(monitor, 5)
        _kill(monitor)
    for net in nets:
        run(["ip", "link", "delete", f"sb{net}"], check=False)
    image.discard(RUN)


def purge() -> None:
    """Remove image, storage, keys: everything below .scalebook/test-cluster but the lock."""
    for path in STATE.iterdir() if STATE.is_dir() else []:
        if path.name == "lock":
            continue
        if path.is_dir() and not path.is_symlink():
            image.discard(path)
        else:
            path.unlink()


def _children(pid: int) -> list:
    with contextlib.suppress(OSError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def _forget_namespace(pid: int) -> None:
    """Unmount the name below /run/netns of the network namespace of a process."""
    try:
        mine = Path(f"/proc/{pid}/ns/net").stat()
        names = list(Path("/run/netns").iterdir())
    except OSError:
        return
    for name in names:
        with contextlib.suppress(OSError):
            there = name.stat()
            if (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino):
                run(["umount", "-l", str(name)], check=False)
                name.unlink()


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _gone(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not Path(f"/proc/{pid}").exists():
            return True
        time.sleep(0.05)
    return False
