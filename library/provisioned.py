#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
# Runs on the nodes, so on any Python from 3.6 on.

DOCUMENTATION = r"""
module: provisioned
short_description: Tell whether a node is still as provisioning left it
description:
  - Keeps what was wanted of a node and how the node was when that was done, and tells later whether both are
    the same.
  - Of the node it looks at the files below O(roots) (mode, owner, size, time of change; not their contents),
    the package manager's own record, the kernel, NVIDIA's driver and whether chrony runs.
options:
  path:
    description: The record. Not looked at itself.
    type: path
    required: true
  wanted:
    description: What is wanted of the node, in one word.
    type: str
    required: true
  roots:
    description: Files, and directories with all that is below them.
    type: list
    elements: path
    required: true
  without:
    description: Names of files and directories below O(roots) that change by themselves.
    type: list
    elements: str
    default: []
  state:
    description: Whether to write the record (V(kept)) or to compare with it (V(asked)).
    type: str
    choices: [asked, kept]
    required: true
attributes:
  check_mode: {support: full}
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Look whether the node has changed
  provisioned:
    path: /opt/scalebook/provisioned.json
    wanted: 5f7c…
    roots: [/etc, /opt/scalebook]
    state: asked
"""

RETURN = r"""
unchanged:
  description: Whether O(wanted) and the node are as they were recorded.
  returned: success
  type: bool
differs:
  description: What is not, up to ten names.
  returned: success
  type: list
  elements: str
"""

import hashlib
import json
import os
import stat
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

PACKAGES = "/var/lib/dpkg"
DRIVER = "/proc/driver/nvidia/version"
CHRONY = ("/run/chrony/chronyd.pid", "/run/chronyd.pid")


def argument_spec():
    return {
        "path": {"type": "path", "required": True},
        "wanted": {"type": "str", "required": True},
        "roots": {"type": "list", "elements": "path", "required": True},
        "without": {"type": "list", "elements": "str", "default": []},
        "state": {"type": "str", "choices": ["asked", "kept"], "required": True},
    }


def entry(path):
    """Return what is looked at of a file or directory; a directory's own times are its entries' matter."""
    try:
        about = path.lstat()
    except OSError:
        return None
    common = [stat.S_IFMT(about.st_mode), stat.S_IMODE(about.st_mode), about.st_uid, about.st_gid]
    if stat.S_ISDIR(about.st_mode):
        return common
    if stat.S_ISLNK(about.st_mode):
        return [*common, os.readlink(str(path))]  # noqa: PTH115 - Path has it from Python 3.9 on
    return [*common, about.st_size, about.st_mtime_ns]


def digest(value):
    """Return a short word for a value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def contents(path):
    """Return the sha256 of a file, "" where it cannot be read."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


def look(roots, without):
    """Return {name: word} of the node: each directory below the roots, packages, kernel, driver, chrony."""
    without = set(without)
    found = {
        "packages": digest([contents(PACKAGES + "/status"), sorted(names(PACKAGES + "/updates"))]),
        "kernel": os.uname().release,
        "driver": contents(DRIVER),
        "chrony": str(any(Path(path).exists() for path in CHRONY)),
    }
    for root in roots:
        found[root] = digest(entry(Path(root)))
        if Path(root).is_symlink():
            continue
        for folder, folders, files in os.walk(root):
            folders[:] = [name for name in folders if name not in without]
            all_names = sorted(name for name in folders + files if name not in without)
            found[folder] = digest([(name, entry(Path(folder, name))) for name in all_names])
    return found


def names(folder):
    """Return the names in a directory, none where there is none."""
    try:
        return [path.name for path in Path(folder).iterdir()]
    except OSError:
        return []


def differences(before, now):
    """Return the names under which two answers of `look` and what was wanted differ."""
    return sorted(name for name in set(before) | set(now) if before.get(name) != now.get(name))


def read(path):
    """Return the record, {} where there is none that can be read."""
    try:
        record = json.loads(path.read_bytes().decode())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def write(path, record):
    """Write the record, whole or not at all."""
    new = path.with_name(path.name + ".new")
    new.touch(0o600)
    new.write_text(json.dumps(record, sort_keys=True), encoding="utf-8")
    new.replace(path)


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    given = module.params
    path = Path(given["path"])
    without = [*given["without"], path.name, path.name + ".new"]
    record = dict(look(given["roots"], without), wanted=given["wanted"])
    found = differences(read(path), record)
    if given["state"] == "kept" and not module.check_mode:
        try:
            write(path, record)
        except OSError as error:
            module.fail_json(msg="cannot write the record %s: %s" % (path, error))
    # A record is no change of the node: what provisioning changes, its other tasks say.
    module.exit_json(changed=False, unchanged=not found, differs=found[:10])


if __name__ == "__main__":
    main()
