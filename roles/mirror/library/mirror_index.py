#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
# Runs on the nodes, so on any Python from 3.6 on.

DOCUMENTATION = r"""
module: mirror_index
short_description: Write the index of a directory of Debian packages
description:
  - Writes C(Packages.new), the index of a flat apt repository, of all C(.deb) files of a directory. Needs
    C(dpkg-deb), which every Debian and Ubuntu has; C(dpkg-scanpackages), a developer's tool, is not needed.
  - Renames packages whose version has an epoch, since apt downloads them as C(1%3a) and looks for them as
    C(1:).
  - Does nothing where O(path) is not a directory.
options:
  path:
    description: The directory.
    type: path
    required: true
attributes:
  check_mode:
    support: full
    description: Says what would change, and changes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Write the index of the packages
  mirror_index:
    path: /opt/scalebook/tmp.mirror/gathered/apt/debian-12
"""

RETURN = r"""
packages:
  description: Number of packages in the index.
  returned: success
  type: int
"""

import glob
import os
import re
import subprocess
from typing import Any, Dict, Tuple

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.scalebook.files import sha256_of, write_whole


def argument_spec() -> Dict[str, Any]:
    return {"path": {"type": "path", "required": True}}


def paragraph(path: str) -> str:
    """Return the paragraph of the index for one package."""
    command = ["dpkg-deb", "--field", path]
    process = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, check=False
    )
    if process.returncode:
        raise ValueError("%s is not a Debian package: %s" % (path, process.stderr.strip()))
    return "%s\nFilename: ./%s\nSize: %d\nSHA256: %s\n" % (
        process.stdout.strip("\n"),
        os.path.basename(path),
        os.path.getsize(path),
        sha256_of(path),
    )


def without_epoch(name: str) -> str:
    """Return the name of a package's file as apt looks for it in a repository."""
    return re.sub(r"_[0-9]*%3a", "_", name, count=1)


def index(folder: str, write: bool = True) -> Tuple[int, bool]:
    """Write the index of the packages in a directory; return (number of packages, whether it changed)."""
    paths = sorted(glob.glob(os.path.join(glob.escape(folder), "*.deb")))
    if not write:
        return len(paths), bool(paths)
    for path in paths:
        os.replace(path, os.path.join(folder, without_epoch(os.path.basename(path))))
    paths = sorted(glob.glob(os.path.join(glob.escape(folder), "*.deb")))
    text = "\n".join(paragraph(path) for path in paths) + "\n"
    return len(paths), write_whole(os.path.join(folder, "Packages.new"), text.encode("utf-8"))


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    folder = module.params["path"]
    if not os.path.isdir(folder):
        module.exit_json(changed=False, packages=0)
    try:
        packages, changed = index(folder, write=not module.check_mode)
    except (OSError, ValueError) as error:
        module.fail_json(msg="cannot write the index of %s: %s" % (folder, error))
    module.exit_json(changed=changed, packages=packages)


if __name__ == "__main__":
    main()
