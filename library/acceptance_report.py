#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: acceptance_report
short_description: Judge the parts of a cluster by what its nodes have measured
description:
  - Adds what nodes have printed to C(measurements.json) in O(path), judges every part, and writes
    C(acceptance.json) and C(good.yml), an inventory of the good nodes.
  - Writes the acceptance document in each language, C(acceptance.en.html) and C(acceptance.zh.html).
  - Says what has to be measured again before every part has a verdict. Runs on the control node.
options:
  path:
    description: Directory of the results.
    type: path
    required: true
  nodes:
    description: The names of all nodes.
    type: list
    elements: str
    required: true
  again:
    description: Whether to add to what has been measured; otherwise it is removed, and all is to be measured.
    type: bool
    default: true
  outputs:
    description: The results of the task that measured, by node.
    type: dict
    default: {}
  steps:
    description: The steps that each node in O(outputs) was asked for, as this module returned them.
    type: dict
    default: {}
  seconds:
    description: Seconds after which a measurement was ended.
    type: int
    default: 0
  port:
    description: The first port at which nodes find each other; each node has its own.
    type: int
    default: 11111
  expected:
    description: File of published values, as C(data/expected.yml).
    type: path
    required: true
  criteria:
    description: File of criteria, which count instead of O(least) and O(most); empty for none.
    type: str
    default: ""
  templates:
    description: Directory of the templates of the document; without it no document is written.
    type: path
  least:
    description: Percentage of the rate of equal parts at which a part has to be found.
    type: float
    default: 95
  most:
    description: Measurements of a part at most.
    type: int
    default: 20
  variables:
    description: The variables of each node that an inventory of it needs.
    type: dict
    default: {}
  addresses:
    description: >-
      The address of each node, at which others find it, and by which C(bench.yml) finds its verdict again.
    type: dict
    default: {}
  hours:
    description: Hours of the burn-in, V(0) for none; one that was interrupted goes on.
    type: float
    default: 0
  burnin:
    description: >-
      Whether O(outputs) are those of a round of the burn-in, which is then judged; without any, it begins.
    type: bool
    default: false
  probed:
    description: The result of M(node_probe) on each node.
    type: dict
    default: {}
  device:
    description: What the nodes compute with.
    type: str
    default: auto
  network:
    description: Which network NCCL may use, see C(network) of C(bench.yml).
    type: str
    choices: [fastest, any]
    default: fastest
  networks:
    description: The networks that are up on each node, as M(hardware_info) returns them.
    type: dict
    default: {}
  report_language:
    description: Language of what the terminal shows; the document is written in each language.
    type: str
    choices: [en, zh]
    default: en
  origin:
    description: The commit and the command, as the filter C(scalebook_origin) returns them.
    type: dict
    default: {}
attributes:
  check_mode:
    support: full
    description: Says what would change, and changes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Judge the nodes
  acceptance_report:
    path: results/acceptance
    nodes: [NODE1, NODE2, NODE3]
    outputs: "{{ printed }}"
    steps: "{{ asked.steps }}"
    expected: data/expected.yml
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
steps:
  description: >-
    What each node measures next, until each part has a verdict, or in the next round of the burn-in, in the
    form that C(measure_parts.py) takes.
  returned: always
  type: dict
measures:
  description: What is measured next, as a line for the terminal; empty where each part has a verdict.
  returned: always
  type: str
display:
  description: The verdict on each part, as lines for the terminal.
  returned: always
  type: list
  elements: str
refusal:
  description: Why the cluster is not accepted, with a fix; empty where it is.
  returned: always
  type: str
left:
  description: Seconds that are left of the burn-in.
  returned: always
  type: float
begins:
  description: What the burn-in repeats, and how far an earlier one came; empty without one.
  returned: always
  type: str
progress:
  description: How far the burn-in is, and its worst part; empty without one.
  returned: always
  type: str
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.scalebook.control import acceptance


def run(params: Mapping[str, Any], check: bool) -> dict[str, Any]:
    """Return the module's result."""
    return acceptance.judge_measured(params, not check)
