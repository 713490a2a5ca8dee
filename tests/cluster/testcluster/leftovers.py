# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What a killed or deleted cluster leaves on the machine, and its removal.

Podman removes only containers that it knows. When .scalebook was deleted under a running cluster,
the nodes run on, and the files below /run alone tell which processes they are.
"""

import contextlib
import os
import signal
import time
from pathlib import Path

from . import image
from .base import LABEL, RUN, STATE, run, say
from .engine import Engine


def reap(engine: Engine) -> None:
    """End our containers that Podman no longer knows, with their network namespaces."""
    if engine.name != "podman":
        return
    known = set(engine("ps", "-a", "--quiet", "--no-trunc").stdout.split())
    unknown = {pid: container for pid, container in _monitors().items() if container not in known}
    for monitor, container in unknown.items():
        say(f"ending a node that Podman no longer knows ({container[:12]})")
        for child in _children(monitor):
            _forget_namespace(child)
            _kill(child)
        _wait_for_end(monitor, 5)
        _kill(monitor)
    if unknown and not known:
        # Only leftovers of a deleted state are there, with mounts in them: start from scratch.
        image.discard(STATE / "storage")
        image.discard(RUN)


def tidy(engine: Engine, nets: list) -> None:
    """Remove bridges, cgroups and our folder below /run; not containers and networks.

    Does nothing while a container of this checkout is there. nets: first three numbers of the
    subnets whose bridges go.
    """
    if engine("ps", "-a", "--filter", f"label={LABEL}", "--quiet").stdout.strip():
        return
    for net in nets:
        remove_idle_bridge(f"sb{net}")
    groups = [*Path("/sys/fs/cgroup").glob("*/scalebook-test"), Path("/sys/fs/cgroup/scalebook-test")]
    for group in groups:
        for folder, _, _ in os.walk(group, topdown=False):
            with contextlib.suppress(OSError):  # another checkout's cluster uses it
                Path(folder).rmdir()
    if engine.name == "podman":
        image.discard(RUN)


def remove_idle_bridge(bridge: str) -> None:
    """Delete a bridge that nothing is plugged into."""
    ports = run(["ip", "-o", "link", "show", "master", bridge], check=False)
    if ports.returncode == 0 and not ports.stdout.strip():
        run(["ip", "link", "delete", bridge], check=False)


def purge() -> None:
    """Remove image, storage, keys: everything below .scalebook/test-cluster but the lock."""
    for path in STATE.iterdir():
        if path.is_dir() and not path.is_symlink():
            image.discard(path)
        elif path.name != "lock":
            path.unlink()


def _monitors() -> dict:
    """Return {process id: container id} of Podman's monitors (conmon) of this checkout's containers."""
    found = {}
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue  # it ended meanwhile
        ours = any(word.startswith(f"{RUN}/") for word in words)
        if words[0].endswith("conmon") and ours and "-c" in words:
            found[int(process.name)] = words[words.index("-c") + 1]
    return found


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


def _wait_for_end(pid: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while Path(f"/proc/{pid}/exe").is_symlink() and time.monotonic() < deadline:
        time.sleep(0.05)
