# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Logs of a node as run_node writes them."""

from dlperf_logs import exit_record, log_text, stamped, step_times
from in_english import run_record

JOB = {
    "rc": 0,
    "seconds": 61.2,
    "started": "2026-11-21T01:02:03Z",
    "ended": "2026-11-21T01:03:04Z",
    "stderr": "",
}


def node_log(index=0, nodes=1, text=None, every=0.5, exits=None):
    """Return a node's log; its steps are 0.5 s apart by both clocks unless said otherwise."""
    text = text or log_text(step_times(0.5, warm=1), devices=nodes, nodes=nodes, task_index=index)
    exits = exits if exits is not None else {}
    said = None if exits is False else exit_record(f"NODE{index + 1}", index, **exits)
    return stamped(text, every=every, exit_record=said, node=f"NODE{index + 1}")


def kept_run(tmp_path, logs, case, workload, change=("", ""), named="{nodes}n_"):
    """Return the record of a run whose logs lie in `logs` as bench.yml kept them: `named`, then <node>.log.

    `change` replaces a text of the last node's log, which must have it, by another.
    """
    names = [f"NODE{index}" for index in range(1, case["nodes"] + 1)]
    for name in names:
        text = (logs / f"{named.format_map(case)}{name}.log").read_text()
        if name == names[-1]:
            assert change[0] in text
            text = text.replace(*change)
        (tmp_path / f"{name}.log").write_text(text)
    return run_record(tmp_path, case, 1, workload, names, JOB)
