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

import contextlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook import hardware, throughput
from ansible.module_utils.scalebook.files import sync_path, write_json
from ansible.module_utils.scalebook.pages.catalogue import sentence
from ansible.module_utils.scalebook.plan.resume import set_aside
from ansible.module_utils.scalebook.read import nccl
from ansible.module_utils.scalebook.read.origin import origin
from ansible.module_utils.scalebook.read.record import run_record, skip_record
from ansible.module_utils.scalebook.read.telemetry import names_of
from ansible.module_utils.scalebook.read.verdict import lost_contact, lost_nodes
from ansible.module_utils.scalebook.workload import Workload

STEP_LISTS = ("steps", "times", "received", "rates")


def keep_logs(run_dir: Path, logs: Mapping[str, str]) -> None:
    """Copy the files `logs` (node -> path) to `run_dir`, and what else is kept of a run and lies beside them.

    The record names the node whose log, or telemetry, is missing.
    """
    for node, path in logs.items():
        if Path(path).exists():
            run_dir.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, run_dir / f"{node}.log")
        for name in (*names_of(node), nccl.file_of(node)):
            with contextlib.suppress(OSError):  # mostly it is not there
                shutil.copyfile(Path(path).with_name(name), run_dir / name)


def check_place(campaign: Path) -> None:
    """Raise OSError where the directory of a campaign is not the one that it was planned in."""
    if not (campaign / "plan.json").exists():
        raise OSError(
            f"{campaign / 'plan.json'} is not there any more: the directory of the campaign was moved, "
            "removed or unmounted while it was measured. Put it back; the same command resumes"
        )


def sync_logs(run_dir: Path) -> None:
    """Wait until the logs of a run, and the directories down to it, are on the disk.

    Otherwise its record could outlive them when the power fails.
    """
    for path in run_dir.iterdir() if run_dir.is_dir() else ():
        if path.is_file():
            sync_path(path)
    for directory in (run_dir, *list(run_dir.parents)[:3]):
        sync_path(directory)


def run(params: Mapping[str, Any], check: bool) -> dict[str, Any]:
    """Return the module's result for the logs of one run."""
    write = not check
    run_dir = Path(params["run_dir"])
    case, repeat, workload = params["case"], params["repeat"], Workload.from_data(params["workload"])
    if params["unfetched"]:
        raise OSError(f"the logs of {', '.join(params['unfetched'])} cannot be kept in {run_dir}: see above")
    if params["planned"]:
        check_place(run_dir.parents[2])
    if write and not params["skipped"]:
        keep_logs(run_dir, params["local_logs"])
    if params["skipped"]:
        record = skip_record(case, repeat, workload, params["skipped"])
    else:
        record = run_record(run_dir, case, repeat, workload, params["nodes"], params["job"], params["notes"])
    record["hardware"] = hardware.of_nodes(params["hardware"], params["nodes"])
    if params["network"] == "fastest" and record["status"] == "ok":
        nccl.refuse_sockets(record)
    if params["machines"]:
        record["machines"] = {node: params["machines"][node] for node in params["nodes"]}
    record.update(origin(run_dir.parents[2], case["workload"], params["nodes"], params["command"]))
    again = params["again"] and record["status"] == "failed" and lost_contact(params["job"])
    if write:
        sync_logs(run_dir)
    exits = {"job": params["job"], "nodes": {node["node"]: node["exit"] for node in record["nodes"]}}
    changed = write_json(run_dir / "exit.json", exits, write, sync=True)
    changed |= write_json(run_dir / "result.json", record, write, sync=True)
    if again and write:
        set_aside(run_dir.parents[2], case["name"], repeat)
    short = [{key: value for key, value in node.items() if key not in STEP_LISTS} for node in record["nodes"]]
    return {
        "changed": changed,
        "status": record["status"],
        "reason": None if record["reason"] is None else sentence(record["reason"]),
        "again": again,
        "lost": sorted(lost_nodes(params["job"]) if params["job"] else ()),
        "rate": throughput.measure(record)["rate"] if record["status"] == "ok" else None,
        "record": dict(record, nodes=short),
    }
