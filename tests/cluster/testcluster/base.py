# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What every part needs: paths, running commands, and output for the user."""

import contextlib
import fcntl
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]
HERE = CHECKOUT / "tests" / "cluster"
# What is kept: image, containers, keys, inventories. Ignored by git.
STATE = CHECKOUT / ".scalebook" / "test-cluster"
# Images are kept here too where it is set: it outlives the checkout (see scripts/test).
CACHE = os.environ.get("SCALEBOOK_TEST_CACHE")
# What does not survive a reboot. The path is short because the path of a socket has at most 107 bytes.
RUN = Path("/run") / ("scalebook-test-" + hashlib.sha256(str(CHECKOUT).encode()).hexdigest()[:8])
# Marks our containers; a Docker engine holds other people's as well.
LABEL = "scalebook.test-cluster"

_STARTED = time.monotonic()


class ClusterError(Exception):
    """A problem that the user must fix; the text names the fix."""


def say(text: str) -> None:
    """Print one line of progress, with the seconds since the start."""
    print(f"[{time.monotonic() - _STARTED:6.1f} s] {text}", flush=True)


def run(
    argv: list,
    *,
    check: bool = True,
    timeout: float = 120,
    data: bytes = b"",
    env: dict | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess:
    """Run a command and return its decoded output (stdout, stderr); stdin is `data`.

    Raises ClusterError with the command's own last lines when it fails (unless check is False)
    or is not there, and always when it takes longer than `timeout` seconds.
    """
    shown = " ".join(argv[:6]) + (" …" if len(argv) > 6 else "")
    try:
        done = subprocess.run(
            argv,
            input=data,
            capture_output=True,
            timeout=timeout,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ClusterError(f"`{shown}` did not end within {timeout:.0f} s") from None
    except FileNotFoundError:
        raise ClusterError(f"{argv[0]} is not installed") from None
    result = subprocess.CompletedProcess(
        argv, done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    )
    if check and result.returncode != 0:
        last = (result.stderr.strip() or result.stdout.strip()).splitlines()[-8:]
        raise ClusterError(f"`{shown}` failed with {result.returncode}:\n  " + "\n  ".join(last))
    return result


def write(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file atomically: a reader sees the old content or the new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
        file.write(text)
    new.chmod(mode)
    new.replace(path)


@contextlib.contextmanager
def lock() -> Iterator[None]:
    """Let one `up` or `down` at a time work on this checkout's cluster."""
    STATE.mkdir(parents=True, exist_ok=True)
    with (STATE / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another tests/cluster/up or down is at work here: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main(work: Callable[[], None]) -> None:
    """Run `work` as a command: errors become one message and exit status 1."""
    if os.geteuid() != 0:
        sys.exit("tests/cluster needs root: it creates containers with networks of their own")
    try:
        with lock():
            work()
    except ClusterError as error:
        sys.exit(f"ERROR: {error}")
    except KeyboardInterrupt:
        sys.exit("\nInterrupted. Run the command again: it continues from any state.")
