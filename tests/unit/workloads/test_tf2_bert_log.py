# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""tf2_bert: what a genuine log must show of batch, precision and weights for its run to count."""

from pathlib import Path

import pytest
from cases import case
from in_english import run_record
from node_logs import JOB, kept_run
from role_files import declaration

LOGS = Path(__file__).resolve().parents[2] / "data/tf2_bert"
WORKLOAD = declaration("tf2_bert")


def kept(tmp_path, nodes=2, change=("", ""), **other):
    """Return the record of a run that bench.yml kept, with a text of the last node's log changed."""
    of = {"device": "cpu", "model": "tiny", "bsz": 16, "warmup": 5, "window": 15, "xla": False, **other}
    return kept_run(tmp_path, LOGS, case(nodes, **of), WORKLOAD, change)


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_run_with_the_batch_the_dtype_and_equal_weights_counts(tmp_path, nodes):
    read = kept(tmp_path, nodes)
    assert (read["status"], read["reason"]) == ("ok", None)
    shown = {(node["shown"]["graph_batch"][0], node["shown"]["graph_dtype"][0]) for node in read["nodes"]}
    assert shown == {(str(16 * nodes), "float32")}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ((" global_batch=32 ", " global_batch=16 "), "shows graph_batch 16"),
        ((" global_batch=32 ", " global_batch=unknown "), "shows graph_batch unknown"),
        ((" dtype=float32 ", " dtype=float16 "), "shows graph_dtype float16"),
        ((" dtype=float32 ", " dtype=float32,float16 "), "shows graph_dtype float32,float16"),
        ((" xla=false", " xla=true"), "shows graph_xla true"),
        ((" compared=1", " compared=2"), "shows replicas 2"),
        (("weights=6c382481", "weights=6c382480"), "weights 6c382480"),
        (("TENSORFLOW replicas=", "TENSORFLOW "), "TENSORFLOW replicas="),
        (("TENSORFLOW weights=", "TENSORFLOW "), "TENSORFLOW weights="),
    ],
)
def test_a_run_that_does_not_show_its_case_on_each_node_is_refused(tmp_path, change, reason):
    read = kept(tmp_path, change=change)
    assert (read["status"], reason in read["reason"]) == ("refused", True), read["reason"]


def test_a_run_in_mixed_precision_shows_fp16(tmp_path):
    log = (LOGS / "1n_NODE1_fp16.log").read_text()
    (tmp_path / "NODE1.log").write_text(log)
    of = case(1, device="cpu", model="tiny", bsz=1, warmup=2, window=6, dtype="fp16", xla=False)
    read = run_record(tmp_path, of, 1, WORKLOAD, ["NODE1"], JOB)
    assert (read["status"], read["nodes"][0]["shown"]["graph_dtype"]) == ("ok", ["float16"])


def test_a_run_of_before_the_trainer_showed_them_counts(tmp_path):
    """A log of an earlier version has no line of tensorflow_run.py but that of the GPUs."""
    lines = (LOGS / "1n_NODE1.log").read_text().splitlines(keepends=True)
    (tmp_path / "NODE1.log").write_text("".join(line for line in lines if " TENSORFLOW " not in line))
    of = case(1, device="cpu", model="tiny", bsz=16, warmup=5, window=15, xla=False)
    assert run_record(tmp_path, of, 1, WORKLOAD, ["NODE1"], JOB)["status"] == "ok"
