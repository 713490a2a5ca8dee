# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Who else than root may change what root executes.

Modules that run on nodes import this file, so it keeps to Python 3.6.
"""

import os
import pwd
import stat
from typing import List, NamedTuple, Optional

MOST_LINKS = 40
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class Weakness(NamedTuple):
    """A file or directory that somebody else than root may change, and why."""

    path: str
    reason: str

    def __str__(self) -> str:
        return "%s %s" % (self.path, self.reason)


def owner_of(about: os.stat_result) -> str:
    """Return the name of the owner, its number where it has none."""
    try:
        return pwd.getpwuid(about.st_uid).pw_name
    except KeyError:
        return "uid %d" % about.st_uid


def reason_of(about: os.stat_result, sticky: bool = False) -> str:
    """Return why somebody else than root may change a file, "" where nobody may.

    With `sticky`, everybody may write to a directory in which nobody can replace the files of others.  The
    group bits are those of an access list too: they are its mask.
    """
    if about.st_uid != 0:
        return "belongs to %s" % owner_of(about)
    if stat.S_ISLNK(about.st_mode) or (sticky and about.st_mode & stat.S_ISVTX):
        return ""
    if about.st_mode & OTHERS_WRITE:
        return "may be written by others (mode %04o)" % stat.S_IMODE(about.st_mode)
    return ""


def weakness_of(path: str) -> Optional[Weakness]:
    """Return the first directory or link on the way to `path`, or `path` itself, that is not root's alone.

    What does not exist yet is nobody's.  `path` is absolute.
    """
    current, parts, links = "/", path.split("/"), 0
    while parts:
        part = parts.pop(0)
        if part in ("", ".", ".."):
            current = os.path.dirname(current) if part == ".." else current
            continue
        here = os.path.join(current, part)
        try:
            about = os.lstat(here)
        except FileNotFoundError:
            return None
        reason = reason_of(about, sticky=any(parts))
        links += stat.S_ISLNK(about.st_mode)
        if reason or links > MOST_LINKS:
            return Weakness(here, reason or "has too many links")
        if stat.S_ISLNK(about.st_mode):
            target = os.readlink(here)
            parts = target.split("/") + parts
            current = "/" if target.startswith("/") else current
        else:
            current = here
    return None


def weakness_below(path: str, top: str) -> Optional[Weakness]:
    """Return the first of a file, or of a directory and all below it, that is not root's alone.

    A link is looked at too, and where it leads to a program outside the directory `top`, so is that.  A
    directory is read once nobody else can change it, so that nothing can be put there behind the search.
    """
    about = os.lstat(path)
    reason = reason_of(about)
    if reason:
        return Weakness(path, reason)
    if stat.S_ISLNK(about.st_mode):
        return _weakness_of_target(path, top)
    if stat.S_ISDIR(about.st_mode):
        for name in sorted(os.listdir(path)):
            weakness = weakness_below(os.path.join(path, name), top)
            if weakness:
                return weakness
    return None


def _weakness_of_target(link: str, top: str) -> Optional[Weakness]:
    """Return what is weak on the way to the program outside `top` that a link leads to."""
    target = os.path.realpath(link)
    outside = os.path.commonpath([target, top]) != top
    return weakness_of(target) if outside and os.path.isfile(target) and os.access(target, os.X_OK) else None


def program_names(folder: str, programs: List[str]) -> List[str]:
    """Return the names in a directory that begin with one of `programs`, as a word."""
    return [
        name
        for name in sorted(os.listdir(folder))
        if any(name == program or name.startswith((program + "-", program + ".")) for program in programs)
    ]


def make_readable(path: str) -> List[str]:
    """Let every user read, and execute, what root may, and nobody else write; return what was changed.

    Takes a file or directory of root's alone, and leaves what is not.
    """
    about = os.lstat(path)
    if about.st_uid != 0 or stat.S_ISLNK(about.st_mode):
        return []
    mode = stat.S_IMODE(about.st_mode)
    folder = stat.S_ISDIR(about.st_mode)
    readable_mode = (mode | 0o044 | (0o011 if folder or mode & 0o100 else 0)) & ~OTHERS_WRITE
    changed = []
    if mode != readable_mode:
        os.chmod(path, readable_mode)
        changed.append(path)
    for name in sorted(os.listdir(path)) if folder else ():
        changed += make_readable(os.path.join(path, name))
    return changed
