#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Result records -> report; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: speedup_report
short_description: Turn the result records of a campaign into tables, curves and files
description:
  - Reads every C(runs/<case>/<repeat>/result.json) below O(path), and C(plan.json) and C(provenance.json)
    next to C(runs) if they exist. Or reads the same files from an archive, C(runs.tar.xz).
  - Writes C(results.json), C(results.csv), C(environment.csv), C(results.xlsx), C(metrics.prom),
    DLPerf's C(*_result.json), C(*.svg), C(report.md) and C(report.html) to O(out), and C(manifest.json)
    next to C(runs).
  - Only runs of status C(ok) count. Every other run, planned runs without a record and unreadable records
    are listed with their reason.
  - Runs on the control node; needs pandas, XlsxWriter and Jinja2 there.
options:
  path:
    description:
      - Directory of one campaign or import, which contains C(runs) or C(runs.tar.xz), or such an archive.
      - Or what would be that directory if the C(runs.tar.xz) beside it, of several campaigns, were unpacked.
    type: path
    required: true
  out:
    description: Directory to write to; by default C(report) below O(path).
    type: path
  templates:
    description: Directory that holds C(page.html.j2) and its style and scripts.
    type: path
    required: true
  workloads:
    description:
      - The declarations of the workloads by name, C(lookup('scalebook_workloads')).
      - C(title), C(family) and C(compiler) are used in headings and labels.
      - C(dlperf) has the names of DLPerf, C({frameworks, models, others, differs}), for O(compare).
    type: dict
    default: {}
  compare:
    description:
      - Published results to compare with, those of DLPerf, and with V(published) also rates of language
        models.
    type: str
    choices: ["", dlperf, published]
    default: ""
  published:
    description: The CSVs of published results; required with O(compare).
    type: list
    elements: path
    default: []
  language_models:
    description: The CSV of published rates of language models, for O(compare=published) with O(gpus).
    type: path
  gpus:
    description: The CSV of the peaks of GPUs, for the MFU of workloads that declare C(flops).
    type: path
  baseline:
    description:
      - An earlier result to compare every row with, a C(results.json), or a campaign or import as in O(path).
      - A row is faster, slower or the same. A difference that can be scatter is the same.
    type: path
  max_regression:
    description: From which slowdown on a row that is slower counts as a regression, such as V(3%) or V(0.03).
    type: str
    default: 3%
  min_utilisation:
    description:
      - The mean utilisation in per cent that GPUs, processors, memory, disks and network links are judged by.
    type: float
    default: 80
  report_language:
    description:
      - Language of C(report.html), C(report.md), the charts and what the terminal shows; the other files are
        English.
    type: str
    choices: [en, zh]
    default: en
  reading:
    description:
      - Which time source counts, the time stamps of steps, or the rates that the workload prints.
      - With V(printed) a run that prints no rates does not count.
    type: str
    choices: [stamps, printed]
    default: stamps
attributes:
  check_mode:
    support: full
    description: Computes everything and writes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Report on a campaign
  speedup_report:
    path: "{{ lookup('scalebook_directory', 'work') }}/results/tf2_bert-base-b64-fp32-1a2b3c4d"
    templates: "{{ lookup('scalebook_directory', 'own') }}/templates"
"""

RETURN = r"""
rows:
  description: One row for each case, ordered by group and number of devices, without the single runs.
  returned: success
  type: list
  elements: dict
  sample:
    - {case: tf2_bert-base-4n8g-b64-fp32-1a2b3c4d, label: 4n8g, devices: 32, good: 5, planned: 5, status: ok,
       median: 2244.38, speedup: 19.863, efficiency: 0.621, flags: []}
table:
  description: DLPerf's tables as aligned text.
  returned: success
  type: str
display:
  description: What the terminal shows; the tables, the excluded runs with their reasons, and the page's path.
  returned: success
  type: str
report:
  description: Path of C(report.html).
  returned: success
  type: str
files:
  description: Paths of all files of the report.
  returned: success
  type: list
  elements: str
uncounted:
  description: Number of excluded runs.
  returned: success
  type: int
regressions:
  description: Number of rows that are slower than O(baseline) by more than O(max_regression).
  returned: success
  type: int
problems:
  description:
    - The files of runs that counted that differ from C(manifest.json), each with C(file), C(what) (changed,
      missing or added) and C(run).
  returned: success
  type: list
  elements: dict
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.scalebook.report import campaign_files


def run(params: Mapping[str, Any], check: bool) -> dict[str, Any]:
    """Return the module's result."""
    return campaign_files.make(params, not check)
