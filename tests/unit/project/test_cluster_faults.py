# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What the fault tests find wrong with the record of a run that a fault hit."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible.module_utils.scalebook.contracts import message

sys.path.insert(0, str(Path(__file__).parents[2] / "cluster"))

sys.path.append(str(Path(__file__).parents[3] / "roles/campaign/files"))

import telemetry  # noqa: E402
from testcluster import base, faults, processes  # noqa: E402

NODE = SimpleNamespace(name="NODE2")
FAULTS = {fault.name: fault for fault in faults.DURING_A_RUN}
KILLED = FAULTS["sampler killed"]


def record(*reasons, status="ok", notes=(), absent=None):
    parts = [
        {"node": f"NODE{number}", "reason": reason, "absent": absent or {}}
        for number, reason in enumerate(reasons, 1)
    ]
    return {"status": status, "reason": None, "telemetry": parts, "notes": list(notes)}


def test_a_run_counts_whose_record_says_that_the_sampler_of_the_node_was_killed():
    assert faults.problem_with(KILLED, NODE, record(None, "the sampler was ended by signal 9", None)) == ""


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (record(None, None, None), "the record does not say the sampler was ended by signal 9"),
        (record("the sampler was ended by signal 9", None), "the record does not say"),
        ({"status": "ok", "reason": None}, "the record does not say"),
        (record(None, "the sampler was ended by signal 9", status="failed"), "failed, None"),
    ],
)
def test_a_record_that_does_not_say_so_of_this_node_is_a_problem(made, problem):
    assert problem in faults.problem_with(KILLED, NODE, made)


def test_a_fault_after_which_the_record_need_not_say_anything_wants_nothing():
    made = {"status": "ok", "reason": None}
    assert faults.problem_with(FAULTS["link back after 5 s"], NODE, made) == ""


@pytest.mark.parametrize(
    ("name", "made"),
    [
        (
            "driver stops answering",
            record(None, None, absent={"gpu:late": "the driver did not answer within 0.2 s, 1 of 3 times"}),
        ),
        (
            "clock jumps",
            record(None, None, notes=[message("run.clock-set", seconds=3600.0)]),
        ),
    ],
)
def test_a_run_counts_whose_record_says_what_is_missing_or_in_doubt(name, made):
    assert faults.problem_with(FAULTS[name], NODE, made) == ""
    assert "the record does not say" in faults.problem_with(FAULTS[name], NODE, record(None, None))


def test_the_clock_of_a_node_jumps_for_programs_that_run_already(tmp_path):
    (tmp_path / "set_clock.so").write_bytes(faults.library("set_clock.c", SET_BY=tmp_path / "by"))
    code = "import time; print(time.time(), time.monotonic(), flush=True); input()\n" * 2
    env = {**os.environ, "LD_PRELOAD": str(tmp_path / "set_clock.so")}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code], env=env, **pipes) as process:
        before = [float(word) for word in process.stdout.readline().split()]
        (tmp_path / "by").write_text("3600")
        print(file=process.stdin, flush=True)
        after = [float(word) for word in process.stdout.readline().split()]
        print(file=process.stdin, flush=True)
    assert after[0] - before[0] - (after[1] - before[1]) == pytest.approx(3600, abs=0.1)


def test_the_sampler_is_recognised_as_run_node_starts_it(tmp_path):
    started = telemetry.Telemetry({"interval": 1}, str(tmp_path), "NODE1", dict(os.environ))
    started.end()
    assert processes.program(started.process.args) == "sampler.py"


@pytest.mark.parametrize(
    ("words", "program"),
    [
        (["python3", "-u", "/opt/work/run_node.py", "NODE1=/opt/work"], "run_node.py"),
        (["/opt/openmpi/bin/mpirun", "-np", "3", "python3", "run_node.py"], "mpirun"),
        (["orted", "-mca", "ess"], "orted"),
        (["python3", "-E"], ""),
        ([], ""),
    ],
)
def test_a_program_is_what_an_interpreter_runs(words, program):
    assert processes.program(words) == program


def test_a_fault_of_a_process_that_is_not_there_is_not_injected(monkeypatch):
    node = object.__new__(processes.NodeView)
    node.name = "NODE2"
    monkeypatch.setattr(node, "processes", dict)
    with pytest.raises(base.ClusterError, match="NODE2 runs no sampler"):
        KILLED.inject(None, node)
