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

from typing import Any, Dict

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.scalebook.node import job_directories


def argument_spec() -> Dict[str, Any]:
    return {"directories": {"type": "dict", "required": True}, "lock": {"type": "dict"}}


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    try:
        result = job_directories.run(module.params, module.check_mode)
    except (OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
