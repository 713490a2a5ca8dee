#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
# Runs on the nodes, so on any Python from 3.6 on.

DOCUMENTATION = r"""
module: mirror_compare
short_description: Compare the files of a directory with a manifest
description:
  - Reports which files of a mirror are missing, changed or not in the manifest. Changes nothing.
options:
  path:
    description: The directory.
    type: path
    required: true
  manifest:
    description: Text of the manifest, in the format of sha256sum(1) with paths below O(path).
    type: str
    required: true
attributes:
  check_mode:
    support: full
    description: Says what would change, and changes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Compare the files of the mirror with its manifest
  mirror_compare:
    path: /opt/scalebook/mirror
    manifest: "{{ lookup('ansible.builtin.file', 'mirror/sha256sums') }}"
"""

RETURN = r"""
missing:
  description: Paths in the manifest that are not regular files of the directory, sorted.
  returned: success
  type: list
  elements: str
differing:
  description: Paths whose file has another checksum than the manifest, sorted.
  returned: success
  type: list
  elements: str
unlisted:
  description: Files of the directory that are not in the manifest, sorted.
  returned: success
  type: list
  elements: str
"""

import os
import re
from typing import Any, Dict, List

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.scalebook.files import sha256_of

NAME = "sha256sums"
LINE = re.compile(r"([0-9a-f]{64})  ([\w.+~%=:@-]+(?:/[\w.+~%=:@-]+)*)\Z", re.ASCII)


def argument_spec() -> Dict[str, Any]:
    return {"path": {"type": "path", "required": True}, "manifest": {"type": "str", "required": True}}


def read(text: str) -> Dict[str, str]:
    """Return {path: sha256} of a manifest; raise ValueError for a line that does not belong in one."""
    entries = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = LINE.match(line)
        if not match or ".." in match.group(2).split("/"):
            raise ValueError("line %d of the manifest is not `<sha256>  <path>`: %r" % (number, line[:200]))
        entries[match.group(2)] = match.group(1)
    if not entries:
        raise ValueError("the manifest is empty")
    return entries


def checksum(path: str) -> str:
    """Return the sha256 of a file, an empty text where it cannot be read."""
    try:
        return sha256_of(path)
    except (OSError, ValueError):
        return ""


def files_below(top: str) -> List[str]:
    """Return the paths of all files below a directory, relative to it."""
    return [
        os.path.relpath(os.path.join(folder, name), top)
        for folder, _, names in os.walk(top)
        for name in names
    ]


def compare(top: str, text: str) -> Dict[str, List[str]]:
    """Return {"missing", "differing", "unlisted"}: sorted paths below `top` that are not as in `text`."""
    entries = read(text)
    missing = [path for path in entries if not os.path.isfile(os.path.join(top, path))]
    present = [path for path in entries if path not in missing]
    differing = [path for path in present if checksum(os.path.join(top, path)) != entries[path]]
    unlisted = [path for path in files_below(top) if path not in entries and path != NAME]
    return {"missing": sorted(missing), "differing": sorted(differing), "unlisted": sorted(unlisted)}


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    try:
        result = compare(module.params["path"], module.params["manifest"])
    except ValueError as error:
        module.fail_json(msg="cannot compare %s: %s" % (module.params["path"], error))
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
