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
attributes:
  check_mode: {support: full}
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

import shutil
from pathlib import Path
from typing import Any, Dict, Mapping

from ansible.module_utils.basic import AnsibleModule


def argument_spec() -> Dict[str, Any]:
    return {"directories": {"type": "dict", "required": True}}


def make(path: Path, files: Mapping[str, str]) -> None:
    """Write `files` into `path`, made from scratch.  Raises ValueError for a name with a directory."""
    for name in files:
        if name in ("", "..") or Path(name).name != name:
            raise ValueError("files: %r is not a plain file name" % name)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(str(path))
    path.mkdir(parents=True)
    for name in sorted(files):
        (path / name).write_text(files[name], encoding="utf-8")


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    directories = {Path(name): files for name, files in module.params["directories"].items()}
    for path in directories:
        if not path.is_absolute() or len(path.parts) < 3:
            module.fail_json(msg="directories: %s must be absolute and below another directory" % path)
    for path in sorted(directories) if not module.check_mode else ():
        try:
            make(path, directories[path])
        except (OSError, ValueError) as error:
            module.fail_json(msg="cannot write the job of %s: %s" % (path, error))
    module.exit_json(changed=bool(directories), made=sorted(map(str, directories)))


if __name__ == "__main__":
    main()
