#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: campaign_plan
short_description: Expand the parameters of a campaign into its plan
description:
  - Expands the matrix into cases, lists those that cannot run with the reason, and finds the runs that are
    measured already.
  - Writes C(plan.json) below O(results) unless O(write) is false or in check mode.
  - Where the batch is C(max), returns the short runs that search for the largest batch, and plans with the
    answer once these have been made.
  - Refuses a campaign that an earlier version planned, one that other machines have measured, and one with
    nothing to run.
  - Runs on the control node.
options:
  parameters:
    description: The parameters of the campaign as the lookup P(scalebook_parameters#lookup) returns them.
    type: dict
    required: true
  workloads:
    description: The declarations of the campaign's workloads by name, their settings resolved.
    type: dict
    required: true
  device:
    description: What the nodes compute with.
    type: str
    choices: [cpu, gpu]
    required: true
  nodes:
    description: The nodes in inventory order, each with C(name), C(address), C(slots) and C(machine).
    type: list
    elements: dict
    required: true
  machines:
    description: >-
      The identities of the nodes' machines by node, as M(hardware_info) returns them. Empty where the nodes
      were not asked; only their names are compared then, and O(write) must be false.
    type: dict
    default: {}
  hardware:
    description: What the nodes are made of, one entry for each kind of node, to be shown.
    type: list
    elements: dict
    default: []
  inventory:
    description: Where the nodes come from, for the record.
    type: str
    default: ""
  given:
    description: Names of the variables that were given with C(-e); the plan keeps those of workloads.
    type: list
    elements: str
    default: []
  results:
    description: Directory of all campaigns.
    type: path
    required: true
  space:
    description: MB that must be free below O(results) when something is to be measured.
    type: int
    default: 0
  write:
    description: Write the plan. False only shows it, and also one with nothing to run.
    type: bool
    default: true
  searched:
    description:
      - Whether this start of the campaign has made runs of the searches. One that failed is made again by the
        next start only.
    type: bool
    default: false
  launch:
    description:
      - What the launch command of the first case is shown with when O(write) is false, keys C(launcher),
        C(mpirun), C(allocation), C(run_node) (a list), C(port) and C(options). Empty shows none.
    type: dict
    default: {}
  holder:
    description: Who writes the plan, and holds the directory of the campaign from then on. Nobody by default.
    type: dict
  takeover:
    description: Take the directory over from a holder that cannot be asked whether it still runs.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
    description: Says what would change, and changes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Plan two batch sizes on one and two nodes
  campaign_plan:
    parameters: "{{ lookup('scalebook_parameters', 'bench')['values'] }}"
    workloads: "{{ {'tf2_bert': lookup('scalebook_declaration', 'tf2_bert')} }}"
    device: cpu
    nodes:
      - {name: NODE1, address: 10.11.0.2, slots: 1, machine: 10.11.0.2}
      - {name: NODE2, address: 10.11.0.3, slots: 1, machine: 10.11.0.3}
    results: results
  delegate_to: localhost
"""

RETURN = r"""
lock:
  description: The lock of the directory of the campaign, which is held now. Empty where nobody shall hold it.
  returned: success
  type: str
campaign:
  description: >-
    Name of the campaign; it follows from the matrix and the machines unless the parameter C(campaign)
    names it.
  returned: success
  type: str
path:
  description: Directory of the campaign.
  returned: success
  type: str
search:
  description:
    - The next runs of the searches for the largest batch, each with C(case), C(repeat), C(number), C(total)
      (the most that there may be) and C(folder). While there are some, C(pending) lacks what waits for them.
  returned: success
  type: list
  elements: dict
pending:
  description: The runs still to be measured, each with C(case), C(repeat), C(number), C(total) and C(folder).
  returned: success
  type: list
  elements: dict
seconds:
  description: How long these runs take if each takes as long as earlier ones did; 0 where none is known.
  returned: success
  type: float
oom:
  description: Cases of which a run ran out of memory. Such a run is repeated only if C(force) is true.
  returned: success
  type: list
  elements: dict
measured:
  description: How many runs of the plan are measured already.
  returned: success
  type: int
total:
  description: How many runs the plan has.
  returned: success
  type: int
command:
  description: The command that measures the campaign again, for the records of this start.
  returned: success
  type: str
report_language:
  description: The language of what the terminal shows.
  returned: success
  type: str
display:
  description: The plan as text.
  returned: success
  type: str
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.scalebook.control import campaign


def run(params: Mapping[str, Any], check: bool) -> dict[str, Any]:
    """Return the module's result."""
    return campaign.make_plan(params, not check)
