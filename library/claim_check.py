#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A claimed rate -> whether it is possible; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: claim_check
short_description: Judge a rate that somebody claims for training a language model
description:
  - Computes the operations, TFLOP/s and MFU of the rate, and whether a GPU can reach it.
  - Lists what was published of the same model, and what campaigns below O(results) measured of it.
  - Writes nothing. Runs on the control node.
options:
  model:
    description: A language model of C(models.yml), such as V(llama3-8b).
    type: str
    required: true
  seq:
    description: Tokens of a sequence.
    type: int
    required: true
  gpu:
    description: A GPU of C(gpus.csv), by its name there or that of the driver.
    type: str
    required: true
  gpus:
    description: GPUs altogether.
    type: int
    default: 1
  dtype:
    description: Precision of the products, such as V(bf16) or V(fp8).
    type: str
    required: true
  tokens_per_second:
    description: The rate per GPU.
    type: float
    required: true
  data:
    description: Directory of C(models.yml), C(gpus.csv) and C(llm-published.csv).
    type: path
    required: true
  results:
    description: Directory of campaigns with reports; it need not exist.
    type: path
    required: true
  workloads:
    description: The declarations of the workloads by name, C(lookup('scalebook_workloads')).
    type: dict
    default: {}
  report_language:
    description: Language of RV(display).
    type: str
    choices: [en, zh]
    default: en
attributes:
  check_mode:
    support: full
    description: Never writes anything.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Judge a published rate
  claim_check:
    model: llama3-8b
    seq: 8192
    gpu: H100
    gpus: 8
    dtype: fp8
    tokens_per_second: 14451
    data: "{{ lookup('scalebook_directory', 'own') }}/data"
    results: "{{ lookup('scalebook_directory', 'work') }}/results"
"""

RETURN = r"""
level:
  description: V(possible), V(unseen), which is above everything that was published, or V(impossible).
  returned: success
  type: str
verdict:
  description: Operations, TFLOP/s, shares of peaks and what compares, as data.
  returned: success
  type: dict
display:
  description: What the terminal shows.
  returned: success
  type: str
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.scalebook.report import claim


def run(params: Mapping[str, Any], check: bool) -> dict[str, Any]:
    """Return the module's result."""
    del check  # it writes nothing
    return claim.check(params)
