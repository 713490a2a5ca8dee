# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Read regular files, and write files whole or not at all.

Modules that run on nodes import this file too, so it keeps to Python 3.6: no walrus, no `X | Y` in
annotations.
"""

import contextlib
import errno
import hashlib
import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Any, BinaryIO, Callable, Dict, Iterable, Optional, Tuple, TypeVar, Union

AnyPath = Union[str, "os.PathLike[str]"]
T = TypeVar("T")

LARGEST = 64 * 1024 * 1024
"""Bytes of one file of a campaign; a record of 120 steps on 125 nodes has about 1 MB, with telemetry 6 MB."""


class NotRegularError(ValueError):
    """A path that is not a regular file; the message says what it is."""


def open_regular(path: AnyPath) -> BinaryIO:
    """Open a regular file for reading; a fifo or a device could block for ever or never end.

    Raises OSError when it cannot be opened and NotRegularError when it is something else.
    """
    descriptor = os.open(os.fspath(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise NotRegularError("is a directory" if stat.S_ISDIR(mode) else "is not a regular file")
    return os.fdopen(descriptor, "rb", buffering=0)


def read_small(path: AnyPath) -> bytes:
    """Return the content of a regular file of at most LARGEST bytes; raise OSError or ValueError."""
    with open_regular(path) as file:
        content = bytearray()
        while len(content) <= LARGEST:
            block = file.read(1 << 20)
            if not block:
                return bytes(content)
            content += block
    raise ValueError("has more than %d bytes, which is more than is read" % LARGEST)


def read_table(path: AnyPath, read: Callable[[Iterable[str]], T]) -> T:
    """Return what `read` makes of the lines of a CSV such as data/gpus.csv."""
    with Path(path).open(encoding="utf-8", newline="") as lines:
        return read(lines)


def sha256_of(path: AnyPath) -> str:
    """Return the sha256 of a regular file in hexadecimal digits.

    Raises OSError and NotRegularError as open_regular does.
    """
    digest = hashlib.sha256()
    with open_regular(path) as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def write_json(path: AnyPath, value: Any, write: bool = True, sync: bool = False) -> bool:
    """Write `value` as JSON and return whether the file's content differs; only compare when not `write`.

    `sync` waits until the content is on the disk: for what cannot be produced again.  NaN and infinity
    are not JSON: they raise ValueError.
    """
    text = json.dumps(value, allow_nan=False, ensure_ascii=False) + "\n"
    # Text of logs was decoded with errors=replace, but names of hosts and files may hold lone surrogates.
    return write_whole(path, text.encode(errors="backslashreplace"), write, sync)


def write_whole(
    path: AnyPath, content: bytes, write: bool = True, sync: bool = False, mode: Optional[int] = 0o644
) -> bool:
    """Put `content` at `path` by a rename, so that no reader ever sees half of it; see write_json.

    The new file has `mode`, or that of the file it replaces when `mode` is None.
    """
    target = Path(path)
    try:
        if target.read_bytes() == content:
            return False
        keep = stat.S_IMODE(target.stat().st_mode)
    except OSError:
        keep = 0o644  # it does not exist or is not readable: writing it reports why, if it cannot be written
    if not write:
        return True
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix="." + target.name + ".", dir=str(target.parent))
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        # mkstemp makes the file private; results are for the group to read.
        os.chmod(name, keep if mode is None else mode)  # noqa: PTH101
        os.replace(name, str(target))  # noqa: PTH105
    except BaseException:
        with contextlib.suppress(OSError):  # the error that got us here matters more
            os.unlink(name)  # noqa: PTH108
        raise
    if sync:
        sync_path(target.parent)
    return True


def sync_path(path: AnyPath) -> None:
    """Wait until a file, or the names in a directory, are on the disk. Raise OSError.

    Not every file system can do so for a directory; one that is not there has nothing to wait for.
    """
    try:
        descriptor = os.open(os.fspath(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.EROFS):
            raise
    finally:
        os.close(descriptor)


def replace_texts(module: Any, changes: Callable[[], Dict[str, Tuple[str, str]]]) -> None:
    """End an Ansible module that writes new texts: `changes` returns {file below `path`: (text, new text)}.

    Nothing is written in check mode, and the result has a diff where Ansible asks for one. ValueError of
    `changes` is the message of the failure.
    """
    root = module.params["path"]
    try:
        texts = changes()
        for name, (_, text) in texts.items() if not module.check_mode else ():
            write_whole(Path(root, name), text.encode("utf-8"), sync=True, mode=None)
    except (OSError, UnicodeDecodeError) as error:
        module.fail_json(msg="cannot patch the sources in %s: %s" % (root, error))
    except ValueError as error:
        module.fail_json(msg=str(error))
    result = {"changed": bool(texts), "files": sorted(texts)}
    if module._diff:  # the attribute that Ansible's own modules use
        result["diff"] = [
            {"before_header": name, "after_header": name, "before": before, "after": after}
            for name, (before, after) in sorted(texts.items())
        ]
    module.exit_json(**result)
