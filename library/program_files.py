#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
# Runs on the nodes, so on any Python from 3.6 on.

DOCUMENTATION = r"""
module: program_files
short_description: Put the files of a program into a directory
description:
  - Writes those of O(files) that are not as wanted, in one call per machine. C(ansible.builtin.copy) needs
    more than one for each file, and a trainer has a dozen of them.
  - Other files of the directory are left as they are. None is ever half written.
options:
  path:
    description: The directory; made with mode 0755 if it is not there.
    type: path
    required: true
  files:
    description: Names, without a directory, and contents. Written with mode 0644.
    type: dict
    required: true
attributes:
  check_mode: {support: full}
  diff_mode: {support: full}
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Install the trainer
  program_files:
    path: /opt/scalebook/torch_bert/code
    files:
      train.py: "{{ lookup('ansible.builtin.file', 'train.py', rstrip=false) }}"
"""

RETURN = r"""
written:
  description: The names of the files that were not as wanted.
  returned: success
  type: list
  elements: str
"""

import os
import tempfile
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

MODE = 0o644


def argument_spec():
    return {"path": {"type": "path", "required": True}, "files": {"type": "dict", "required": True}}


def there(path):
    """Return the bytes of a plain file with the right mode, None for anything else."""
    if path.is_symlink() or not path.is_file() or path.stat().st_mode & 0o777 != MODE:
        return None
    return path.read_bytes()


def put(folder, files, write=True):
    """Write what differs of `files` ({name: text}) into `folder`; only look when not `write`.

    Return {name: bytes that were there or None} of what differs.  Raises ValueError for a name with a
    directory, OSError where the folder cannot be written.
    """
    for name in files:
        if name in ("", "..") or Path(name).name != name:
            raise ValueError("files: %r is no plain file name" % name)
    before = {name: there(folder / name) for name in sorted(files)}
    differs = {name: old for name, old in before.items() if old != files[name].encode()}
    if write:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    for name in differs if write else ():
        descriptor, made = tempfile.mkstemp(prefix="." + name, dir=str(folder))
        with os.fdopen(descriptor, "wb") as file:
            file.write(files[name].encode())
        Path(made).chmod(MODE)
        Path(made).replace(folder / name)
    return differs


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    folder, files = Path(module.params["path"]), module.params["files"]
    try:
        differs = put(folder, files, write=not module.check_mode)
    except (OSError, ValueError) as error:
        module.fail_json(msg="cannot write a program into %s: %s" % (folder, error))
    result = {"changed": bool(differs), "written": list(differs)}
    if module._diff:  # Ansible's own modules ask it so
        result["diff"] = [
            {
                "before_header": str(folder / name),
                "after_header": str(folder / name),
                "before": (old or b"").decode(errors="replace"),
                "after": files[name],
            }
            for name, old in differs.items()
        ]
    module.exit_json(**result)


if __name__ == "__main__":
    main()
