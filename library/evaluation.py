#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Campaigns -> an evaluation; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: evaluation
short_description: Turn the results of campaigns into an evaluation document
description:
  - Reads C(results.json) of each campaign and writes C(evaluation.json), C(evaluation.md),
    C(evaluation.html), C(evaluation.xlsx) and C(evaluation.docx), which have a verdict for each criterion,
    results by model family, time and cost of a training, and the best value.
  - Every figure comes from the records of the campaigns, from published tables or from the list of prices.
  - Runs on the control node; needs PyYAML, Jinja2, pandas and XlsxWriter there, and resvg-py for pictures in
    C(evaluation.docx) beside the vectors, which older word processors do not show.
options:
  evaluation:
    description: What the user asks for; relative paths count from O(here).
    type: dict
    required: true
    suboptions:
      title:
        description: Title of the document.
        type: str
        required: true
      language:
        description: Language of the document.
        type: str
        choices: [en, zh]
        default: en
      platform:
        description: What the document says of the platform - its name, address, and what is available there.
        type: str
        default: ""
      texts:
        description:
          - Paragraphs of the user's own by section - C(introduction), C(platform), C(frameworks), C(models),
            C(environment), C(configuration), C(rules), C(metrics), C(problems), or the name of a model
            family that the document has.
        type: dict
        default: {}
      campaigns:
        description: Directories of campaigns with a report or archive, or their C(results.json), each once.
        type: list
        elements: path
        default: []
      published:
        description:
          - Published results to show beside the measured ones - C(hf_trainer), 19 runs of Hugging Face
            Trainer on V100 and A100, C(dlperf), the 509 rows of DLPerf, and C(insightface), its 92 rows of
            InsightFace.
        type: list
        elements: str
        choices: [hf_trainer, dlperf, insightface]
        default: []
      prices:
        description: List of prices, such as C(data/prices.yml).
        type: path
      electricity:
        description: Price of a kWh in the currency of the prices, from 0 on, for the measured energy of GPUs.
        type: float
      task:
        description: The training whose time and cost are computed.
        type: dict
        apply_defaults: true
        suboptions:
          name:
            description: What it is called. Default is its number of samples.
            type: str
            default: ""
          samples:
            description: Number of samples of an epoch, from 1 on.
            type: int
            default: 1000000
          epochs:
            description: Number of epochs, above 0.
            type: float
            default: 1
      deadline_hours:
        description: Hours, above 0, in which the training must be done; the cheapest option within is named.
        type: float
      budget:
        description: What the training may cost, above 0; the fastest option within is named.
        type: float
      criteria:
        description: Thresholds of the criteria.
        type: dict
        apply_defaults: true
        suboptions:
          efficiency:
            description: Parallel efficiency that is required on many machines, in per cent from 1 to 100.
            type: float
            default: 80
          machines:
            description: From how many machines on it is required, 1 or more.
            type: int
            default: 20
          utilisation:
            description: Mean utilisation that is required of every case, in per cent from 1 to 100.
            type: float
            default: 80
          ahead:
            description: The workload that must be faster than every other one of its family.
            type: str
            default: ""
      out:
        description: Directory to write to; it is made. The default is below O(here).
        type: path
        default: evaluation
  here:
    description: Directory from which relative paths count.
    type: path
    required: true
  templates:
    description: Directory of the page, its style and the texts by language.
    type: path
    required: true
  data:
    description: Directory of the published tables.
    type: path
    required: true
  workloads:
    description: The declarations of the workloads by name, as lookup C(scalebook_workloads) returns them.
    type: dict
    required: true
attributes:
  check_mode:
    support: full
    description: Says what would change, and changes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Write the evaluation
  evaluation:
    evaluation:
      title: BERT on two clusters
      campaigns: [results/first, results/second]
      prices: data/prices.yml
      out: evaluation
    here: /srv/scalebook
    templates: templates
    data: data
    workloads: "{{ lookup('scalebook_workloads') }}"
"""

RETURN = r"""
display:
  description: The conclusion, line by line, and the path of the document.
  returned: success
  type: list
  elements: str
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.scalebook.evaluate import write


def run(params: Mapping[str, Any], check: bool) -> dict[str, Any]:
    """Return the module's result."""
    return write.evaluate(params, not check)
