# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""slurm_step: what a step needs besides its command, and which nodes still answer. No Slurm is needed."""

import importlib.util
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).parents[3] / "roles/campaign/files/slurm_step.py"


@pytest.fixture
def step():
    """The program as a module of its own, whose constants a test may change."""
    spec = importlib.util.spec_from_file_location("slurm_step", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def program(folder, name, script):
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_options_of_the_allocation_are_none_of_the_step(step, monkeypatch):
    for name in ("SLURM_NTASKS", "SLURM_JOB_ID", "SBATCH_QOS", "SALLOC_ACCOUNT", "SLURM_CONF"):
        monkeypatch.setenv(name, "x")
    assert [name for name in step.environment() if name.startswith(("SLURM", "SBATCH", "SALLOC"))] == [
        "SLURM_CONF"
    ]


def test_a_step_has_a_limit_in_whole_minutes_behind_that_of_the_job(step):
    command = step.bounded(["srun", "--ntasks=2", "program"], 3600, 10)
    assert command[command.index("3610") :] == ["3610", "srun", "--time=62", "--ntasks=2", "program"]


def test_srun_reads_its_nodes_from_a_file_where_they_are_too_long_for_an_argument(step, tmp_path):
    names = ["NODE4", "NODE4", "NODE2"] * 10000
    command = ["srun", f"--nodelist={','.join(names)}", "run_node.py", "--nodelist"]
    named = f"--nodelist={tmp_path}/nodes"
    assert step.with_node_file(command, str(tmp_path)) == ["srun", named, "run_node.py", "--nodelist"]
    assert (tmp_path / "nodes").read_text().split("\n") == [*names, ""]


def test_srun_is_told_its_nodes_where_they_fit(step, tmp_path):
    command = ["srun", "--nodelist=NODE4,NODE4,NODE2", "run_node.py"]
    assert step.with_node_file(command, str(tmp_path)) == command


def test_no_signal_but_usr1_is_sent_to_srun_and_none_to_its_group(step):
    assert {"--foreground", "--signal=USR1"} <= set(step.bounded(["srun"], 60, 10))


def test_steps_of_jobs_in_a_place_are_ended_and_others_are_not(step, tmp_path, monkeypatch):
    steps = ("7.1 /srv/a/NODE1/c/case/1", "7.2 /srv/ab/c", "7.3 python train.py")
    program(tmp_path, "squeue", "; ".join(f"echo '{step}'" for step in steps))
    program(tmp_path, "scancel", f'echo "$@" >{tmp_path}/ended')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert step.cancel(["/srv/a"]) == {"7.1": "/srv/a/NODE1/c/case/1"}
    assert (tmp_path / "ended").read_text() == "7.1\n"


def test_whoever_stops_orphans_stops_their_steps_too(tmp_path):
    """Also preflight.yml -e reap=true, which does not know what launched them."""
    program(tmp_path, "squeue", f"echo '7.1 {tmp_path}/NODE1/c/case/1'")
    program(tmp_path, "scancel", f'echo "$@" >{tmp_path}/ended')
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    argv = [sys.executable, FILE.with_name("orphans.py"), tmp_path]
    said = json.loads(subprocess.run(argv, env=env, capture_output=True, check=True).stdout)
    assert (list(said["ended"]), (tmp_path / "ended").read_text()) == (
        [f"{tmp_path}/NODE1/c/case/1"],
        "7.1\n",
    )


def test_without_slurm_there_are_no_steps(step, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert step.cancel(["/srv/a"]) == {}


class Clock:
    """A clock that a test sets."""

    def __init__(self, module, monkeypatch):
        self.now = 1000.0
        monkeypatch.setattr(module, "time", self)

    def monotonic(self):
        return self.now


@pytest.fixture
def nobody_at(step):
    """Return the address of this machine, which answers that nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        step.DISCARD = free.getsockname()[1]
    return "127.0.0.1"


def watch(peers, clock, seconds):
    for _ in range(seconds):
        clock.now += 1
        silent = peers.silent()
    return silent


def test_a_node_that_refuses_a_connection_answers(step, nobody_at, monkeypatch):
    clock = Clock(step, monkeypatch)
    assert watch(step.Peers([nobody_at]), clock, 60) == []


def test_a_node_that_has_answered_and_does_not_any_more_is_silent_after_seconds(step, nobody_at, monkeypatch):
    clock, peers = Clock(step, monkeypatch), step.Peers([nobody_at])
    watch(peers, clock, 4)
    assert nobody_at in peers.heard
    peers.heard[nobody_at] = clock.now
    monkeypatch.setattr(peers, "_hear", lambda address, code: None)
    assert watch(peers, clock, 9) == []
    assert watch(peers, clock, 1) == [nobody_at]


def test_a_node_behind_a_firewall_that_never_answers_is_not_taken_for_lost(step, monkeypatch):
    clock, peers = Clock(step, monkeypatch), step.Peers(["127.0.0.1"])
    monkeypatch.setattr(peers, "_hear", lambda address, code: None)
    assert watch(peers, clock, 60) == []
