# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Why a run failed: the first cause that its logs or mpirun tell, not the last line, and no healthy node.

The lines are those of programs' sources and of public bug reports, with other names, hosts and paths.
"""

import io
import json
from pathlib import Path

import pytest
from ansible.module_utils.scalebook.failure_causes import CAUSES, SIGNALS, Cause
from ansible.module_utils.scalebook.failure_search import first_cause
from ansible.module_utils.scalebook.launch.outcome import job_end
from ansible.module_utils.scalebook.pages.messages_en import MESSAGES as ENGLISH
from ansible.module_utils.scalebook.read.blocks import Blocks
from ansible.module_utils.scalebook.read.verdict import lost_contact, lost_nodes
from cases import case
from dlperf_logs import exit_record, stamped
from in_english import run_record
from node_logs import JOB
from role_files import declaration

DATA = Path(__file__).resolve().parents[2] / "data" / "failures"
TORCH = declaration("torch_bert")
VICTIM = {"status": "terminated", "rc": None, "signal": 15}


def run(tmp_path, logs, job=None, wall=1795219345.0):
    """Return the verdict on a run: `logs` are (text, closing line) of its nodes, None where there is none."""
    names = [f"NODE{index}" for index in range(1, len(logs) + 1)]
    for index, (name, log) in enumerate(zip(names, logs, strict=True)):
        if log:
            said = exit_record(name, index, **log[1]) if log[1] is not None else None
            text = stamped(
                log[0], wall=wall + 10 * (log[1] or {}).pop("after", 0), every=0.5, exit_record=said
            )
            (tmp_path / f"{name}.log").write_text(text)
    record = run_record(tmp_path, case(len(logs)), 1, TORCH, names, job or {**JOB, "rc": 1})
    return record["status"], record["reason"]


def kept(tmp_path, name):
    """Return the verdict on a run of tests/data/failures."""
    folder = DATA / name
    texts = sorted(folder.glob("NODE*.txt"))
    logs = [(text.read_text(), json.loads(text.with_suffix(".json").read_text())) for text in texts]
    job = folder / "job.json"
    said = json.loads(job.read_text()) if job.exists() else {"rc": 1}
    return run(tmp_path, logs or [None, None], {**JOB, **said})


KEPT = {
    "oom-torch-cuda-error": ("oom", "CUDA error: out of memory"),
    "oom-cublas-alloc": ("oom", "CUBLAS_STATUS_ALLOC_FAILED"),
    "oom-torch-host": ("oom", "can't allocate memory"),
    "oom-dataloader-killed": ("oom", "killed by signal: Killed"),
    "mpirun-slots": ("failed", "there are not enough slots"),
    "mpirun-daemons": ("failed", "the daemon of Open MPI (orted or prted) is not found"),
    "mpirun-pmix": ("failed", "different versions of Open MPI or PMIx"),
    "mpirun-prrte5": ("failed", "mpirun lost contact with n2"),
    "nccl-addr_in_use": ("failed", "another program listens on the port of the run (address in use)"),
    "nccl-fabric802": ("failed", "the fabric manager does not run"),
}


@pytest.mark.parametrize("name", KEPT)
def test_a_run_that_failed_names_the_cause(tmp_path, name):
    status, reason = kept(tmp_path, name)
    assert (status, KEPT[name][1] in reason) == (KEPT[name][0], True), reason


@pytest.mark.parametrize("name", [name for name, (status, _) in KEPT.items() if status == "failed"])
def test_the_reason_has_a_fix_and_no_rule_of_mpiruns_text(tmp_path, name):
    _, reason = kept(tmp_path, name)
    assert "Fix: " in reason or "lost contact" in reason
    assert "----" not in reason


LINES = [
    line.split("\t", 1)
    for line in (DATA / "lines.tsv").read_text().splitlines()
    if line and not line.startswith("#")
]


@pytest.mark.parametrize(("cause", "line"), LINES, ids=[line[:60] for _, line in LINES])
def test_a_line_tells_its_cause_or_none(cause, line):
    hit = first_cause([b"before\n" + line.encode() + b"\nafter\n"])
    assert (hit.cause.name if hit else "-") == cause


GOOD = sorted(DATA.parent.glob("*/[12]n*.log"))


@pytest.mark.parametrize("log", GOOD, ids=[f"{log.parent.name}/{log.stem}" for log in GOOD])
def test_the_log_of_a_run_that_went_well_tells_no_cause(log):
    assert first_cause([log.read_bytes()]) is None


def test_the_pool_of_tensorflow_is_no_cause_where_an_exception_of_another_kind_follows():
    pool = next(line for cause, line in LINES if cause == "gpu-memory-pool")
    text = f"{pool}\nTraceback (most recent call last):\nValueError: the batch is empty\n"
    assert first_cause([text.encode()]).text == "ValueError: the batch is empty"


def test_an_exception_of_no_known_cause_is_quoted(tmp_path):
    text = "Traceback (most recent call last):\n[rank1]: ValueError: the batch is empty\n" + PEER
    status, reason = run(tmp_path, [(text, {"rc": 1})])
    assert (status, reason.partition(": ")[2]) == (
        "failed",
        'its log says "[rank1]: ValueError: the batch is empty"',
    )


def test_a_node_that_failed_for_no_known_cause_comes_before_one_that_lost_it(tmp_path):
    _, reason = run(tmp_path, [(PEER, {"rc": 1, "ended": 100.0}), ("oops\n", {"rc": 1, "ended": 101.0})])
    assert reason == "NODE2 (rank 1, host host2) ended with exit code 1"


def test_the_line_of_cuda_is_nearer_the_cause_than_the_error_of_nccl_before_it():
    text = b"RuntimeError: NCCL error: unhandled cuda error\nLast error:\nCuda failure 'out of memory'\n"
    assert first_cause([text]).cause.name == "gpu-memory"


def test_a_cause_is_found_wherever_it_is_said():
    log = b"x" * 100_000 + b"\nOOM when allocating tensor\n" + b"Chunk at\n" * 50_000
    assert first_cause(Blocks(io.BytesIO(log))).text == "OOM when allocating"


def test_a_text_of_the_workload_comes_before_those_of_all():
    own = Cause("own", ("launch failed",), "WHY")
    assert first_cause([b"launch failed: CUDA out of memory\n"], [own]).cause is own


@pytest.mark.parametrize(("steps", "counts"), [(2, True), (20, False)])
def test_a_cause_after_which_the_training_went_on_is_none(steps, counts):
    text = b"OOM when allocating tensor\n" + b"step=1\n" * steps + b"the end\n"
    assert (first_cause([text], step=b"step=") is not None) == counts


def test_a_cause_after_the_steps_counts_whatever_was_before():
    text = b"OOM when allocating tensor\n" + b"step=1\n" * 20 + b"OSError: Address already in use\n"
    assert first_cause([text], step=b"step=").cause.name == "address-in-use"


def test_causes_in_different_blocks_keep_their_order():
    assert first_cause([b"Address already in use\n", b"CUDA out of memory\n"]).cause.name == "address-in-use"


MEMORY = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
TIME_OUT = "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)\n"
PEER = "RuntimeError: [gloo/transport/tcp/pair.cc:5] Connection closed by peer [10.0.0.3]:4\n"


@pytest.mark.parametrize("first", [TIME_OUT, PEER, "OSError: [Errno 28] No space left on device\n"])
def test_words_of_memory_after_another_first_cause_are_not_out_of_memory(tmp_path, first):
    status, _ = run(tmp_path, [(first + MEMORY, {"rc": 1})])
    assert status == "failed"


def test_memory_before_what_it_did_to_others_is_out_of_memory(tmp_path):
    assert run(tmp_path, [(MEMORY + PEER, {"rc": 1})])[0] == "oom"


def test_the_first_cause_of_all_nodes_counts(tmp_path):
    use = ("OSError: [Errno 98] Address already in use\n", {"rc": 1, "after": 0})
    status, reason = run(tmp_path, [(MEMORY, {"rc": 1, "after": 1}), use])
    assert (status, reason.startswith("NODE2 (rank 1, host host2) ended with exit code 1")) == (
        "failed",
        True,
    )


def test_a_node_that_lost_its_peer_first_is_not_the_one_that_ran_out_of_memory(tmp_path):
    status, reason = run(tmp_path, [(PEER, {"rc": 1}), (MEMORY, {"rc": 1, "after": 1})])
    assert (status, reason.startswith("NODE2 (rank 1, host host2) ran out of memory")) == ("oom", True)


@pytest.mark.parametrize("own", ["ModuleNotFoundError: No module named 'x'\n", "ValueError: a flag\n"])
def test_a_node_that_waited_for_its_peer_is_not_to_blame_for_the_peers_exception(tmp_path, own):
    _, reason = run(tmp_path, [(TIME_OUT, {"rc": 1}), (own, {"rc": 1, "after": 1})])
    assert reason.startswith("NODE2 (rank 1, host host2) ended with exit code 1")


def test_an_abort_after_a_time_out_is_no_cause_of_its_own(tmp_path):
    aborted = {"rc": 0, "status": "signaled", "signal": 6}
    status, reason = run(tmp_path, [(TIME_OUT, aborted), (MEMORY, {"rc": 1, "after": 1})])
    assert (status, reason[:5]) == ("oom", "NODE2")


def test_a_node_that_was_ended_with_the_job_may_have_failed_first(tmp_path):
    status, reason = run(tmp_path, [(PEER, {"rc": 1, "after": 1}), (MEMORY, VICTIM)])
    assert (status, reason[:5]) == ("oom", "NODE2")


def test_what_a_node_prints_after_another_one_failed_is_not_the_cause(tmp_path):
    ended = {"rc": 1, "ended": 1795219346.0}
    status, reason = run(tmp_path, [("ValueError: a flag\n", ended), (MEMORY, {**VICTIM, "after": 1})])
    assert (status, reason[:5]) == ("failed", "NODE1")


def test_a_process_that_the_kernel_killed_may_be_why_another_node_failed(tmp_path):
    ended = {"rc": 1, "ended": 1795219346.0}
    killed = {**VICTIM, "oom_kills": 1, "ended": 1795219356.0}
    status, reason = run(tmp_path, [("ValueError: a flag\n", ended), ("", killed)])
    assert (status, reason[:5]) == ("oom", "NODE2")


def test_a_time_out_says_that_another_rank_may_be_the_reason(tmp_path):
    status, reason = run(tmp_path, [(TIME_OUT, {"rc": 1})])
    assert (status, "as a rank did not take part" in reason) == ("failed", True)


def test_what_the_kernel_killed_comes_before_what_a_peer_says(tmp_path):
    assert run(tmp_path, [(PEER, {"rc": 1, "oom_kills": 1})])[0] == "oom"


def test_a_hang_after_out_of_memory_is_out_of_memory(tmp_path):
    hung = {"status": "hung", "rc": 0, "reason": "no output for 60 s"}
    status, reason = run(tmp_path, [(MEMORY, hung)])
    assert (status, reason.endswith("hung: no output for 60 s")) == ("oom", True)


def test_a_rendezvous_that_failed_tells_why(tmp_path):
    late = {"status": "rendezvous", "rc": 0, "reason": "no step within 60 s", "said": 7}
    text = "n1:5:5 [0] bootstrap.cc:37 NCCL WARN Bootstrap : no socket interface found\n"
    status, reason = run(tmp_path, [(text, late)])
    assert (status, reason.startswith("rendezvous timeout: ")) == ("failed", True)
    assert 'the log of NODE1 says "no socket interface found": the network interface' in reason


def test_a_further_rank_of_a_node_may_run_out_of_memory(tmp_path):
    said = f"scalebook: failed: NODE1.3 (rank 3, host n1) ended with exit code 1: {MEMORY}"
    status, reason = run(tmp_path, [("", VICTIM)], {**JOB, "rc": 1, "stderr": said})
    assert status == "oom"
    assert reason.startswith("NODE1.3 (rank 3, host n1) ran out of memory: ")


def test_the_first_line_of_mpirun_counts_however_much_follows(tmp_path):
    said = "Host key verification failed.\n" + "an explanation\n" * 50
    _, reason = run(tmp_path, [None, None], {**JOB, "rc": 1, "stderr": said})
    assert 'mpirun ended with exit code 1: it says "Host key verification failed."' in reason


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("Error: No space left on device", "failed"),
        ("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=1.0.", "oom"),
    ],
)
def test_what_mpirun_ran_out_of_is_the_cause(tmp_path, line, status):
    verdict = run(tmp_path, [None, None], {**JOB, "rc": 1, "stderr": line})
    assert verdict == (status, f'mpirun ended with exit code 1: it says "{line}"')


def test_a_full_shared_memory_is_what_a_bus_error_means(tmp_path):
    _, reason = run(tmp_path, [("", {"rc": 0, "status": "signaled", "signal": 7})], {**JOB, "rc": 135})
    assert "(SIGBUS): mostly the shared memory (/dev/shm) is full" in reason


# Who is not to blame

STOPPED = {"status": "signaled", "rc": 0, "signal": 15}
"""A node whose workload got the SIGTERM by which a job is ended."""


@pytest.mark.parametrize("rc", [137, 143, -9, -15])
def test_where_run_job_was_killed_no_node_is_to_blame(tmp_path, rc):
    job = {**JOB, **job_end({"rc": rc, "stdout": ""})}
    status, reason = run(tmp_path, [("", VICTIM), ("", VICTIM), ("", STOPPED)], job)
    assert (status, reason.startswith("run_job on NODE1 was ended by signal ")) == ("failed", True)


def test_where_the_connection_broke_no_node_is_to_blame(tmp_path):
    job = {**JOB, **job_end({"unreachable": True, "msg": "Failed to connect: Connection reset"})}
    _, reason = run(tmp_path, [("", VICTIM), ("", STOPPED)], job)
    assert reason.startswith("the connection to NODE1 broke during the run: Failed to connect")


def test_a_node_that_does_not_answer_the_first_one_any_more_is_named(tmp_path):
    job = {**JOB, "launcher": "srun", "rc": 137, "ended_by": "lost", "hosts": ["NODE2"]}
    assert run(tmp_path, [("", VICTIM), None], job) == ("failed", "NODE2 was lost")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("srun: error: Node failure on NODE2", "NODE2 was lost"),
        (
            "srun: error: Task launch for StepId=6.0 failed on node NODE2: Communication connection failure",
            "NODE2 was lost: Communication connection failure",
        ),
    ],
)
def test_a_node_that_slurm_lost_is_named_and_the_run_repeated(tmp_path, line, reason):
    job = {**JOB, "launcher": "srun", "rc": 143, "stderr": f"{line}\n"}
    assert run(tmp_path, [("", VICTIM), None], job) == ("failed", reason)
    assert lost_contact(job)
    assert list(lost_nodes(job)) == ["NODE2"]


def test_a_node_that_is_silent_may_be_back_for_the_next_run():
    assert lost_nodes({**JOB, "launcher": "srun", "rc": 137, "ended_by": "lost", "hosts": ["NODE2"]}) == {}


def test_a_run_without_slurmctld_is_repeated():
    line = "srun: error: Unable to confirm allocation for job 7: Unable to contact slurm"
    assert lost_contact({**JOB, "launcher": "srun", "rc": 1, "stderr": line})


def test_the_end_of_srun_says_nothing_of_a_node_without_a_record(tmp_path):
    job = {**JOB, "launcher": "srun", "rc": 0}
    _, reason = run(tmp_path, [("", {"rc": 0}), ("", None)], job)
    assert reason.startswith("NODE2.log ends without run_node's closing line")


CANCELLED = "slurmstepd-NODE1: error: *** STEP 1.0 ON NODE1 CANCELLED AT 2026-11-28T20:16:18 ***\n"
ENDED = "srun: error: NODE2: task 1: Exited with exit code 1\n"


def verdict_of_step(tmp_path, stderr, **job):
    return run(tmp_path, [("", VICTIM), None], {**JOB, "launcher": "srun", "rc": 1, "stderr": stderr, **job})


def test_a_step_that_somebody_cancelled_says_so(tmp_path):
    _, reason = verdict_of_step(tmp_path, CANCELLED + ENDED)
    assert "the run was cancelled in Slurm, not by scalebook. Fix: give the same command again" in reason


@pytest.mark.parametrize(
    ("stderr", "ended_by"), [(ENDED + CANCELLED, None), (CANCELLED + ENDED, "failure")],
    ids=["by Slurm after a task went wrong", "by run_job"],
)  # fmt: skip
def test_a_step_that_was_ended_for_a_failure_is_not_called_cancelled(tmp_path, stderr, ended_by):
    assert "was cancelled" not in verdict_of_step(tmp_path, stderr, ended_by=ended_by)[1]


def test_srun_itself_is_named_where_it_fails(tmp_path):
    line = "srun: error: Only allocated 3 nodes asked for 4"
    job = {**JOB, "launcher": "srun", "rc": 1, "stderr": f"{line}\n"}
    assert f"srun ended with exit code 1: {line}" in run(tmp_path, [None, None], job)[1]


def test_a_node_that_run_job_ended_is_not_to_blame(tmp_path):
    job = {**JOB, "rc": 143, "ended_by": "failure"}
    _, reason = run(tmp_path, [("", {"rc": 1, "after": 1}), ("", {**STOPPED, "after": 0})], job)
    assert reason.startswith("NODE1 (rank 0, host host1) ended with exit code 1")


def test_a_node_that_ended_with_the_job_is_not_to_blame_for_the_failure_before(tmp_path):
    ended = {"ended": 1795219400.0}, {"ended": 1795219401.0}
    _, reason = run(tmp_path, [("", {"rc": 1, **ended[0]}), ("", {**STOPPED, **ended[1]})])
    assert reason.startswith("NODE1 (rank 0, host host1) ended with exit code 1")


def test_out_of_memory_is_known_where_run_job_was_killed(tmp_path):
    job = {**JOB, **job_end({"rc": 137, "stdout": ""})}
    assert run(tmp_path, [(MEMORY, {"rc": 1}), ("", STOPPED)], job)[0] == "oom"


# The table


def test_the_names_of_causes_differ():
    assert len({cause.name for cause in CAUSES}) == len(CAUSES)


def test_a_cause_has_a_sentence_and_a_fix_or_says_what_became_of_the_node():
    sentences = {cause.name: ENGLISH.get(f"failure.{cause.name}", "") for cause in CAUSES}
    assert [cause.name for cause in CAUSES if bool(cause.ended) == (". Fix: " in sentences[cause.name])] == []


def test_every_sentence_of_a_cause_is_that_of_one_in_the_table():
    causes = {cause.name for cause in CAUSES} | set(SIGNALS.values())
    assert {code.removeprefix("failure.") for code in ENGLISH if code.startswith("failure.")} <= causes


def test_no_text_stands_for_two_causes():
    texts = [text for cause in CAUSES for text in cause.texts]
    assert len(set(texts)) == len(texts)
