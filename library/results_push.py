#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A report -> MLflow or Weights & Biases; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: results_push
short_description: Push the results of a report to MLflow or to files of Weights & Biases
description:
  - Makes a run for each case of C(results.json), with its parameters, its metrics and the report.
  - What was pushed before is not pushed again.
  - Needs C(mlflow-skinny) or C(wandb) in the Python of the control node, which scalebook does not install.
options:
  report:
    description: Directory of a report.
    type: path
    required: true
  tracker:
    description:
      - Where to. V(mlflow) makes an experiment with the name of the campaign.
      - V(wandb) writes offline runs of the project C(scalebook), grouped by campaign, for C(wandb sync).
    type: str
    choices: [mlflow, wandb]
    required: true
  target:
    description: A directory, which is made, or with V(mlflow) the URI of a tracking server.
    type: str
    required: true
attributes:
  check_mode:
    support: full
    description: Reads the report and pushes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Push a report to MLflow
  results_push:
    report: "{{ lookup('scalebook_directory', 'work') }}/results/night1/report"
    tracker: mlflow
    target: https://mlflow.example.org
"""

RETURN = r"""
runs:
  description: The number of cases of the report that have results.
  returned: success
  type: int
pushed:
  description: The number of them that were pushed now.
  returned: success
  type: int
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook.store import push


def run(params: Mapping[str, Any], check: bool) -> dict[str, Any]:
    """Return the module's result."""
    return push.push(Path(params["report"]), params["tracker"], params["target"], not check)
