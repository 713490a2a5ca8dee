# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The logs of a run that has ended -> its record, result.json, and copies of the logs beside it."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook import hardware, throughput
from ansible.module_utils.scalebook.files import sync_path, write_json
from ansible.module_utils.scalebook.pages.wording import ENGLISH
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


def keep(params: Mapping[str, Any], write: bool) -> dict[str, Any]:
    """Write the record of a run; module bench_result describes its options and result."""
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
        "reason": None if record["reason"] is None else ENGLISH.tell(record["reason"]),
        "again": again,
        "lost": sorted(lost_nodes(params["job"]) if params["job"] else ()),
        "rate": throughput.measure(record)["rate"] if record["status"] == "ok" else None,
        "record": dict(record, nodes=short),
    }
