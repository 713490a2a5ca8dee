# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The processes of a node, as the machine sees them: found by their environment, never by name."""

import contextlib
import os
import signal
from pathlib import Path

from .base import ClusterError
from .nodes import Cluster


class NodeView:
    """One node from outside: its processes and its files, while it runs."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        self.cluster = cluster
        self.number = number
        self.name = f"NODE{number}"
        self.refresh()

    def refresh(self) -> None:
        """Look up the node's first process again: a restarted node has another one."""
        data = self.cluster.engine.inspect("container", self.cluster.name(self.number)) or {}
        self.pid = data.get("State", {}).get("Pid", 0)
        self.namespace = _link(f"/proc/{self.pid}/ns/pid")

    def path(self, inside: str) -> Path:
        """Return where the node's file `inside` (absolute there) is on this machine."""
        return Path(f"/proc/{self.pid}/root") / inside.lstrip("/")

    def processes(self) -> dict[int, dict[str, str]]:
        """Return {pid on this machine: environment} of the node's processes, without zombies."""
        return scan([self])[self.name]

    def find(self, what: str) -> int | None:
        """Return the pid of the node's `trainer`, `run_node`, `sampler`, `mpirun` or `orted`."""
        for pid, env in self.processes().items():
            found = program(_words(pid))
            if found in (what, f"{what}.py") and (what != "trainer" or env.get("JOB_DIR")):
                return pid
        return None

    def send(self, what: str, number: int = signal.SIGKILL) -> None:
        """Send a signal to what `find` finds; raise ClusterError where that is nothing."""
        pid = self.find(what)
        if pid is None:
            raise ClusterError(f"{self.name} runs no {what}")
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def program(words: list[str]) -> str:
    """Return the name of the program in a command line: of Python that of its script, without options."""
    names = [Path(word).name for word in words if not word.startswith("-")]
    return next((name for name in names if not name.startswith("python")), "")


def scan(nodes: list[NodeView], mark: str = "") -> dict[str, dict[int, dict[str, str]]]:
    """Return {node: {pid on this machine: environment}} of all processes that are not zombies.

    With `mark`, only those in whose environment that variable is.
    """
    found: dict[str, dict[int, dict[str, str]]] = {node.name: {} for node in nodes}
    names = {node.namespace: node.name for node in nodes if node.namespace}
    for entry in Path("/proc").iterdir():
        name = names.get(_link(f"{entry}/ns/pid")) if entry.name.isdigit() else None
        if name:
            with contextlib.suppress(OSError):
                env = _environment(entry)
                zombie = (entry / "stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z"
                if not zombie and (not mark or env.get(mark)):
                    found[name][int(entry.name)] = env
    return found


def _environment(entry: Path) -> dict[str, str]:
    words = (entry / "environ").read_bytes().decode(errors="replace").split("\0")
    return dict(word.split("=", 1) for word in words if "=" in word)


def _words(pid: int) -> list[str]:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    return []


def _link(path: str) -> str:
    with contextlib.suppress(OSError):
        return str(Path(path).readlink())
    return ""
