#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
# Runs on the nodes, so on any Python from 3.6 on.

DOCUMENTATION = r"""
module: provisioned
short_description: Compare a node with the record of its last provisioning
description:
  - Records what was required of a node and the state of the node afterwards, and reports later whether
    both are unchanged.
  - The state consists of the files below O(roots) (mode, owner, size and modification time, not their
    contents), the records of the package manager, the kernel, NVIDIA's driver, and whether chrony runs.
options:
  path:
    description: The record. It is not part of the state.
    type: path
    required: true
  wanted:
    description: Fingerprint of what is required of the node.
    type: str
    required: true
  roots:
    description: Files, and directories with all that is below them.
    type: list
    elements: path
    required: true
  without:
    description: Names of files and directories below O(roots) to ignore.
    type: list
    elements: str
    default: []
  state:
    description: Whether to write the record (V(kept)) or to compare with it (V(asked)).
    type: str
    choices: [asked, kept]
    required: true
attributes:
  check_mode:
    support: full
    description: Says what would change, and changes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Compare the node with its record
  provisioned:
    path: /opt/scalebook/provisioned.json
    wanted: 5f7c…
    roots: [/etc, /opt/scalebook]
    state: asked
"""

RETURN = r"""
unchanged:
  description: Whether O(wanted) and the state of the node equal the record.
  returned: success
  type: bool
differs:
  description: Up to ten names of what differs.
  returned: success
  type: list
  elements: str
"""

from typing import Any, Dict

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.scalebook.node import provisioned


def argument_spec() -> Dict[str, Any]:
    return {
        "path": {"type": "path", "required": True},
        "wanted": {"type": "str", "required": True},
        "roots": {"type": "list", "elements": "path", "required": True},
        "without": {"type": "list", "elements": "str", "default": []},
        "state": {"type": "str", "choices": ["asked", "kept"], "required": True},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    try:
        result = provisioned.run(module.params, module.check_mode)
    except (OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
