#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: preflight_report
short_description: Evaluate the preflight probes of the machines
description:
  - Evaluates the results of M(node_probe) on all machines. Every check passes, warns, or refuses the start,
    with what was found, what is expected, and the fix.
  - Checks the disk of the control node too. Changes nothing but the files named in O(out).
  - Runs on the control node.
options:
  machines:
    description: The machines, as the filter C(scalebook_machines) returns them.
    type: list
    elements: dict
    required: true
  probed:
    description: The result of M(node_probe) on each machine, by the name of the machine.
    type: dict
    required: true
  limits:
    description: The thresholds, options of the role C(preflight) without its prefix.
    type: dict
    required: true
  device:
    description: The device that runs will compute on.
    type: str
    choices: [auto, cpu, gpu]
    default: auto
  acceptance:
    description: The C(acceptance.json) whose verdicts on the nodes are looked up, if there is one.
    type: path
  results:
    description: Directory of all campaigns on the control node; it must have room.
    type: path
    required: true
  out:
    description: Files to write the findings and the results of the probes to, as JSON.
    type: list
    elements: path
    default: []
  report_language:
    description: Language of what the terminal shows.
    type: str
    choices: [en, zh]
    default: en
attributes:
  check_mode:
    support: full
    description: Says what would change, and changes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Evaluate the probes
  preflight_report:
    machines: "{{ __preflight_machines }}"
    probed: "{{ __preflight_probes }}"
    limits: "{{ __preflight_limits }}"
    results: results
    out: [preflight.json]
  delegate_to: localhost
"""

RETURN = r"""
verdict:
  description: The worst level, C(ok), C(warn) or C(refuse).
  returned: success
  type: str
findings:
  description: The result of every check, with C(check), C(level), C(nodes), C(message), C(found), C(expected)
    and C(fix); C(found) is the sentence of C(message). The file has messages in place of the sentences.
  returned: success
  type: list
  elements: dict
refusal:
  description: Why the campaign is not started, empty where nothing is refused.
  returned: success
  type: str
display:
  description: The findings as a table.
  returned: success
  type: str
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.scalebook.control import preflight


def run(params: Mapping[str, Any], check: bool) -> dict[str, Any]:
    """Return the module's result."""
    return preflight.report(params, not check)
