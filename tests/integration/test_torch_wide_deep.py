# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The tables of torch_wide_deep, split over processes, train as embeddings of one process do."""

import json
import os
import re
import subprocess
from pathlib import Path

import frameworks
import pytest
from ansible.module_utils.scalebook.workloads import load_workloads

PYTHON = frameworks.HOME / "pytorch/venv/bin/python"
CODE = frameworks.HOME / "torch_wide_deep/code"
ROLES = Path(__file__).resolve().parents[2] / "roles"
BATCH, STEPS = 64, 100  # more steps than there are batches
pytestmark = pytest.mark.slow


def printed(*words):
    """Return what Python prints, with the sizes of the smallest model in its environment."""
    size = load_workloads([str(ROLES)])["torch_wide_deep"].flops.models["tiny"]
    env = {**os.environ, "MODEL_SIZE": json.dumps(dict(size)), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [PYTHON, *map(str, words)], capture_output=True, text=True, timeout=120, env=env, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def expected(torch_wide_deep):
    """Return the losses of one process with torch's own embeddings."""
    program = Path(__file__).with_name("train_wide_deep.py")
    return [float(loss) for loss in printed(program, CODE, BATCH, STEPS).split()]


@pytest.mark.parametrize("processes", [1, 2])
def test_the_loss_is_that_of_one_process_with_embeddings_of_torch(expected, processes):
    words = ["--device", "cpu", "--model", "tiny", "--dtype", "fp32", "--batch", BATCH // processes]
    words += ["--steps", STEPS, "--dropout", 0]
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", processes]
    log = printed(*launcher, CODE / "train.py", *words)
    losses = [float(loss) for loss in re.findall(r" step=\S+ loss=(\S+) ", log)]
    assert losses == pytest.approx(expected, abs=0.0005)
    assert expected[-1] < expected[0] - 0.2
    assert f" table_rows=3200 table_devices={processes} own_rows={3200 // processes} " in log
