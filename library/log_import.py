#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: log_import
short_description: Turn existing logs into result records
description:
  - Reads logs as DLPerf lays them out, C(<N>n<G>g/<model>_b<B>_<dtype>_<i>.log), from O(logs) and writes
    the records that a campaign writes below O(out).
  - A log that cannot be used never fails the task. It gets a record whose status and reason say why.
  - Each record is written completely, by a rename. Runs on the control node.
options:
  logs:
    description:
      - Directory of the logs, or an archive, C(.zip), C(.tar), C(.tar.gz), C(.tgz), C(.tar.xz), C(.txz).
      - The directories of cases may lie in others, and logs may be packed as C(.log.gz).
    type: path
    required: true
  out:
    description: Directory for the records. Must be empty or hold an earlier import.
    type: path
    required: true
  name:
    description: Name of the workload that wrote the logs.
    type: str
    required: true
  workload:
    description: The declaration of that workload.
    type: dict
    required: true
  workloads:
    description:
      - The declarations of all workloads, by name.
      - For a log that is not of O(workload), the reason then says which of them reads it.
    type: dict
    default: {}
  overrides:
    description:
      - What the names of the logs do not say.
      - Any of C(xla), C(accumulation), C(warmup), C(window), C(device).
    type: dict
    default: {}
  checksums:
    description:
      - Compute the sha256 of logs of more than 4 MiB too, which reads them completely.
      - Logs of the same size always get one, since the report counts logs with the same content once.
    type: bool
    default: false
  report_language:
    description: Language of what the terminal shows.
    type: str
    choices: [en, zh]
    default: en
attributes:
  check_mode:
    support: full
    description: Reads and checks everything, writes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Import DLPerf's logs
  log_import:
    logs: logs/tensorflow/bert/bz64
    out: results/bz64
    name: tf2_bert
    workload: "{{ lookup('scalebook_workloads').tf2_bert }}"
    workloads: "{{ lookup('scalebook_workloads') }}"
    overrides: {xla: false}
"""

RETURN = r"""
counts:
  description: The number of logs by status.
  returned: success
  type: dict
  sample: {ok: 29, incomplete: 1}
refused:
  description: The logs that do not count, each with source, status and reason.
  returned: success
  type: list
  elements: dict
unread:
  description: Files in O(logs) that are not the log of a case, each with path and reason.
  returned: success
  type: list
  elements: dict
display:
  description: How many logs are valid, then a line for each log that does not count, with the reason.
  returned: success
  type: str
out:
  description: The directory of the records.
  returned: success
  type: str
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.scalebook.control import log_import


def run(params: Mapping[str, Any], check: bool) -> dict[str, Any]:
    """Return the module's result."""
    return log_import.import_logs(params, not check)
