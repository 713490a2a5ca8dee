#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
# Runs on the nodes, so on any Python from 3.6 on.

DOCUMENTATION = r"""
module: remove_workload
short_description: Remove what workloads have installed on a node
description:
  - Removes the directories of O(workloads), the environments that no other installed workload uses, and what
    runs have left in O(work).
  - Nothing outside of O(path) is removed, and no link is followed. Where the directory of a workload is a
    link, a mount or outside of O(path), or has something in it that a variable or another workload names, the
    module fails and removes nothing.
options:
  path:
    description: The directory below which everything is installed.
    type: path
    required: true
  workloads:
    description: The names of the workloads to remove.
    type: list
    elements: str
    required: true
  installed:
    description:
      - What each workload has, of all that there are, by its name. C(home) is its directory; one that does
        not exist is not installed. C(uses) are the environments that it shares, C(names) the paths that the
        user has set its variables to.
      - Environments that see another one (C(scalebook-framework.pth)) are found on the node.
    type: dict
    required: true
  work:
    description: The directory of runs. Those of a workload are in C(<node>/<campaign>/<workload>-*).
    type: path
    required: true
attributes:
  check_mode:
    support: full
    description: Says what would change, and changes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Remove torch_bert
  remove_workload:
    path: /opt/scalebook
    work: /opt/scalebook/work
    workloads: [torch_bert]
    installed:
      torch_bert: {home: /opt/scalebook/torch_bert, uses: [/opt/scalebook/pytorch/venv], names: []}
"""

RETURN = r"""
removed:
  description: What was removed, or would be, with the bytes on the disk that it takes.
  returned: success
  type: list
  elements: dict
  sample: [{path: /opt/scalebook/torch_bert, bytes: 84201472}]
kept:
  description: What stays, with the reason.
  returned: success
  type: list
  elements: dict
  sample: [{path: /opt/scalebook/pytorch/venv, why: horovod_bert uses it}]
display:
  description: The same as lines for the terminal.
  returned: success
  type: list
  elements: str
"""

from typing import Any, Dict

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.scalebook.node import removal


def argument_spec() -> Dict[str, Any]:
    return {
        "path": {"type": "path", "required": True},
        "workloads": {"type": "list", "elements": "str", "required": True},
        "installed": {"type": "dict", "required": True},
        "work": {"type": "path", "required": True},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    try:
        result = removal.run(module.params, module.check_mode)
    except (OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
