# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Run gluon-cv's train_horovod.py for a number of steps, and print a line for each step, which it does not.

One process per device, started by mpirun. The file of the trainer stays as it is: each step is seen where it
asks Horovod for it. The lines for the reader begin with GLUONCV_RESNET50; those of steps are like those of
NVIDIA's trainer. Runs on Python 3.7.
"""

import importlib
import logging
import os
import sys
import time
import types
from typing import Any, List

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import trainer_kit  # noqa: E402

# Before MXNet is imported, which takes seconds.
trainer_kit.die_with_parent()

import gluoncv_flags  # noqa: E402
import horovod.mxnet as hvd  # noqa: E402
import mxnet_run  # noqa: E402
import numpy as np  # noqa: E402

say = trainer_kit.Say("GLUONCV_RESNET50")


class LastStep(BaseException):
    """The run has all its steps. The trainer itself ends after the last image only."""


def stand_in_autogluon() -> None:
    """Let the trainer run without AutoGluon, which it imports, and uses for images of 320 and more pixels."""
    utils = types.ModuleType("autogluon.utils")
    utils.pil_transforms = None  # type: ignore[attr-defined]
    sys.modules.update({"autogluon": types.ModuleType("autogluon"), "autogluon.utils": utils})


def watch_steps(steps: int) -> None:
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


def train(flags: List[str], steps: int) -> Any:
    """Run the trainer with these flags for a number of steps; return the model."""
    # As NVIDIA's trainer logs. Without mpi4py the trainer's own choice comes too late, and it logs nothing.
    logging.basicConfig(
        level=logging.INFO, stream=sys.stdout, format="%(asctime)s:%(levelname)s: %(message)s"
    )
    stand_in_autogluon()
    # The processes that decode images.
    os.register_at_fork(after_in_child=trainer_kit.die_with_parent)
    sys.argv = ["train_horovod.py", *flags]
    trainer = importlib.import_module("train_horovod")
    watch_steps(steps)
    try:
        trainer.train_gluon()
    except LastStep:
        return trainer.net
    sys.exit("the trainer has ended before step %d" % steps)


def main() -> None:
    """Train, compare the weights of all ranks and print the results."""
    args = mxnet_run.arguments()
    about = mxnet_run.data(args, gluoncv_flags.check)
    first = mxnet_run.begin(say, args, **about)
    sys.path.insert(0, args.source)
    flags = gluoncv_flags.flags(args, about["images"], hvd.size(), *mxnet_run.machine())
    mxnet_run.end(say, first, train(flags, args.steps), args.steps)


if __name__ == "__main__":
    trainer_kit.run(main)
