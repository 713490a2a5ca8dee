# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Write result files whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any


def write_json(path: str | os.PathLike[str], value: Any, write: bool = True, sync: bool = False) -> bool:
    """Write `value` as JSON and return whether the file's content differs; only look when not `write`.

    `sync` waits until the content is on the disk: for what cannot be had again.  NaN and infinity
    are no JSON: they raise ValueError.
    """
    text = json.dumps(value, allow_nan=False, ensure_ascii=False) + "\n"
    # Text of logs was decoded with errors=replace, but names of hosts and files may hold lone surrogates.
    return write_whole(path, text.encode(errors="backslashreplace"), write, sync)


def write_whole(path: str | os.PathLike[str], content: bytes, write: bool = True, sync: bool = False) -> bool:
    """Put `content` at `path` by a rename, so that no reader ever sees half of it; see write_json."""
    target = Path(path)
    try:
        if target.read_bytes() == content:
            return False
    except OSError:
        pass  # not there or not readable: it is to be written, and writing tells the reason if it cannot be
    if not write:
        return True
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        os.chmod(name, 0o644)  # noqa: PTH101, S103 - mkstemp makes it private; results are for the group to read
        os.replace(name, target)  # noqa: PTH105
    except BaseException:
        with contextlib.suppress(OSError):  # the error that got us here matters more
            os.unlink(name)  # noqa: PTH108
        raise
    return True
