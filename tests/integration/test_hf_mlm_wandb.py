# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""hf_mlm_report_to=wandb: Trainer sends its own log to the wandb of PyPI, in an offline run."""

import json
import re
import subprocess

import pytest
import wandb_packages

pytestmark = wandb_packages.MARKS
ARGUMENTS = """--device cpu --model tiny --dtype fp32 --batch 4 --accumulation 1 --steps 4 --epochs 2
--train-samples 8 --eval-samples 8 --length 16 --learning-rate 5e-5 --seed 1 --output trainer
--report-to wandb"""
ONE_PROCESS = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1", "GROUP_RANK": "0"}


def test_the_log_of_trainer_is_in_an_offline_run(hf_mlm, tmp_path):
    python = hf_mlm / "transformers/venv/bin/python"
    env = wandb_packages.environment(tmp_path / "packages", python)
    env |= {**ONE_PROCESS, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "24991"}
    env |= {"WANDB_MODE": "offline", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}

    def printed(*words):
        done = subprocess.run(
            [python, *words], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    log = printed(hf_mlm / "hf_mlm/code/train.py", *ARGUMENTS.split())
    [path] = tmp_path.glob("wandb/offline-run-*/*.wandb")
    found = json.loads(printed(wandb_packages.HERE / "wandb_records.py", path))
    # Trainer logs after each epoch and evaluates; it prints what it sends.
    losses = re.findall(r"'(eval_)?loss': '([\d.]+)'", log)
    assert [kind for kind, _loss in losses] == ["", "eval_"] * 2
    assert found["metrics"]["train/loss"] == pytest.approx(float(losses[2][1]), abs=1e-3)
    assert found["metrics"]["eval/loss"] == pytest.approx(float(losses[3][1]), abs=1e-3)
    assert found["metrics"]["train/global_step"] == 4
    # The trainer leaves without the shutdown of the interpreter, and the run has ended nevertheless.
    assert found["ended"]
