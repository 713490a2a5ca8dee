# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Role deepspeed: launchers that log in to other nodes. Those nodes wait, and the first failure is named."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cases import cluster, machine, plan
from declared import with_settings
from role_files import declaration

FILES = Path(__file__).resolve().parents[3] / "roles/deepspeed/files"

# Lines of genuine runs on two container nodes, a rank killed on the second (paths shortened).
THROUGH_PDSH = """\
10.11.19.3: [2026-11-22 07:43:30,069] [INFO] [launch.py:253:sigkill_handler] Killing subprocess 1726
10.11.19.3: [2026-11-22 07:43:30,070] [ERROR] [launch.py:259:sigkill_handler] ['python', \
'-u', 'pretrain.py'] exits with return code = -9
pdsh@NODE1: 10.11.19.3: ssh exited with exit code 247
pdsh@NODE1: 10.11.19.2: ssh exited with exit code 1
"""
THROUGH_MPIRUN = """\
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
--------------------------------------------------------------------------
mpirun noticed that process rank 1 with PID 1891 on node 10.11.19.3 exited on signal 9 (Killed).
"""


@pytest.mark.parametrize("workload", ["bing_bert", "deepspeed_bert"])
def test_a_launcher_that_logs_in_is_planned_for_nodes_of_their_own_machines(workload):
    declared = with_settings(declaration(workload), launcher="pdsh")
    given = {"topology": "1n1g,2n1g"}
    on_machines = plan(given, declared, cluster(2), workload, "cpu")
    simulated = plan(given, declared, machine(2, 1), workload, "cpu")
    assert [case["nodes"] for case in on_machines["cases"]] == [1, 2]
    assert [case["nodes"] for case in simulated["cases"]] == [1]
    assert [skipped["reason"] for skipped in simulated["skipped"]] == [
        f"{workload}_launcher=pdsh logs in to nodes, and these are simulated nodes of one machine: "
        f"use {workload}_launcher=job"
    ]


def report(output, status):
    """Run report_failure.py in front of something that prints `output` and ends with `status`."""
    script = f"import sys; sys.stdout.write({output!r}); sys.exit({status})"
    return subprocess.run(
        [sys.executable, FILES / "report_failure.py", sys.executable, "-c", script],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("output", "status", "sentence"),
    [
        (THROUGH_PDSH, 1, "deepspeed: a rank on 10.11.19.3 was ended by signal 9"),
        (THROUGH_MPIRUN, 137, "deepspeed: rank 1 on 10.11.19.3 was ended by signal 9"),
        (
            "pdsh@NODE1: NODE2: ssh exited with exit code 255\n",
            255,
            "deepspeed: ssh to NODE2 ended with exit code 255",
        ),
        ("nothing of this kind\n", 3, "deepspeed: the launcher ended with 3"),
    ],
    ids=["pdsh", "mpirun", "ssh", "else"],
)
def test_the_last_line_names_what_failed_first(output, status, sentence):
    done = report(output, status)
    assert done.stdout == f"{output}{sentence}\n"


def test_a_launcher_that_was_killed_does_not_look_like_a_killed_node():
    assert report(THROUGH_MPIRUN, 137).returncode == 1


def test_a_launcher_that_waits_for_the_others_is_not_waited_for():
    """As pdsh does."""
    script = f"import time; print({THROUGH_PDSH.splitlines()[1]!r}, flush=True); time.sleep(86400)"
    program = "import report_failure as main; main.GRACE_SECONDS = 0.5; main.main()"
    argv = [sys.executable, "-c", program, sys.executable, "-c", script]
    apart = {"stdout": subprocess.PIPE, "text": True, "start_new_session": True, "cwd": FILES}
    with subprocess.Popen(argv, **apart) as process:
        assert process.wait(30) == 1
        os.killpg(process.pid, signal.SIGKILL)  # as run_node does
        assert process.stdout.read().endswith("deepspeed: a rank on 10.11.19.3 was ended by signal 9\n")


def test_the_output_of_a_success_is_unchanged():
    done = report("DEEPSPEED_BERT weights=agree end=true\n", 0)
    assert (done.returncode, done.stdout) == (0, "DEEPSPEED_BERT weights=agree end=true\n")


def test_a_node_waits_until_its_ranks_have_started_and_ended():
    word = f"DEEPSPEED_BERT_RANK_OF=test-{os.getpid()}"
    program = "import await_ranks as main; main.INTERVAL = 0.05; main.main()"
    waiting = subprocess.Popen([sys.executable, "-c", program, word], cwd=FILES)
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(0.5)
    name, value = word.split("=")
    subprocess.run(["sleep", "1"], env={**os.environ, name: value}, check=True)
    assert waiting.wait(10) == 0
