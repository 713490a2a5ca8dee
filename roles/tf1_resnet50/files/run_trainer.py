# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Run NVIDIA's main.py for TensorFlow 1, unchanged, as one of Horovod's processes, and print its steps.

mpirun starts the processes. Lines for the reader begin with TF1_RESNET50; those that begin with DLL are the
trainer's own. It prints steps only after 20 of them, and not how many processes train together: a hook of its
estimator prints every step, and compares the weights of all ranks at the end. Runs on Python 3.6 and 3.7.
"""

import argparse
import atexit
import glob
import importlib
import math
import os
import runpy
import shutil
import signal
import sys
import tempfile
import time
from typing import Any, List

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import trainer_kit  # noqa: E402

# Before TensorFlow is imported, which takes seconds.
trainer_kit.die_with_parent()

import backend  # noqa: E402
import data_stamp  # noqa: E402
import horovod  # noqa: E402
import horovod.tensorflow as hvd  # noqa: E402
import stand_ins  # noqa: E402
import tensorflow as tf  # noqa: E402
import trainer_flags  # noqa: E402

say = trainer_kit.Say("TF1_RESNET50")


def arguments() -> argparse.Namespace:
    """Return the command line; every value that decides a measurement is named here."""
    parser = trainer_kit.parser(["resnet50"], ["fp32", "fp16"])
    parser.add_argument("--trainer", required=True, help="directory of main.py")
    parser.add_argument("--data", required=True, help="directory of tfrecord files, train-*")
    parser.add_argument("--devices", type=int, required=True, help="number of processes of the run")
    parser.add_argument("--devices-per-node", type=int, required=True)
    parser.add_argument("--xla", type=trainer_kit.boolean, required=True)
    parser.add_argument("--image-size", type=int, required=True, help="width and height of an image")
    parser.add_argument("--learning-rate", type=float, required=True, help="for 256 images")
    parser.add_argument("--scratch", required=True, help="directory for checkpoints, which are removed")
    return parser.parse_args()


def sums(weights: List[Any]) -> List[float]:
    """Return the sum and the sum of squares of arrays."""
    wide = [weight.astype("float64") for weight in weights]
    return [float(sum(w.sum() for w in wide)), float(sum((w * w).sum() for w in wide))]


class Monitor(tf.estimator.SessionRunHook):
    """Prints what takes part, every step, and whether all ranks trained one model."""

    def __init__(self, args: argparse.Namespace, operation: str, software: Any) -> None:
        self.args, self.operation, self.software, self.done = args, operation, software, 0
        self.first = hvd.rank() % args.devices_per_node == 0

    def begin(self) -> None:
        """Add what all ranks tell each other to the graph before it is finalized."""
        node = tf.constant([int(os.environ["TASK_INDEX"])])
        self.nodes = hvd.allgather(node, name="scalebook_nodes")
        # Without the running statistics of BatchNorm, which each rank computes from its own images.
        self.weights = tf.compat.v1.trainable_variables()
        self.row = tf.compat.v1.placeholder(tf.float64, [1, 2])
        self.rows = hvd.allgather(self.row, name="scalebook_weights")

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Print what takes part and what it does."""
        args, world = self.args, hvd.size()
        nodes = len(set(session.run(self.nodes).tolist()))
        if self.first:
            node_rank = hvd.rank() // args.devices_per_node
            say(world_size=world, nodes=nodes, node_rank=node_rank, backend=self.operation)
            operations = "+".join(backend.operations(hvd))
            say(horovod=horovod.__version__, built=operations, tensorflow=tf.__version__, **self.software)
            say(batch=args.batch, global_batch=args.batch * world, image_size=args.image_size)
            say(dtype=args.dtype, xla=str(args.xla).lower(), device=args.device)

    def before_run(self, run_context: Any) -> Any:
        """Request the loss, which the trainer's hook of rank 0 fetches too."""
        return tf.estimator.SessionRunArgs("cross_entropy_loss_ref:0")

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Print the step; end the run when its loss is not finite."""
        now = time.time()
        self.done += 1
        if hvd.rank() == 0:
            step = "%d/%d" % (self.done, self.args.steps)
            say(step=step, loss="%.5f" % run_values.results, time="%.6f" % now)
        if not math.isfinite(run_values.results):
            sys.exit("the loss of step %d on rank %d is %s" % (self.done, hvd.rank(), run_values.results))

    def end(self, session: Any) -> None:
        """Fail when the ranks hold different weights."""
        row = sums(session.run(self.weights))
        rows = session.run(self.rows, {self.row: [row]}).tolist()
        if any(other != row for other in rows):
            sys.exit("the ranks hold different weights: the gradients were not summed: %s" % rows)
        if self.first:
            say(steps_done=self.done)
            say(weights_sum="%.9e" % row[0], weights_sum_of_squares="%.9e" % row[1])


def add_monitor(monitor: Monitor) -> None:
    """Let the trainer's estimator have the hook, before its own, so that a step's line is before its rate."""
    train = tf.estimator.Estimator.train

    def with_hook(self: Any, *positional: Any, **named: Any) -> Any:
        named["hooks"] = [monitor, *(named.get("hooks") or [])]
        return train(self, *positional, **named)

    tf.estimator.Estimator.train = with_hook


def set_image_size(size: int) -> None:
    """Let the trainer scale images to this size; main.py has 224 as a constant."""
    runtime = importlib.import_module("runtime")

    class Runner(runtime.Runner):  # type: ignore[name-defined]
        def __init__(self, **named: Any) -> None:
            named.update(height=size, width=size)
            super().__init__(**named)

    runtime.Runner = Runner  # type: ignore[attr-defined]


def main() -> None:
    """Train, compare the weights of all ranks and print the results."""
    args = arguments()
    hvd.init()
    if hvd.size() != args.devices:
        sys.exit(
            "Horovod sees %d processes, the run has %d: start it with the mpirun that Horovod was built with"
            % (hvd.size(), args.devices)
        )
    files = len(glob.glob(os.path.join(args.data, "train-*")))
    stamp = data_stamp.read(args.data) or {}
    try:
        operation = backend.backend(args.device, backend.operations(hvd))
        trainer_flags.check(args, hvd.size(), files, stamp.get("images"))
    except (backend.MissingOperationError, trainer_flags.FlagsError) as error:
        trainer_kit.refuse(error)
    # A process that is stopped removes its checkpoints too. TensorFlow removes its temporary files before.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    scratch = tempfile.mkdtemp(prefix="output-", dir=args.scratch)
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    # Where ranks above 0 write theirs: the trainer names a directory for rank 0 alone.
    tempfile.tempdir = scratch
    monitor = Monitor(args, operation, stand_ins.add())
    add_monitor(monitor)
    sys.path.insert(0, args.trainer)
    set_image_size(args.image_size)
    sys.argv = ["main.py", *trainer_flags.flags(args, os.path.join(scratch, "results"))]
    runpy.run_path(os.path.join(args.trainer, "main.py"), run_name="__main__")
    if monitor.first:
        say(weights="agree", end="true")


if __name__ == "__main__":
    main()
