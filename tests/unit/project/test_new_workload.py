# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""scripts/bench new-workload: a log of any trainer becomes a role that reads such logs."""

import subprocess
import sys
from pathlib import Path

import pytest
from ansible.module_utils.scalebook.workloads import load_workloads

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "tests/data"
sys.path.insert(0, str(ROOT / "scripts"))

import new_workload  # noqa: E402


@pytest.fixture
def role(tmp_path):
    """The role of a framework that no workload has, and what was read from its log."""
    place = tmp_path / "roles/jax_mlp"
    return place, new_workload.write(place, "", DATA / "jax/clu.log", 64)


def test_a_log_of_another_framework_gives_its_rate_to_the_digit(role):
    """Step 20 at 16:25:52.897203, step 120 at 16:25:55.306620; 100 steps of 64 samples."""
    _, shown = role
    assert shown[-1] == f"{6400 / 2.409417:.2f} samples/s over 100 steps, from 20 to 120, by the time stamps"


def test_the_role_is_a_workload_of_at_most_eight_files(role):
    place, _ = role
    workload = load_workloads([str(place.parent)])["jax_mlp"]
    assert (workload.warmup, workload.window, workload.log.time) == (20, 100, "absl")
    assert len([path for path in place.rglob("*") if path.is_file()]) <= 8


def test_the_yaml_passes_the_linter(role):
    done = subprocess.run(["yamllint", "--strict", role[0]], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("log", "batch", "rate"),
    [
        ("oneflow_wide_deep/1p_eager.log", 64, 6400 / 22.727),
        ("tf2_bert/unpatched_single.log", 16, 1600 / 9.737420),
    ],
)
def test_the_rate_of_a_recording_is_that_of_its_time_stamps(tmp_path, log, batch, rate):
    shown = new_workload.write(tmp_path / "other", "pytorch", DATA / log, batch)[-1]
    assert shown.startswith(f"{rate:.2f} samples/s over 100 steps")


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("step={0} loss=7.6 samples_per_sec={0}.5 world_size=2", {"step", "loss", "rate"}),
        ("Epoch[0] Batch [{0}]\tSpeed: 2.{0} samples/sec\taccuracy=0.{0}", {"step", "rate"}),
        (
            " iteration  {0}/  90 | elapsed time per iteration (ms): 11.{0} | lm loss: 7.6",
            {"last", "latency"},
        ),
        ("[2026-11-28 10:00:{0},123] step: {0}  tps: 1,2{0}", {"step", "time"}),
    ],
)
def test_what_a_line_of_a_step_tells_is_in_the_pattern(line, keys):
    text = "\n".join(line.format(number) for number in range(10, 20))
    pattern = new_workload.propose(text)["step"]
    assert [key for key in keys if f"(?P<{key}>" not in pattern] == []


def test_a_log_without_steps_is_refused_and_nothing_is_written(tmp_path):
    (tmp_path / "log").write_text("loading 1\ndone\n")
    with pytest.raises(ValueError, match="no line that is there 4 times with a whole number that grows"):
        new_workload.write(tmp_path / "new", "", tmp_path / "log", 1)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["torch_bert", "../x", "Jax"])
def test_the_name_is_new_and_one_of_a_role(name):
    argv = [ROOT / "scripts/bench", "new-workload", name, "--from", DATA / "jax/clu.log"]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 2 and f"{name}: it must be a new name" in done.stderr
