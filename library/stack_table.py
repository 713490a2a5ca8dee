#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: stack_table
short_description: Compare the software stacks of nodes
description:
  - Reports in which of the twelve keys of role C(stack_check) the nodes differ, and formats a table of them.
  - Runs on the control node and changes nothing.
options:
  rows:
    description: The keys of every node, as module C(stack_check_info) returns them.
    type: dict
    required: true
  may_differ:
    description: Keys that are shown but not compared.
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
- name: Compare the nodes
  stack_table:
    rows: "{{ dict(groups['nodes'] | zip(groups['nodes'] | map('extract', hostvars, 'stack_check_row'))) }}"
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

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.scalebook.pages.catalogue import in_words
from ansible.module_utils.scalebook.provision import stack_table


def run(params: Mapping[str, Any], check: bool) -> dict[str, Any]:
    """Return the module's result."""
    del check  # it changes nothing
    return stack_table.compare(in_words(params["rows"]), params["may_differ"])
