#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
# Runs on the nodes, so on any Python from 3.6 on.

DOCUMENTATION = r"""
module: campaign_lock
short_description: Let one control node at a time use a machine
description:
  - Takes or gives back a lock, a file that says who holds it.
  - A lock of another holder is left alone and returned. The control node finds out whether that holder still
    runs, and if not, names it in O(over). A lock that cannot be read is held by somebody unknown.
options:
  path:
    description:
      - The lock file. Its directory is made, for all users.
      - Without it, the lock of the machine, which is the same for all users and whatever directory they
        install into. It is gone after a restart of the machine. A container with a C(/run) of its own is a
        machine of its own.
    type: path
  holder:
    description: Who takes it or gives it back. The key C(id) tells one holder from another.
    type: dict
    required: true
  over:
    description: The C(id) of a holder that is gone, whose lock is taken over.
    type: str
  state:
    description: Whether O(holder) shall hold the lock. What another one holds is not given back.
    type: str
    choices: [present, absent]
    default: present
  before:
    description:
      - A command that runs before the lock is given back, while nobody else can take it. It is left out where
        its second word, a program file, does not exist.
    type: list
    elements: str
    default: []
attributes:
  check_mode:
    support: full
    description: Says what would change, and changes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Take the machine
  campaign_lock:
    holder: {id: "bench1:4711:12345", host: bench1, pid: 4711}
"""

RETURN = r"""
held:
  description: Whether O(holder) holds the lock now.
  returned: success
  type: bool
taken:
  description: The other holder; empty when there is none.
  returned: success
  type: dict
path:
  description: The lock file.
  returned: success
  type: str
"""

from typing import Any, Dict

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.scalebook.node import lock


def argument_spec() -> Dict[str, Any]:
    return {
        "path": {"type": "path"},
        "holder": {"type": "dict", "required": True},
        "over": {"type": "str"},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "before": {"type": "list", "elements": "str", "default": []},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    try:
        result = lock.run(module.params, module.check_mode)
    except (OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
