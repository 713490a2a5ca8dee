# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Records whose telemetry is read from recordings of real runs; see tests/data/README.md."""

from __future__ import annotations

from pathlib import Path

from report_records import case, record

FOLDER = Path(__file__).resolve().parents[1] / "data" / "telemetry"


def recorded(name):
    """Return the telemetry of all nodes of a recording; the marks of its readings are the window's ends."""
    from ansible.module_utils.scalebook.read import telemetry

    nodes = []
    for path in sorted((FOLDER / name).glob("*.telemetry.csv.xz")):
        readings = telemetry.read_file(path)
        window = tuple(readings.at[readings.marks.index(mark)] for mark in ("first", "last"))
        nodes.append((path.name.partition(".")[0], {"telemetry": {"reason": None}}, window))
    return telemetry.of_run(FOLDER / name, nodes)


def torch_bert(bsz, repeat=1):
    """Return the record of torch_bert on an H200; its rate is that of 300 steps in the recorded window."""
    telemetry = recorded(f"h200_torch_bert_b{bsz}")
    of = case(workload="torch_bert", dtype="bf16", bsz=bsz, window=300, global_batch=bsz)
    return record(of, repeat, 300 * bsz / telemetry[0]["seconds"], telemetry=telemetry)


def made_on_processors(name, nodes=1):
    """Return the record of a situation that tests/bench/bottlenecks made, on so many nodes."""
    telemetry = recorded(f"cpu_made_{name}/{nodes}n")
    of = case(nodes, 1, workload="made", model="script", device="cpu", warmup=5, window=60)
    return record(of, 1, 60 * of["global_batch"] / telemetry[0]["seconds"], telemetry=telemetry)


def containers(repeat=1):
    """Return the record of tf2_bert on two containers of one machine with two processors."""
    telemetry = recorded("containers_tf2_bert")
    of = case(2, 1, device="cpu", model="tiny", bsz=8, global_batch=16)
    return record(of, repeat, 100 * 16 / telemetry[0]["seconds"], telemetry=telemetry)
