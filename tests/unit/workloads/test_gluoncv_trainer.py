# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""gluoncv_resnet50: how gluon-cv's train_horovod.py is started, with stand-ins of it and of Horovod."""

import os
import re
import subprocess
import sys

import pytest
from role_files import ROLES

HOROVOD = """
class DistributedTrainer:
    learning_rate = 0.01

    def __init__(self):
        self._params = [type("Parameter", (), {"dtype": "float32"})]

    def step(self, batch_size, ignore_stale_grad=False):
        print("Horovod sums")


def size():
    return 2
"""
# As the genuine one it logs before it sets logging up, imports AutoGluon and asks Horovod for each step.
TRAINER = """
import logging, sys
import horovod.mxnet as hvd

logging.info("mpi4py is not installed")
logging.basicConfig(level=logging.INFO)
logging.info("flags %s", sys.argv[1:])
net = "the model"


def train_gluon():
    from autogluon.utils import pil_transforms
    trainer = hvd.DistributedTrainer()
    for batch in range(5):
        trainer.step(4)
        logging.info("Batch[%d]", batch)
"""
STARTED = """
import gluoncv_trainer
print("returned", gluoncv_trainer.train(["--no-cuda"], {steps}))
"""


@pytest.fixture
def run(tmp_path):
    """Return a function that trains for a number of steps and returns status and lines."""
    files = {"horovod/__init__.py": "", "horovod/mxnet.py": HOROVOD, "train_horovod.py": TRAINER}
    files["mxnet_run.py"] = ""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    places = ("gluoncv_resnet50/files", "mxnet/files", "workload/files/kit")
    folders = [tmp_path, *(ROLES / place for place in places)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}

    def started(steps):
        argv = [sys.executable, "-c", STARTED.format(steps=steps)]
        done = subprocess.run(argv, capture_output=True, text=True, env=env, check=False)
        return done.returncode, done.stdout + done.stderr

    return started


def test_every_step_has_a_line_and_the_last_one_ends_the_run(run):
    status, shown = run(3)
    assert re.findall(
        r"^\d{4}-\S+ \S+,\d{3}:INFO: Step \[(\d)\]\tSpeed: [\d.]+ samples/sec\tLR: 0.01$", shown, re.M
    ) == ["1", "2", "3"]
    assert (status, "Batch[1]" in shown, "Batch[2]" in shown) == (0, True, False)
    assert "returned the model" in shown


def test_the_step_is_still_that_of_horovod(run):
    assert run(3)[1].count("Horovod sums") == 3


def test_the_batch_of_all_ranks_is_printed_once(run):
    assert run(3)[1].count("GLUONCV_RESNET50 kv_store=horovod batch_size=8 dtype=float32\n") == 1


def test_without_mpi4py_the_trainer_logs_all_the_same(run):
    """Alone it logs nothing at all: its first word sets logging up for warnings only."""
    shown = run(3)[1]
    assert ("INFO: mpi4py is not installed" in shown, "INFO: flags ['--no-cuda']" in shown) == (True, True)


def test_a_trainer_that_ends_too_early_fails(run):
    status, shown = run(6)
    assert (status, "the trainer has ended before step 6" in shown) == (1, True)
