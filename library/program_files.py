#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
# Runs on the nodes, so on any Python from 3.6 on.

DOCUMENTATION = r"""
module: program_files
short_description: Write the files of a program into a directory
description:
  - Writes those of O(files) that differ, in one call per machine. C(ansible.builtin.copy) needs more than one
    call for each file, and a trainer has a dozen of them.
  - Other files of the directory are not changed. Each file is written whole or not at all.
options:
  path:
    description: The directory; created with mode 0755 if it does not exist, as those above it.
    type: path
    required: true
  files:
    description: Names, without a directory, and contents. Written with mode 0644.
    type: dict
    required: true
attributes:
  check_mode:
    support: full
    description: Says what would change, and changes nothing.
  diff_mode:
    support: full
    description: Shows the files before and after.
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
  description: The names of the files that differed.
  returned: success
  type: list
  elements: str
"""

from pathlib import Path
from typing import Any, Dict, Mapping, Optional

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.scalebook.files import write_whole

MODE = 0o644


def argument_spec() -> Dict[str, Any]:
    return {"path": {"type": "path", "required": True}, "files": {"type": "dict", "required": True}}


def content(path: Path) -> Optional[bytes]:
    """Return the bytes of a regular file with the right mode, None for anything else."""
    if path.is_symlink() or not path.is_file() or path.stat().st_mode & 0o777 != MODE:
        return None
    return path.read_bytes()


def make(folder: Path) -> None:
    """Make a folder and those above it that are missing, for all to read whatever the umask."""
    if not folder.is_dir():
        make(folder.parent)
        folder.mkdir()
        folder.chmod(0o755)


def put(folder: Path, files: Mapping[str, str], write: bool = True) -> Dict[str, Optional[bytes]]:
    """Write the files that differ of `files` ({name: text}) into `folder`; only compare when not `write`.

    Return {name: old content or None} of those.  Raises ValueError for a name with a directory, OSError
    where the folder cannot be written.
    """
    for name in files:
        if name in ("", "..") or Path(name).name != name:
            raise ValueError("files: %r is not the name of a file without a directory" % name)
    before = {name: content(folder / name) for name in sorted(files)}
    differs = {name: old for name, old in before.items() if old != files[name].encode()}
    if write:
        make(folder)
    for name in differs if write else ():
        if (folder / name).is_symlink():
            (folder / name).unlink()  # write_whole compares with the file that a link points to
        write_whole(folder / name, files[name].encode(), mode=MODE)
        (folder / name).chmod(MODE)  # where only the mode differs nothing is written
    return differs


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    folder, files = Path(module.params["path"]), module.params["files"]
    try:
        differs = put(folder, files, write=not module.check_mode)
    except (OSError, ValueError) as error:
        module.fail_json(msg="cannot write the program into %s: %s" % (folder, error))
    result: Dict[str, Any] = {"changed": bool(differs), "written": list(differs)}
    if module._diff:  # the attribute that Ansible's own modules use
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
