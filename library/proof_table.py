#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: proof_table
short_description: Hold the stacks of nodes against each other
description:
  - Tells in which of the twelve keys of role C(proof) the nodes differ, and makes a table of them.
  - Runs on the controller, reads and changes nothing.
options:
  rows:
    description: The keys of every node, as C(read_node.py) tells them.
    type: dict
    required: true
  may_differ:
    description: Keys that are shown and not compared.
    type: list
    elements: str
    default: []
attributes:
  check_mode: {support: full}
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Compare the nodes
  proof_table:
    rows: "{{ dict(ansible_play_hosts | zip(ansible_play_hosts | map('extract', hostvars, 'proof_row'))) }}"
    may_differ: [kernel]
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
differences:
  description: A sentence for each key that differs, with the values and their nodes.
  returned: success
  type: list
  sample: ["NCCL: 2.7.3-1+cuda10.2 on NODE1, NODE2, NODE3; 2.7.8-1+cuda10.2 on NODE4"]
display:
  description: The table, for the terminal.
  returned: success
  type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.scalebook import proof


def argument_spec():
    return {
        "rows": {"type": "dict", "required": True},
        "may_differ": {"type": "list", "elements": "str", "default": []},
    }


def main():
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    rows, may_differ = module.params["rows"], module.params["may_differ"]
    try:
        differences = proof.differences(rows, may_differ)
        display = proof.table(rows, may_differ)
    except proof.ProofError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, differences=differences, display=display)


if __name__ == "__main__":
    main()
