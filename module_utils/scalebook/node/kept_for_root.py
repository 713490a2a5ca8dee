# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The directories below which root executes programs: nobody else may change them."""

import os
import tempfile
from typing import Any, Dict, List, Mapping

from ansible.module_utils.scalebook.root_only import (
    make_readable,
    program_names,
    reason_of,
    weakness_below,
    weakness_of,
)

FIX = (
    "%s: root would execute programs below %s that somebody else can replace. "
    "Fix: give it to root (chown root %s; chmod go-w %s), or choose another directory, such as /opt/scalebook"
)


NOT_SAFE = (
    "%s: root cannot write %s there safely. Fix: chown root %s; chmod go-w %s, or choose another directory"
)


class WeakError(ValueError):
    """Somebody else than root may change what root executes; the message says what, and the fix."""


def refuse_weak_paths(home: str, others: List[str]) -> None:
    """Raise WeakError where not only root may change a directory above `home`, or one of `others`."""
    weakness = weakness_of(home)
    if weakness and weakness.path != os.path.realpath(home):
        raise WeakError(FIX % (weakness, home, weakness.path, weakness.path))
    for path in others:
        if os.path.commonpath([path, home]) == home:
            continue  # one of the programs
        weakness = weakness_of(path)
        if not weakness and os.path.lexists(path):
            weakness = weakness_below(os.path.realpath(path), os.path.realpath(path))
        if weakness:
            raise WeakError(FIX % (weakness, path, weakness.path, weakness.path))


def refuse_weak_place(path: str) -> Dict[str, Any]:
    """Raise WeakError where not only root may change a path, what is above or below it; return the result."""
    weakness = weakness_of(path)
    if not weakness and os.path.lexists(path):
        weakness = weakness_below(os.path.realpath(path), os.path.realpath(path))
    if weakness:
        raise WeakError(NOT_SAFE % (weakness, path, weakness.path, weakness.path))
    return {"changed": False, "moved": []}


def take(home: str, check: bool) -> bool:
    """Create the directory for root, or take it back; return whether that was needed. Raises OSError."""
    if not os.path.isdir(home):
        if not check:
            parent = os.path.dirname(home)
            if not os.path.isdir(parent):
                take(parent, check)
            os.mkdir(home)
            os.chmod(home, 0o755)  # noqa: S103 - users execute what is in it
        return True
    about = os.stat(home)
    if not reason_of(about) and about.st_mode & 0o055 == 0o055:
        return False
    if not check:
        descriptor = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            os.fchown(descriptor, 0, 0)
            os.fchmod(descriptor, 0o755)  # noqa: S103
        finally:
            os.close(descriptor)
    return True


def move_weak_programs(home: str, programs: List[str], check: bool) -> List[str]:
    """Move what somebody else may have changed to a directory of root's; return a sentence for each."""
    weak = {name: weakness_below(os.path.join(home, name), home) for name in program_names(home, programs)}
    weak = {name: weakness for name, weakness in weak.items() if weakness}
    if not weak or check:
        return ["%s would be moved: %s" % (os.path.join(home, name), why) for name, why in weak.items()]
    aside = tempfile.mkdtemp(prefix="untrusted.", dir=home)
    for name in weak:
        os.rename(os.path.join(home, name), os.path.join(aside, name))
    return ["%s is now in %s: %s" % (os.path.join(home, name), aside, why) for name, why in weak.items()]


def keep(home: str, programs: List[str], others: List[str], check: bool) -> Dict[str, Any]:
    """Do what V(kept) is for; return the result. Raises WeakError and OSError."""
    refuse_weak_paths(home, others)
    real = os.path.realpath(home)
    took_over = take(real, check)
    moved = move_weak_programs(real, programs, check) if os.path.isdir(real) else []
    return {"changed": took_over or bool(moved), "moved": moved}


def release(home: str, programs: List[str]) -> Dict[str, Any]:
    """Do what V(readable) is for; return the result. Raises OSError."""
    paths = [os.path.join(home, name) for name in program_names(home, programs)]
    # Single files are notes of scalebook, with the modes that they need.
    changed = [path for top in paths if os.path.isdir(top) for path in make_readable(top)]
    return {"changed": bool(changed), "moved": []}


def run(options: Mapping[str, Any], check: bool) -> Dict[str, Any]:
    """Keep a directory for root, or let others read it; module root_only describes options and result."""
    home, programs = options["path"], options["programs"]
    if os.geteuid() != 0 or (options["state"] == "readable" and check):
        return {"changed": False, "moved": []}
    try:
        if options["state"] == "readable":
            return release(os.path.realpath(home), programs)
        if options["state"] == "checked":
            return refuse_weak_place(os.path.normpath(home))
        return keep(os.path.normpath(home), programs, options["others"], check)
    except OSError as error:
        raise OSError("cannot keep %s for root: %s" % (home, error)) from error
