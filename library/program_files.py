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

from typing import Any, Dict

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.scalebook.node import program_files


def argument_spec() -> Dict[str, Any]:
    return {"path": {"type": "path", "required": True}, "files": {"type": "dict", "required": True}}


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    try:
        result = program_files.run(module.params, module.check_mode, module._diff)
    except (OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
