#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: campaign_provenance
short_description: Write down what a campaign runs on
description:
  - Writes C(provenance.json) of a campaign; the commit of scalebook, the result of the preflight, and what
    each node has for each workload.
  - The workloads of an earlier start that this one does not prepare are kept.
  - Runs on the control node.
options:
  path:
    description: Directory of the campaign.
    type: path
    required: true
  nodes:
    description: The nodes of the campaign.
    type: list
    elements: dict
    required: true
  versions:
    description: What each node has for each workload, in the order of O(nodes).
    type: list
    elements: dict
    required: true
  preflight:
    description: The result of the preflight, or why there is none.
    type: raw
    required: true
  launcher:
    description: What starts the runs; recorded where it is not C(mpirun).
    type: str
    default: mpirun
attributes:
  check_mode:
    support: full
    description: Says what would change, and changes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Write the provenance of the campaign
  campaign_provenance:
    path: "{{ lookup('scalebook_directory', 'work') }}/results/night1"
    nodes: "{{ nodes }}"
    versions: [{tf2_bert: {framework: tensorflow 2.3.0}}]
    preflight: {verdict: pass, warnings: []}
"""

RETURN = r"""
file:
  description: Path of the file.
  returned: success
  type: str
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.scalebook.launch import provenance


def run(params: Mapping[str, Any], check: bool) -> dict[str, Any]:
    """Return the module's result."""
    return provenance.write_provenance(params, not check)
