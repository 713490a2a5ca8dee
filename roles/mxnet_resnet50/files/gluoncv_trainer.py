# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Run gluon-cv's train_horovod.py for a number of steps, and print a line for each step, which it does not.

The file of the trainer stays as it is: run_trainer.py sees each step where the trainer asks Horovod for it.
Runs on Python 3.7.
"""

import argparse
import importlib
import logging
import os
import sys
import time
import types
from typing import Any, List

import horovod.mxnet as hvd
import numpy as np
import trainer_kit


class LastStep(BaseException):
    """The run has all its steps. The trainer itself ends after the last image only."""


def stand_in_autogluon() -> None:
    """Let the trainer run without AutoGluon, which it imports, and uses for images of 320 and more pixels."""
    utils = types.ModuleType("autogluon.utils")
    utils.pil_transforms = None  # type: ignore[attr-defined]
    sys.modules.update({"autogluon": types.ModuleType("autogluon"), "autogluon.utils": utils})


def watch_steps(steps: int, say: trainer_kit.Say) -> None:
    """Let every step of Horovod's trainer print a line, the first one also what it does, the last one end.

    The trainer waits for the outputs of a batch before it takes the next one, so that each line is as late as
    the one before it. The rate counts the images of all ranks.
    """
    step = hvd.DistributedTrainer.step
    times: List[float] = [time.time()]

    def watched(self: Any, batch_size: int, ignore_stale_grad: bool = False) -> None:
        step(self, batch_size, ignore_stale_grad)
        images = batch_size * hvd.size()
        if len(times) == 1 and logging.root.isEnabledFor(logging.INFO):
            dtype = np.dtype(self._params[0].dtype).name
            say(kv_store="horovod", batch_size=images, dtype=dtype)
        times.append(time.time())
        rate = images / (times[-1] - times[-2])
        logging.info("Step [%d]\tSpeed: %r samples/sec\tLR: %r", len(times) - 1, rate, self.learning_rate)
        if len(times) > steps:
            raise LastStep

    hvd.DistributedTrainer.step = watched


def train(args: argparse.Namespace, flags: List[str], say: trainer_kit.Say) -> Any:
    """Run the trainer with these flags; return the model."""
    # As NVIDIA's trainer logs. Without mpi4py the trainer's own choice comes too late, and it logs nothing.
    logging.basicConfig(
        level=logging.INFO, stream=sys.stdout, format="%(asctime)s:%(levelname)s: %(message)s"
    )
    stand_in_autogluon()
    # The processes that decode images.
    os.register_at_fork(after_in_child=trainer_kit.die_with_parent)
    sys.argv = ["train_horovod.py", *flags]
    trainer = importlib.import_module("train_horovod")
    watch_steps(args.steps, say)
    try:
        trainer.train_gluon()
    except LastStep:
        return trainer.net
    sys.exit("the trainer has ended before step %d" % args.steps)
