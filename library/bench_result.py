#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

DOCUMENTATION = r"""
module: bench_result
short_description: Turn the logs of a run, or a tree of logs, into result records
description:
  - Reads the node logs in O(run_dir) and writes C(exit.json) and C(result.json) beside them.
  - Or reads a tree of logs as DLPerf lays them out, C(<N>n<G>g/<model>_b<B>_<dtype>_<i>.log), from O(logs)
    and writes the same records below O(out).
  - A log that cannot be believed never fails the task. It gets a record whose status and reason say so.
  - Records are written whole, by a rename. Runs on the controller.
options:
  run_dir:
    description: Directory of one run, holding C(<node>.log) for each of O(nodes).
    type: path
  case:
    description: The case that was run, as the plan has it.
    type: dict
  repeat:
    description: Which repeat of the case this run is, from 1.
    type: int
    default: 1
  nodes:
    description: Names of the nodes that took part, in task_index order.
    type: list
    elements: str
  gang:
    description:
      - What became of mpirun, with the keys C(rc), C(seconds), C(started), C(ended) and C(stderr).
    type: dict
  skipped:
    description: Why the run is not made at all. Its record says so; no log is read.
    type: str
    default: ""
  local_logs:
    description: Where the logs of the nodes lie that are this machine; they are copied to O(run_dir).
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
  again:
    description:
      - Whether the run can be made once more. If its nodes lost each other, which says nothing about
        the case, what it left is set aside below C(failed) and RV(again) is true.
    type: bool
    default: false
  workload:
    description: The workload's declaration, C(<framework>_workload) of its role.
    type: dict
    required: true
  logs:
    description: Directory of a tree of logs.
    type: path
  out:
    description: Where the records of O(logs) go. Must be empty or hold an earlier import.
    type: path
  framework:
    description: Name of the workload that wrote the logs in O(logs).
    type: str
  overrides:
    description:
      - What the names in O(logs) do not tell.
      - Any of C(xla), C(accumulation), C(warmup), C(window), C(device).
    type: dict
    default: {}
  checksums:
    description: Take the sha256 of imported logs of more than 4 MiB too, which reads them whole.
    type: bool
    default: false
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
    gang: {rc: 0, seconds: 24.1, started: "2026-11-21T01:02:03Z", ended: "2026-11-21T01:02:27Z", stderr: ""}
    workload: "{{ tf2_bert_workload }}"

- name: Import DLPerf's logs
  bench_result:
    logs: logs/tensorflow/bert/bz64
    out: results/bz64
    framework: tf2_bert
    workload: "{{ tf2_bert_workload }}"
    overrides: {xla: false}
"""

RETURN = r"""
status:
  description: One of ok, incomplete, failed, hung, oom, refused, skipped.
  returned: with run_dir
  type: str
  sample: ok
reason:
  description: Why the run does not count, naming file or host.
  returned: with run_dir
  type: str
  sample: NODE1.log stops at step 60, step 120 is wanted
again:
  description: Whether the run is to be made once more.
  returned: with run_dir
  type: bool
lost:
  description: The hosts that no longer answered when the gang had ended.
  returned: with run_dir
  type: list
  elements: str
rate:
  description: Samples per second of all devices over the window, null when the run does not count.
  returned: with run_dir
  type: float
  sample: 112.99
record:
  description: The record as written, without the lists of steps.
  returned: with run_dir
  type: dict
counts:
  description: How many logs of the tree have which status.
  returned: with logs
  type: dict
  sample: {ok: 29, incomplete: 1}
refused:
  description: The logs that do not count, each with source, status and reason.
  returned: with logs
  type: list
  elements: dict
unread:
  description: What lies in the tree and is no log of a case, each with path and reason.
  returned: with logs
  type: list
  elements: dict
out:
  description: The directory of the records.
  returned: with logs
  type: str
"""

import shutil
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.scalebook import throughput
from ansible.module_utils.scalebook.attempts import set_aside
from ansible.module_utils.scalebook.ending import lost_contact
from ansible.module_utils.scalebook.files import write_json
from ansible.module_utils.scalebook.record import run_record, skip_record
from ansible.module_utils.scalebook.tree import import_tree

STEP_LISTS = ("steps", "times", "received", "rates")


def argument_spec():
    return {
        "run_dir": {"type": "path"},
        "case": {"type": "dict"},
        "repeat": {"type": "int", "default": 1},
        "nodes": {"type": "list", "elements": "str"},
        "gang": {"type": "dict"},
        "skipped": {"type": "str", "default": ""},
        "local_logs": {"type": "dict", "default": {}},
        "unfetched": {"type": "list", "elements": "str", "default": []},
        "notes": {"type": "list", "elements": "str", "default": []},
        "again": {"type": "bool", "default": False},
        "workload": {"type": "dict", "required": True},
        "logs": {"type": "path"},
        "out": {"type": "path"},
        "framework": {"type": "str"},
        "overrides": {"type": "dict", "default": {}},
        "checksums": {"type": "bool", "default": False},
    }


def keep_logs(run_dir, logs):
    """Copy the files `logs` (node -> path) to `run_dir`; the record names the node whose log is missing."""
    for node, path in logs.items():
        if Path(path).exists():
            run_dir.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, run_dir / f"{node}.log")


def read_run(params, write):
    """Return the module's result for the logs of one run."""
    run_dir = Path(params["run_dir"])
    case, repeat = params["case"], params["repeat"]
    if params["unfetched"]:
        raise OSError(f"the logs of {', '.join(params['unfetched'])} cannot be kept in {run_dir}: see above")
    if write and not params["skipped"]:
        keep_logs(run_dir, params["local_logs"])
    if params["skipped"]:
        record = skip_record(case, repeat, params["workload"], params["skipped"])
    else:
        record = run_record(
            run_dir, case, repeat, params["workload"], params["nodes"], params["gang"], params["notes"]
        )
    again = params["again"] and record["status"] == "failed" and lost_contact(params["gang"])
    exits = {"gang": params["gang"], "nodes": {node["node"]: node["exit"] for node in record["nodes"]}}
    changed = write_json(run_dir / "exit.json", exits, write, sync=True)
    changed |= write_json(run_dir / "result.json", record, write, sync=True)
    if again and write:
        set_aside(run_dir.parents[2], case["name"], repeat)
    short = [{key: value for key, value in node.items() if key not in STEP_LISTS} for node in record["nodes"]]
    return {
        "changed": changed,
        "status": record["status"],
        "reason": record["reason"],
        "again": again,
        "lost": sorted((params["gang"] or {}).get("lost") or {}),
        "rate": throughput.measure(record)["rate"] if record["status"] == "ok" else None,
        "record": dict(record, nodes=short),
    }


def read_tree(params, write):
    """Return the module's result for a tree of logs."""
    result = import_tree(
        params["logs"],
        params["out"],
        params["framework"],
        params["workload"],
        params["overrides"],
        params["checksums"],
        write,
    )
    return dict(result, out=params["out"])


def main():
    module = AnsibleModule(
        argument_spec=argument_spec(),
        required_one_of=[("run_dir", "logs")],
        mutually_exclusive=[("run_dir", "logs")],
        required_by={"run_dir": ("case", "nodes"), "logs": ("out", "framework")},
        supports_check_mode=True,
    )
    read = read_run if module.params["run_dir"] else read_tree
    try:
        result = read(module.params, write=not module.check_mode)
    except (ValueError, OSError) as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
