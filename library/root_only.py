#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
# Runs on the nodes, so on any Python from 3.6 on.

DOCUMENTATION = r"""
module: root_only
short_description: Keep the programs that root executes for root alone
description:
  - Without root nothing is checked and nothing is changed, since nothing is executed as root then.
options:
  path:
    description: Directory of the programs.
    type: path
    required: true
  programs:
    description: >-
      Names in it of what root executes, each with a version behind a C(-) or an ending or without. Other
      names are not looked at.
    type: list
    elements: str
    default: []
  others:
    description: Files, and directories with all that is below them, that root executes too.
    type: list
    elements: path
    default: []
  state:
    description:
      - >-
        V(kept) creates the directory for root, and takes it back from another owner. A program in it that
        somebody else may have changed is moved to a new directory C(untrusted.*), which only root may enter.
        A directory above that not only root may change is refused, and so is such a one of O(others).
      - >-
        V(checked) refuses O(path) where not only root may change it, or what is above or below it, and
        changes nothing.
      - V(readable) lets every user read and execute the programs, which the umask of root may have prevented.
    type: str
    choices: [kept, readable, checked]
    default: kept
attributes:
  check_mode:
    support: full
    description: Says what would change, and changes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Keep the programs for root
  root_only:
    path: /opt/scalebook
    programs: [openmpi, python]
"""

RETURN = r"""
moved:
  description: A sentence for each program that was moved, or would be.
  returned: success
  type: list
  elements: str
"""

import os
import tempfile
from typing import Any, Dict, List

from ansible.module_utils.basic import AnsibleModule
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


def argument_spec() -> Dict[str, Any]:
    return {
        "path": {"type": "path", "required": True},
        "programs": {"type": "list", "elements": "str", "default": []},
        "others": {"type": "list", "elements": "path", "default": []},
        "state": {"type": "str", "choices": ["kept", "readable", "checked"], "default": "kept"},
    }


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


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    options = module.params
    home, programs = options["path"], options["programs"]
    if os.geteuid() != 0 or (options["state"] == "readable" and module.check_mode):
        module.exit_json(changed=False, moved=[])
    try:
        if options["state"] == "readable":
            result = release(os.path.realpath(home), programs)
        elif options["state"] == "checked":
            result = refuse_weak_place(os.path.normpath(home))
        else:
            result = keep(os.path.normpath(home), programs, options["others"], module.check_mode)
    except WeakError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg="cannot keep %s for root: %s" % (home, error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
