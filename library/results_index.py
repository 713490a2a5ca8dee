#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Reports of campaigns -> one page over all of them; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: results_index
short_description: Write a page with all campaigns, each case over time
description:
  - Reads C(<campaign>/report/results.json) of every campaign below O(path) and nothing else.
  - Writes C(index.html) and C(index.json) there. A report that cannot be read is named on the page.
  - With O(campaigns) it also writes C(compare.html) and C(compare.md), the campaigns side by side.
  - Runs on the control node; needs what M(speedup_report) needs.
options:
  path:
    description: Directory that holds the directories of campaigns, or folders of them.
    type: path
    required: true
  templates:
    description: Directory that holds C(index.html.j2).
    type: path
    required: true
  workloads:
    description: The declarations of the workloads by name, C(lookup('scalebook_workloads')).
    type: dict
    default: {}
  campaigns:
    description: Names of campaigns to compare with the first of them, two or more.
    type: list
    elements: str
    default: []
  max_regression:
    description: From which slowdown on a row that is slower counts as a regression, such as V(3%) or V(0.03).
    type: str
    default: 3%
  report_language:
    description: Language of C(index.html) and of what the terminal shows.
    type: str
    choices: [en, zh]
    default: en
attributes:
  check_mode:
    support: full
    description: Computes everything and writes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Write the index of all campaigns
  results_index:
    path: "{{ lookup('scalebook_directory', 'work') }}/results"
    templates: "{{ lookup('scalebook_directory', 'own') }}/templates"
"""

RETURN = r"""
campaigns:
  description: Number of campaigns in the index.
  returned: success
  type: int
regressions:
  description: Number of cases whose latest campaign is a regression.
  returned: success
  type: int
display:
  description: What the terminal shows.
  returned: success
  type: str
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.scalebook.report import index_files


def run(params: Mapping[str, Any], check: bool) -> dict[str, Any]:
    """Return the module's result."""
    return index_files.make(params, not check)
