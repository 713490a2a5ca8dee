#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Files of a campaign -> whether they are what was reported; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: results_verify
short_description: Compare the files of a campaign, or of micro-benchmarks, with their manifest and logs
description:
  - Compares the files below O(path) with C(manifest.json), which the first report wrote there.
  - Reads the logs of each run that counts again, and compares what they show with its record.
  - Says who signed an archive, and fails where its signature does not hold.
  - Writes nothing. Files that differ do not fail the task; they are in RV(problems).
  - Runs on the control node.
options:
  path:
    description:
      - Directory of one campaign or import, which contains C(runs) or C(runs.tar.xz), or such an archive, or
        of micro-benchmarks, which contains C(microbench.json).
      - Or what would be that directory if the C(runs.tar.xz) beside it, of several campaigns, were unpacked.
    type: path
    required: true
  workloads:
    description: The declarations of the workloads by name, C(lookup('scalebook_workloads')).
    type: dict
    default: {}
  allowed_signers:
    description:
      - A file of keys that may sign, as the manual of C(ssh-keygen) says. An archive that none of them
        signed is refused.
    type: path
  report_language:
    description: Language of what the terminal shows.
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
- name: Verify the files of a campaign
  results_verify:
    path: "{{ lookup('scalebook_directory', 'work') }}/docs/results/h200x4-2026-11-21/scaling"
"""

RETURN = r"""
problems:
  description:
    - The files that differ, each with C(file), C(what), C(run) and C(row). C(what) is changed, missing,
      added, or recomputed for a record that differs from its logs.
  returned: success
  type: list
  elements: dict
display:
  description: A sentence for each of them, or that all files are what was reported; who signed an archive.
  returned: success
  type: str
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.scalebook.control import verification


def run(params: Mapping[str, Any], check: bool) -> dict[str, Any]:
    """Return the module's result."""
    del check  # it writes nothing
    return verification.verify(params)
