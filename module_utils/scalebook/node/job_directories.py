# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A fresh directory for every job."""

import contextlib
import errno
import shutil
import uuid
from pathlib import Path
from typing import Any, Dict, Mapping

from ansible.module_utils.scalebook.launch import lock_file

TAKEN = (errno.EEXIST, errno.ENOTEMPTY)
"""How the rename of a directory fails where there is another that is not empty."""


def make(path: Path, files: Mapping[str, str]) -> None:
    """Write `files` into `path`, made from scratch.  Raises ValueError for a name with a directory.

    It is renamed into place whole: of several processes that make the same directory, the last one's stays.
    """
    for name in files:
        if name in ("", "..") or Path(name).name != name:
            raise ValueError("files: %r is not a plain file name" % name)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(".%s.%s" % (path.name, uuid.uuid4().hex))
    new.mkdir()
    try:
        for name in sorted(files):
            (new / name).write_text(files[name], encoding="utf-8")
        _replace(new, path)
    except BaseException:
        shutil.rmtree(str(new), ignore_errors=True)
        raise


def _replace(new: Path, path: Path) -> None:
    """Rename the directory `new` to `path`, and remove what was there."""
    while True:
        try:
            new.rename(path)
            return
        except OSError as error:
            if error.errno not in TAKEN:
                raise
        old = new.with_name(new.name + ".old")
        with contextlib.suppress(FileNotFoundError):  # another process has moved it away
            path.rename(old)
        if old.exists():
            shutil.rmtree(str(old))


def check_lock(path: str, holder: Mapping[str, Any]) -> None:
    """Take the lock if nobody holds it. Raise ValueError if another control node does, OSError."""
    _, held, other = lock_file.turn(path, holder, None, "present", True)
    if not held:
        who = tuple(other.get(key, "?") for key in ("user", "host", "pid", "since"))
        raise ValueError("the machine is in use by %s@%s, process %s, since %s" % who)


def run(options: Mapping[str, Any], check: bool) -> Dict[str, Any]:
    """Make the directories; module job_dir describes options and result."""
    directories = {Path(name): files for name, files in options["directories"].items()}
    for path in directories:
        if not path.is_absolute() or len(path.parts) < 3:
            raise ValueError("directories: %s must be absolute and below another directory" % path)
    lock = options["lock"]
    if lock and not check:
        try:
            check_lock(lock["path"], lock["holder"])
        except (OSError, ValueError) as error:
            raise ValueError("cannot write the jobs: %s" % error) from error
    for path in sorted(directories) if not check else ():
        try:
            make(path, directories[path])
        except (OSError, ValueError) as error:
            raise ValueError("cannot write the job of %s: %s" % (path, error)) from error
    return {"changed": bool(directories), "made": sorted(map(str, directories))}
