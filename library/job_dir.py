#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
# Runs on the nodes, so on any Python from 3.6 on.

DOCUMENTATION = r"""
module: job_dir
short_description: Make fresh directories with the files of jobs
description:
  - Makes each of O(directories) from scratch and writes its files into it, in one call per machine and run.
  - What an earlier attempt left there is removed first, because a used directory may hold a
    checkpoint from which a trainer would go on instead of starting.
options:
  directories:
    description:
      - For each directory, absolute and below a directory of its own, the names and contents of its files.
        A name has no directory.
    type: dict
    required: true
  lock:
    description:
      - The lock without which nothing is written, with the keys C(path) and C(holder) of M(campaign_lock).
        It is taken where nobody holds it, as after a restart of the machine.
    type: dict
attributes:
  check_mode:
    support: full
    description: Says what would change, and changes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Write the job of this node
  job_dir:
    directories:
      /opt/scalebook/work/NODE1/demo/1n1g/1:
        job.env: "TASK_INDEX=0\n"
        run.sh: "echo hello\n"
"""

RETURN = r"""
made:
  description: The directories.
  returned: success
  type: list
  elements: str
"""

import contextlib
import errno
import shutil
import uuid
from pathlib import Path
from typing import Any, Dict, Mapping

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.scalebook.launch import lock_file

TAKEN = (errno.EEXIST, errno.ENOTEMPTY)
"""How the rename of a directory fails where there is another that is not empty."""


def argument_spec() -> Dict[str, Any]:
    return {"directories": {"type": "dict", "required": True}, "lock": {"type": "dict"}}


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


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    directories = {Path(name): files for name, files in module.params["directories"].items()}
    for path in directories:
        if not path.is_absolute() or len(path.parts) < 3:
            module.fail_json(msg="directories: %s must be absolute and below another directory" % path)
    lock = module.params["lock"]
    if lock and not module.check_mode:
        try:
            check_lock(lock["path"], lock["holder"])
        except (OSError, ValueError) as error:
            module.fail_json(msg="cannot write the jobs: %s" % error)
    for path in sorted(directories) if not module.check_mode else ():
        try:
            make(path, directories[path])
        except (OSError, ValueError) as error:
            module.fail_json(msg="cannot write the job of %s: %s" % (path, error))
    module.exit_json(changed=bool(directories), made=sorted(map(str, directories)))


if __name__ == "__main__":
    main()
