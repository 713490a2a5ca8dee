# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Records whose telemetry is read from recordings of real runs; see tests/data/README.md."""

from __future__ import annotations

from pathlib import Path

from report_records import case, record

FOLDER = Path(__file__).resolve().parents[1] / "data" / "telemetry"


def recorded(name):
    """Return the telemetry of all nodes of a recording; the marks of its readings are the window's ends.

    A node without marks logged no steps, and has the window of the first node.
    """
    from ansible.module_utils.scalebook.read import telemetry

    nodes = []
    for path in sorted((FOLDER / name).glob("*.telemetry.csv.xz")):
        readings = telemetry.read_file(path)
        ends = [at for at, mark in zip(readings.at, readings.marks, strict=True) if mark]
        window = tuple(ends) if ends else None
        nodes.append((path.name.partition(".")[0], {"telemetry": {"reason": None}}, window))
    return telemetry.of_run(FOLDER / name, nodes)


def torch_bert(bsz, repeat=1):
    """Return the record of torch_bert on an H200; its rate is that of 300 steps in the recorded window."""
    telemetry = recorded(f"h200_torch_bert_b{bsz}")
    of = case(workload="torch_bert", dtype="bf16", bsz=bsz, window=300, global_batch=bsz)
    return record(of, repeat, 300 * bsz / telemetry[0]["seconds"], telemetry=telemetry)


def made_on_processors(name, nodes=1):
    """Return the record of a situation that tests/bench/bottlenecks made, on so many nodes."""
    return _on_processors(
        f"cpu_made_{name}/{nodes}n", case(nodes, 1, workload="made", device="cpu", window=60)
    )


def limited_link(nodes):
    """Return the record of torch_bert on so many containers, joined by a link of 5 Mbit/s."""
    of = case(nodes, 1, workload="torch_bert", model="tiny", device="cpu", window=30)
    return _on_processors(f"containers_torch_bert_link/{nodes}n", of)


def _on_processors(name, of):
    telemetry = recorded(name)
    return record(of, 1, of["window"] * of["global_batch"] / telemetry[0]["seconds"], telemetry=telemetry)


def containers(repeat=1):
    """Return the record of tf2_bert on two containers of one machine with two processors."""
    telemetry = recorded("containers_tf2_bert")
    of = case(2, 1, device="cpu", model="tiny", bsz=8, global_batch=16)
    return record(of, repeat, 100 * 16 / telemetry[0]["seconds"], telemetry=telemetry)
