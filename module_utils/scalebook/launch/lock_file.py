# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The file that says who holds a lock: of a machine, or of a directory of results.

A machine has one such file, whoever asks and wherever that user installs: it lies in a directory that every
user of the machine may write to, which the next boot empties. Such a directory may hold whatever other users
put there, so a link, a fifo or a file with a second name is refused, and what cannot be read is held.

One process at a time reads and writes such a file. The kernel sees to that (flock). Where the file system
has none (NFS without its lock service, Lustre without `-o flock`), a directory beside the file does, which
only one process can make.

Modules that run on nodes import this file too, so it keeps to Python 3.6.
"""

import contextlib
import errno
import fcntl
import json
import os
import stat
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Tuple

NAME = "scalebook.lock"

PLACES = ("/run/lock", "/dev/shm", "/tmp")  # noqa: S108 - see the text above
"""Where the lock of a machine may lie. Which it is follows from their modes alone: the same for all users."""

UNREADABLE = "unreadable"
"""The id of the holder of a lock that cannot be read."""

PATIENCE = 20.0
"""Seconds that another process may read, write, or stop a job under the lock."""

WITHOUT_FLOCK = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)
"""How flock fails on a file system that has none."""

TURN = ".turn"
"""What the name of the directory ends with that takes the place of flock. It is there for an instant."""

Holder = Dict[str, Any]


def machine_path() -> str:
    """Return the path of this machine's lock, in the first of PLACES that is for all users. Raise OSError."""
    for place in PLACES:
        with contextlib.suppress(OSError):  # not every system has it
            if Path(place).stat().st_mode & 0o1002 == 0o1002:
                return str(Path(place, NAME))
    raise OSError("there is no directory for it: none of %s is for all users (mode 1777)" % ", ".join(PLACES))


def make_directory(path: Path) -> None:
    """Make the directory of a lock, for all users whatever the umask is: the next holder may be another."""
    if path.is_dir():
        return
    mask = os.umask(0o022)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):  # made by another process just now
            path.mkdir()
            path.chmod(0o1777)
    finally:
        os.umask(mask)


def parse(text: str) -> Holder:
    """Return the holder that a lock file names, {} for an empty one; what cannot be read is held as well."""
    text = text.strip("\0 \t\r\n")
    if not text:
        return {}
    try:
        holder = json.loads(text)
    except (ValueError, RecursionError):
        holder = None
    if isinstance(holder, dict) and isinstance(holder.get("id"), str) and holder["id"]:
        return holder
    return {"id": UNREADABLE}


def read(path: str) -> Holder:
    """Return the holder that the lock file names; {} without one."""
    try:
        with _opened(str(path), create=False) as file:
            return _content(file)
    except FileNotFoundError:
        return {}


def turn(
    path: str,
    holder: Mapping[str, Any],
    over: Optional[str],
    state: str,
    write: bool,
    before: Callable[[], Any] = lambda: None,
) -> Tuple[bool, bool, Holder]:
    """Return (changed, held, other holder) after taking (`present`) or giving back (`absent`) the lock.

    `over` is the id of a holder that is gone. `before` is called before the lock is given back, while nobody
    else can take it. Raise OSError.
    """
    take = state == "present"
    try:
        with _opened(str(path), create=take and write) as file:
            there = _content(file)
            if there and there["id"] not in (holder["id"], over):
                return False, False, there
            changed = there.get("id") != holder["id"] if take else bool(there)
            if write and take and changed:
                _put(file, json.dumps(dict(holder)) + "\n")
            if write and not take:
                before()
                _put(file, "")
                with contextlib.suppress(OSError):  # it is another user's: empty, it is free as well
                    os.unlink(str(path))
            return changed, take, {}
    except FileNotFoundError:
        if take and write:
            raise
        return take, take, {}


@contextlib.contextmanager
def _opened(path: str, create: bool) -> Iterator[int]:
    """Open the lock file for the one process that may read or write it now."""
    deadline = time.monotonic() + PATIENCE
    while True:
        file = _open(path, create)
        new_folder = ""
        try:
            new_folder = _wait_for_turn(file, path, deadline)
            if _is_at(file, path):
                yield file
                return
        finally:
            if new_folder:
                os.rmdir(new_folder)
            os.close(file)


def _open(path: str, create: bool) -> int:
    # Without O_CREAT: Linux refuses root to create what another user has created in a sticky directory.
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        file = os.open(path, flags)
    except FileNotFoundError:
        if not create:
            raise
        try:
            file = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:  # created by another process just now
            file = os.open(path, flags)
        else:
            if Path(path).parent.stat().st_mode & stat.S_IWOTH:
                os.fchmod(
                    file, 0o666
                )  # whoever takes over from a holder that is gone writes to the same file
    state = os.fstat(file)
    if not stat.S_ISREG(state.st_mode) or state.st_nlink > 1:
        os.close(file)
        raise OSError(errno.EINVAL, "it is not a regular file with one name", path)
    return file


def _wait_for_turn(file: int, path: str, deadline: float) -> str:
    """Wait until no other process uses the file; return the directory that says so, "" with flock."""
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return ""
        except OSError as error:
            if error.errno in WITHOUT_FLOCK:
                return _make_turn(path + TURN, deadline)
            if error.errno not in (errno.EWOULDBLOCK, errno.EINTR) or time.monotonic() > deadline:
                raise
        time.sleep(0.05)


def _make_turn(directory: str, deadline: float) -> str:
    """Make `directory`, which every file system lets one process do, and return it."""
    while True:
        try:
            os.mkdir(directory)
            return directory
        except FileExistsError:
            if time.monotonic() > deadline:
                # Whoever removes it for another one could remove the next one's.
                reason = "another process has its turn for %g s. If it was killed, remove the directory"
                raise OSError(errno.EBUSY, reason % PATIENCE, directory) from None
        time.sleep(0.05)


def _is_at(file: int, path: str) -> bool:
    """Return whether `path` still names the open file, which its last holder may have removed."""
    try:
        there = os.lstat(path)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(file), there)


def _content(file: int) -> Holder:
    return parse(os.pread(file, 1 << 16, 0).decode("utf-8", "replace"))


def _put(file: int, text: str) -> None:
    os.ftruncate(file, 0)
    os.pwrite(file, text.encode(), 0)
