# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""tf2_bert over several GPUs: what the lines of NCCL show, and what a record says where NCCL fails."""

from pathlib import Path

import pytest
from ansible.module_utils.scalebook.launch.jobs import watch
from cases import case
from dlperf_logs import exit_record, log_text, stamped, step_times
from in_english import run_record
from node_logs import JOB
from role_files import declaration

LOGS = Path(__file__).resolve().parents[2] / "data/tf2_bert/edge"
HANGS, FAILS = (LOGS / name for name in ("11_nccl_hangs.log", "12_nccl_fails_w1.log"))
WORKLOAD = declaration("tf2_bert")
FIX = (
    "the NCCL of this TensorFlow does not work on these GPUs. Fix: stack_name=modern, another "
    "tf2_bert_python, or one GPU (nodes=1 gpus=1)"
)
# Of a run on two GPUs: a line of the first rank, and genuine ones (12_nccl_fails_w1.log).
NCCL = [
    "NCCL version 2.25.1+cuda12.8",
    *(line for line in FAILS.read_text().splitlines() if "coll channels" in line or "Init COMPLETE" in line),
]


def kept(tmp_path, *texts, exits=({},), job=JOB, **of_case):
    """Return the record of a run on GPUs with these logs, whose processes ended as `exits` say."""
    names = [f"NODE{index}" for index in range(1, len(texts) + 1)]
    for index, (name, text) in enumerate(zip(names, texts, strict=True)):
        said = exit_record(name, index, **exits[index % len(exits)])
        (tmp_path / f"{name}.log").write_text(stamped(text, exit_record=said, node=name))
    of = case(len(texts), device="gpu", model="base", bsz=64, **of_case)
    return run_record(tmp_path, of, 1, WORKLOAD, names, job)


def trained(*lines, **options):
    """Return the log of a run that trained, with further lines before its first."""
    text = log_text(step_times(0.5), **options)
    return "\n".join(lines) + "\n" + text


def test_the_genuine_hang_is_ended_after_a_minute():
    (text,) = watch(WORKLOAD, case(1, 2, device="gpu"), 0, stall=600, rendezvous=600)["silences"]
    seconds = watch(WORKLOAD, case(1, 2, device="gpu"), 0, stall=600, rendezvous=600)["silences"][text]
    assert seconds <= 60
    assert text in HANGS.read_text().splitlines()[-1]


def test_a_run_on_one_gpu_has_no_such_line():
    genuine = (LOGS.parent / "1n_mirrored.log").read_text()
    (text,) = (each.text for each in WORKLOAD.failures if each.hangs)
    assert text not in genuine


def test_the_genuine_hang_names_nccl_and_the_fix(tmp_path):
    reason = 'no output for 60 s after "all-reduces with algorithm = nccl"'
    hung = {"status": "hung", "rc": 0, "signal": 15, "reason": reason}
    record = kept(tmp_path, HANGS.read_text(), exits=[hung], gpus=2, job={**JOB, "rc": 1})
    assert record["status"] == "hung"
    assert record["reason"] == f"NODE1 (rank 0, host host1) hung: {reason}: {FIX}"


def test_the_genuine_failure_names_nccl_and_the_fix(tmp_path):
    failed = [{"status": "terminated", "rc": None, "signal": 15}, {"rc": 1}]
    record = kept(tmp_path, "", FAILS.read_text(), exits=failed, job={**JOB, "rc": 1})
    assert (record["status"], record["reason"]) == (
        "failed",
        'NODE2 (rank 1, host host2) ended with exit code 1: its log says "too many resources requested for '
        f'launch": {FIX}',
    )


def test_a_failure_of_another_kind_names_no_fix(tmp_path):
    record = kept(tmp_path, trained(), exits=[{"rc": 1}], job={**JOB, "rc": 1})
    assert record["reason"] == "NODE1 (rank 0, host host1) ended with exit code 1"


def test_what_nccl_says_of_itself_is_in_the_record(tmp_path):
    record = kept(tmp_path, trained(*NCCL, devices=2), gpus=2)
    assert (record["status"], record["reason"]) == ("ok", None)
    assert record["nodes"][0]["shown"] == {
        "devices": ["2"],
        "nccl_version": ["2.25.1+cuda12.8"],
        "nccl_ranks": ["2"],
        "nccl_channels": ["24"],
    }


@pytest.mark.parametrize("line", range(len(NCCL)))
def test_a_run_over_several_gpus_must_show_each_line_of_nccl(tmp_path, line):
    lines = [text for index, text in enumerate(NCCL) if index != line]
    record = kept(tmp_path, trained(*lines, devices=2), gpus=2)
    assert record["status"] == "refused"
    assert "NODE1.log does not show nccl_" in record["reason"]


def test_a_group_of_nccl_with_too_few_ranks_is_refused(tmp_path):
    record = kept(tmp_path, trained(*NCCL, devices=4), gpus=4)
    assert record["reason"] == "NODE1.log shows nccl_ranks 2, the case has devices 4"


@pytest.mark.parametrize(("gpus", "device"), [(1, "gpu"), (2, "cpu")])
def test_a_run_without_several_gpus_need_not_show_nccl(tmp_path, gpus, device):
    (tmp_path / "NODE1.log").write_text(
        stamped(trained(devices=gpus), exit_record=exit_record("NODE1", 0), node="NODE1")
    )
    record = run_record(tmp_path, case(1, gpus, device=device), 1, WORKLOAD, ["NODE1"], JOB)
    assert (record["status"], record["reason"]) == ("ok", None)


def test_nodes_whose_gradients_go_by_another_way_need_not_show_nccl(tmp_path):
    ring = "communication = CommunicationImplementation.RING"
    logs = [trained(ring, devices=2, nodes=2, task_index=index) for index in range(2)]
    record = kept(tmp_path, *logs)
    assert (record["status"], record["reason"]) == ("ok", None)
