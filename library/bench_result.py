#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: bench_result
short_description: Turn the logs of a run into its result record
description:
  - Reads the node logs in O(run_dir) and writes C(exit.json) and C(result.json) beside them.
  - A log that cannot be trusted never fails the task. The status and the reason of the record say so.
  - The software of the nodes and the commit of scalebook come from C(provenance.json) of the campaign, where
    it exists.
  - Records are written atomically, by a rename. Runs on the control node.
options:
  run_dir:
    description: Directory of one run, holding C(<node>.log) for each of O(nodes).
    type: path
    required: true
  case:
    description: The case that was run, as the plan has it.
    type: dict
    required: true
  repeat:
    description: Which repeat of the case this run is, from 1.
    type: int
    default: 1
  nodes:
    description: Names of the nodes that took part, in task_index order.
    type: list
    elements: str
    required: true
  job:
    description:
      - What became of mpirun, with the keys C(rc), C(seconds), C(started), C(ended) and C(stderr).
    type: dict
  planned:
    description: Whether the run is one of a campaign, whose C(plan.json) must still be there.
    type: bool
    default: false
  skipped:
    description: Why the run is not made at all. Its record says so; no log is read.
    type: str
    default: ""
  local_logs:
    description:
      - Where the logs of the nodes lie that are this machine. They and the telemetry beside them are copied
        to O(run_dir).
    type: dict
    default: {}
  unfetched:
    description: Hosts whose logs could not be written to O(run_dir). Then there is no record.
    type: list
    elements: str
    default: []
  notes:
    description: Sentences for the record's notes.
    type: list
    elements: str
    default: []
  network:
    description:
      - Whether a run counts for which NCCL used sockets where InfiniBand or RoCE is up. With C(any) it does.
    type: str
    choices: [fastest, any]
    default: any
  again:
    description:
      - Whether the run can be made once more. If its nodes lost each other, which says nothing about
        the case, what it left is set aside below C(failed) and RV(again) is true.
    type: bool
    default: false
  hardware:
    description: What the nodes are made of, one entry for each kind of node, for the record.
    type: list
    elements: dict
    default: []
  machines:
    description: The identities of the nodes' machines by node, for the record.
    type: dict
    default: {}
  command:
    description:
      - The command that measures the campaign again, for the record; by default that of C(plan.json), which
        another process may have written since.
    type: str
    default: ""
  workload:
    description: The workload's declaration, its settings resolved.
    type: dict
    required: true
attributes:
  check_mode:
    support: full
    description: Reads and judges everything, writes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Read what the run left
  bench_result:
    run_dir: "{{ run_dir }}"
    case: "{{ case }}"
    repeat: 1
    nodes: [NODE1, NODE2]
    job: {rc: 0, seconds: 24.1, started: "2026-11-21T01:02:03Z", ended: "2026-11-21T01:02:27Z", stderr: ""}
    workload: "{{ lookup('scalebook_workloads').tf2_bert }}"
"""

RETURN = r"""
status:
  description: One of ok, incomplete, failed, hung, oom, refused, skipped.
  returned: success
  type: str
  sample: ok
reason:
  description: Why the run does not count, naming file or host.
  returned: success
  type: str
  sample: NODE1.log stops at step 60, step 120 is required
again:
  description: Whether the run is to be made once more.
  returned: success
  type: bool
lost:
  description: The hosts that no longer answered when the job had ended, or that Slurm has lost.
  returned: success
  type: list
  elements: str
rate:
  description: Samples per second of all devices over the window, null when the run does not count.
  returned: success
  type: float
  sample: 112.99
record:
  description: The record as written, without the lists of steps.
  returned: success
  type: dict
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.scalebook.control import finished_run


def run(params: Mapping[str, Any], check: bool) -> dict[str, Any]:
    """Return the module's result."""
    return finished_run.keep(params, not check)
