#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The records of a campaign so far -> a file for node_exporter; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: metrics_export
short_description: Write the metrics of a campaign to where node_exporter collects text files
description:
  - Writes C(scalebook_<campaign>.prom) to O(directory), with what C(metrics.prom) of the report would hold if
    the campaign ended now. The file is replaced by a rename, so that no collector reads half of it.
  - Runs count without it. What keeps it from being written is a warning, never a failure.
  - Runs on the control node.
options:
  path:
    description: Directory of one campaign.
    type: path
    required: true
  directory:
    description: Directory that C(--collector.textfile.directory) of node_exporter names.
    type: path
    required: true
  min_utilisation:
    description: The mean utilisation in per cent that resources are judged by.
    type: float
    default: 80
attributes:
  check_mode:
    support: full
    description: Computes everything and writes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Export the metrics of a campaign
  metrics_export:
    path: "{{ lookup('scalebook_directory', 'work') }}/results/night1"
    directory: /var/lib/prometheus/node-exporter
"""

RETURN = r"""
file:
  description: Path of the file, null when it could not be written.
  returned: success
  type: str
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook.store import openmetrics


def run(params: Mapping[str, Any], check: bool) -> dict[str, Any]:
    """Return the module's result."""
    return openmetrics.export(Path(params["path"]), params["directory"], params["min_utilisation"], not check)
