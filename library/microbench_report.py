#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Results of the micro-benchmarks -> table and picture; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: microbench_report
short_description: Compare the micro-benchmarks of a device with published ones
description:
  - Reads C(compute.json) in O(path) and, if they exist, C(collectives.json), C(collectives.nccl.xz),
    C(hardware.json) and C(about.json).
  - Writes C(report.html), C(report.md), C(microbench.json) and, where a peak is known, C(theory.svg) there.
    C(microbench.json) holds the records; its schema is in C(docs/reference).
  - C(manifest.json) keeps the first checksums of what was read; the report names a file that has changed
    since, and so does M(results_verify).
  - A program that failed, as C(about.json) says, is in RV(unmeasured), in the records and on the page.
  - Runs on the control node; needs pandas, Jinja2 and PyYAML there.
options:
  path:
    description: Directory of the results, which may be in a C(runs.tar.xz) beside it.
    type: path
    required: true
  published:
    description: The CSV of published results.
    type: path
    required: true
  gpus:
    description: The CSV of the peaks of devices.
    type: path
    required: true
  prices:
    description: List of prices, such as C(data/prices.yml). Those of the device are shown with their source.
    type: path
  templates:
    description: Directory that holds C(page.html.j2).
    type: path
    required: true
  report_language:
    description: Language of C(report.html), C(report.md), C(theory.svg) and what the terminal shows.
    type: str
    choices: [en, zh]
    default: en
  network:
    description: >-
      Which network NCCL may use, see C(network) of C(bench.yml): collectives over sockets count only with
      V(any) where InfiniBand or RoCE is up.
    type: str
    choices: [fastest, any]
    default: fastest
  expect:
    description:
      - The group that C(collectives.json) must have, C(nodes), C(devices) in total and C(device) (cpu or
        gpu). Another group is refused.
      - Empty where results are only reported again.
    type: dict
    default: {}
attributes:
  check_mode:
    support: full
    description: Computes everything and writes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Report on the devices
  microbench_report:
    path: results/microbench
    published: "{{ lookup('scalebook_directory', 'own') }}/data/microbench-published.csv"
    gpus: "{{ lookup('scalebook_directory', 'own') }}/data/gpus.csv"
    templates: "{{ lookup('scalebook_directory', 'own') }}/templates"
"""

RETURN = r"""
display:
  description: What the terminal shows; the tables and where the report is.
  returned: success
  type: str
report:
  description: Path of C(report.html).
  returned: success
  type: str
unmeasured:
  description: A sentence for each program that failed.
  returned: success
  type: list
  elements: str
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.scalebook.report import microbench_files


def run(params: Mapping[str, Any], check: bool) -> dict[str, Any]:
    """Return the module's result."""
    return microbench_files.report(params, not check)
