# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""scripts/bench --sbatch: a batch script whose allocation has what the largest case needs."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[3] / "scripts/bench"


def printed(*words, **env):
    argv, given = [sys.executable, BENCH, *words], {**os.environ, **env}
    return subprocess.run(argv, capture_output=True, text=True, check=False, env=given)


def asked_of_slurm(*words):
    """Return the options for sbatch in the script."""
    lines = printed("--sbatch", "4:00:00", *words).stdout.splitlines()
    return {line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH")}


@pytest.mark.parametrize("given", [("--nodes", "1,4", "--gpus", "2,8"), ("--topology", "1n1g,4n8g,2n2g")])
def test_the_allocation_has_as_many_nodes_and_gpus_as_the_largest_case(given):
    assert {"--nodes=4", "--gpus-per-node=8", "--time=4:00:00"} <= asked_of_slurm(*given)


def test_the_job_has_its_nodes_for_itself_outlives_one_and_does_not_start_twice():
    assert {"--exclusive", "--no-kill", "--no-requeue"} <= asked_of_slurm("--topology", "2n8g")


def test_a_campaign_on_cpus_asks_for_no_gpus():
    options = asked_of_slurm("--nodes", "2", "--device", "cpu")
    assert not any(option.startswith("--gpus") for option in options)


def test_the_script_becomes_the_same_command_with_srun_as_its_launcher():
    last = printed("--sbatch", "60", "--topology", "2n8g", "--bsz", "32,64").stdout.splitlines()[-1]
    words = shlex.split(last.partition("exec ")[2])
    given = json.loads(words[words.index("-e") + 1])
    assert given == {"topology": "2n8g", "bsz": "32,64", "launcher": "srun"}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--nodes", "2"), "--sbatch: give --topology, or --nodes and --gpus or --device cpu"),
        (("--gpus", "2"), "--sbatch: give --topology, or --nodes and --gpus or --device cpu"),
        (("--nodes", "many", "--gpus", "2"), "nodes=many: allowed are whole numbers"),
        (("--topology", "8g"), "topology=8g: allowed are values such as 1n8g"),
        (("--topology", "1n8g", "--sbatch", "soon"), "--sbatch soon: allowed are times such as 4:00:00"),
    ],
)
def test_what_no_allocation_follows_from_is_refused(words, why):
    done = printed("--sbatch", "4:00:00", *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert why in done.stderr


def test_options_of_sbatch_follow_the_time():
    options = asked_of_slurm("--topology", "1n1g", "--sbatch", "1:00:00 --partition=gpu --account=ml")
    assert {"--time=1:00:00", "--partition=gpu", "--account=ml"} <= options


def test_a_script_that_slurm_would_not_take_is_refused_with_its_reason_and_the_fix(tmp_path):
    stand_in, reason = tmp_path / "sbatch", "Invalid partition name specified"
    stand_in.write_text(f"#!/bin/sh\necho 'allocation failure: {reason}' >&2\nexit 1\n")
    stand_in.chmod(0o755)
    done = printed("--sbatch", "1:00", "--topology", "1n1g", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"scripts/bench: --sbatch: {reason}. Fix: sinfo --summarize shows the partitions\n"
