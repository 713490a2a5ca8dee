#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
# Runs on the nodes, so on any Python from 3.6 on.

DOCUMENTATION = r"""
module: root_only
short_description: Keep the programs that root executes for root alone
description:
  - Without root nothing is checked and nothing is changed, since nothing is executed as root then.
options:
  path:
    description: Directory of the programs.
    type: path
    required: true
  programs:
    description: >-
      Names in it of what root executes, each with a version behind a C(-) or an ending or without. Other
      names are not looked at.
    type: list
    elements: str
    default: []
  others:
    description: Files, and directories with all that is below them, that root executes too.
    type: list
    elements: path
    default: []
  state:
    description:
      - >-
        V(kept) creates the directory for root, and takes it back from another owner. A program in it that
        somebody else may have changed is moved to a new directory C(untrusted.*), which only root may enter.
        A directory above that not only root may change is refused, and so is such a one of O(others).
      - >-
        V(checked) refuses O(path) where not only root may change it, or what is above or below it, and
        changes nothing.
      - V(readable) lets every user read and execute the programs, which the umask of root may have prevented.
    type: str
    choices: [kept, readable, checked]
    default: kept
attributes:
  check_mode:
    support: full
    description: Says what would change, and changes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Keep the programs for root
  root_only:
    path: /opt/scalebook
    programs: [openmpi, python]
"""

RETURN = r"""
moved:
  description: A sentence for each program that was moved, or would be.
  returned: success
  type: list
  elements: str
"""

from typing import Any, Dict

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.scalebook.node import kept_for_root


def argument_spec() -> Dict[str, Any]:
    return {
        "path": {"type": "path", "required": True},
        "programs": {"type": "list", "elements": "str", "default": []},
        "others": {"type": "list", "elements": "path", "default": []},
        "state": {"type": "str", "choices": ["kept", "readable", "checked"], "default": "kept"},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    try:
        result = kept_for_root.run(module.params, module.check_mode)
    except (OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
