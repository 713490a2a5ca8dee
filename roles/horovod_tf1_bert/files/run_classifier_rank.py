# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Run the fork's run_classifier.py, unchanged, as one of Horovod's processes, and print its steps.

mpirun or horovodrun starts the processes. Without a TPU, TensorFlow 1.15 prints neither the
number of a step nor its loss; a hook of the fork's estimator prints them, in the format of role horovod_bert.
The estimator fetches the loss of every step anyway. Runs on Python 3.6 and 3.7.
"""

import argparse
import math
import os
import runpy
import shutil
import signal
import socket
import sys
import tempfile
import time
import zlib
from typing import Any, Dict

import trainer_kit

trainer_kit.die_with_parent()

import backend  # noqa: E402
import classifier_flags  # noqa: E402
import data_stamp  # noqa: E402
import horovod  # noqa: E402
import horovod.tensorflow as hvd  # noqa: E402
import tensorflow as tf  # noqa: E402

# The largest difference between the processes' weights at the end, as a share of their norm. The weights of
# the fork differ by up to 3e-5 after 120 steps: it computes the learning rate from the number of the step
# while that is written. Where gradients are not summed, they differ by 6e-3 and more (tiny model, 2 and 4
# processes).
LARGEST_DIFFERENCE = 1e-3


# The prefix of the recorded logs.
say = trainer_kit.Say("HOROVOD_BERT")


def arguments() -> argparse.Namespace:
    """Return the command line; every value that affects a measurement has an option."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--fork", required=True, help="directory of run_classifier.py")
    parser.add_argument("--data", required=True, help="directory of the vocabularies and sizes of the models")
    parser.add_argument(
        "--data-dir", required=True, help="directory that the fork reads the task's data from"
    )
    parser.add_argument("--launcher", choices=["mpirun", "horovodrun"], required=True)
    parser.add_argument("--task", required=True, help="a task that the fork knows")
    parser.add_argument("--device", choices=["cpu", "gpu"], required=True)
    parser.add_argument("--devices", type=int, required=True, help="number of processes of the run")
    parser.add_argument("--model", required=True)
    parser.add_argument("--batch", type=int, required=True, help="samples per device and step")
    parser.add_argument("--steps", type=int, required=True, help="of every device")
    parser.add_argument("--length", type=int, required=True, help="words of a sample")
    parser.add_argument("--learning-rate", type=float, required=True, help="learning rate of one device")
    parser.add_argument("--checkpoint", default="", help="weights to start with; empty: new ones")
    parser.add_argument("--scratch", required=True, help="directory for the fork's temporary files")
    args = parser.parse_args()
    args.samples = data_stamp.read(args.data)["samples"]
    return args


class Monitor(tf.train.SessionRunHook):
    """Prints what takes part, every step, and whether all processes trained one model."""

    def __init__(self, args: argparse.Namespace, operation: str) -> None:
        self.args, self.operation, self.done = args, operation, 0
        self.first = self.last = 0.0

    def begin(self) -> None:
        """Add the counts and comparisons over all processes to the graph before it is finalized."""
        self.loss = tf.get_collection(tf.GraphKeys.LOSSES)[0]
        node = "%s %s" % (os.environ["TASK_INDEX"], socket.gethostname())
        self.nodes = hvd.allgather(tf.constant([zlib.crc32(node.encode())], tf.int64), name="scalebook_nodes")
        weights = tf.concat([tf.reshape(v, [-1]) for v in tf.trainable_variables()], 0)
        mean = hvd.allreduce(weights)
        difference = tf.norm(weights - mean) / tf.norm(mean)
        self.difference = hvd.allgather(tf.reshape(difference, [1]), name="scalebook_difference")

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Print what takes part and what it does."""
        args, size = self.args, hvd.size()
        nodes = len(set(session.run(self.nodes).tolist()))
        place = {"node_rank": os.environ["TASK_INDEX"], "host": socket.gethostname(), "rank": hvd.rank()}
        say(world_size=size, backend=self.operation, nodes=nodes, **place)
        operations = "+".join(backend.operations(hvd))
        say(horovod=horovod.__version__, built=operations, tensorflow=tf.__version__)
        say(batch=args.batch, accumulation=1, global_batch=args.batch * size, length=args.length)
        say(dtype="fp32", compression="fp16")
        count = sum(int(v.shape.num_elements()) for v in tf.trainable_variables())
        say(model=args.model, parameters=count)

    def before_run(self, run_context: Any) -> Any:
        """Request the loss, which the estimator fetches anyway."""
        return tf.train.SessionRunArgs(self.loss)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Print the step; end the run when its loss is not finite."""
        now = time.time()
        self.done += 1
        self.first, self.last = self.first or now, now
        step = "%d/%d" % (self.done, self.args.steps)
        say(step=step, loss="%.4f" % run_values.results, time="%.6f" % now)
        if not math.isfinite(run_values.results):
            sys.exit("the loss of step %d on rank %d is %s" % (self.done, hvd.rank(), run_values.results))

    def end(self, session: Any) -> None:
        """Fail when the processes have different weights."""
        difference = max(session.run(self.difference).tolist())
        if difference > LARGEST_DIFFERENCE:
            sys.exit("the processes' weights differ by %.2g: gradients were not summed" % difference)
        say(steps_done=self.done, loss="finite", apart="%.2g" % difference)


class Results:
    """Gives every estimator of the fork the hook; keeps how long it trains, and its evaluation."""

    def __init__(self, args: argparse.Namespace, operation: str) -> None:
        self.args, self.monitor = args, Monitor(args, operation)
        self.seconds = 0.0
        self.evaluated: Dict[str, Any] = {}
        estimator = tf.contrib.tpu.TPUEstimator
        train, evaluate = estimator.train, estimator.evaluate

        def with_hook(own: Any, *positional: Any, **named: Any) -> Any:
            named["hooks"] = list(named.get("hooks") or []) + [self.monitor]
            began = time.time()
            result = train(own, *positional, **named)
            self.seconds = time.time() - began
            return result

        def with_result(own: Any, *positional: Any, **named: Any) -> Any:
            self.evaluated = evaluate(own, *positional, **named)
            return self.evaluated

        estimator.train, estimator.evaluate = with_hook, with_result

    def say(self) -> None:
        """Print the evaluation and the times: of this training, and of an epoch at the pace of its steps."""
        args, monitor = self.args, self.monitor
        pace = (monitor.last - monitor.first) / max(1, monitor.done - 1)
        steps = args.samples / args.batch / hvd.size()
        say(
            eval_accuracy="%.4f" % self.evaluated["eval_accuracy"],
            eval_loss="%.4f" % self.evaluated["eval_loss"],
            train_seconds="%.1f" % self.seconds,
            epochs="%.3f" % (monitor.done / steps),
            epoch_seconds="%.1f" % (pace * steps),
        )


def main() -> None:
    """Form the group and run the fork."""
    args = arguments()
    try:
        operation = backend.backend(args.device, backend.operations(hvd))
    except backend.MissingOperationError as error:
        sys.exit(str(error))
    hvd.init()
    if hvd.size() != args.devices:
        sys.exit(
            "Horovod sees %d processes, the run has %d: start it with the mpirun that Horovod was built with"
            % (hvd.size(), args.devices)
        )
    if args.launcher == "horovodrun" and hvd.rank() > 0:
        # horovodrun writes all processes to one log, in which the steps of one count.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the process ends
    results = Results(args, operation)
    # A process that is stopped removes its checkpoints too: those of BERT base are above 1 GB.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    output = tempfile.mkdtemp(prefix="output-", dir=args.scratch)
    sys.argv = ["run_classifier.py", *classifier_flags.flags(args, output)]
    say(command="'%s'" % " ".join(sys.argv))
    sys.path.insert(0, args.fork)
    try:
        runpy.run_path(os.path.join(args.fork, "run_classifier.py"), run_name="__main__")
    except SystemExit as exit_:
        if exit_.code:
            raise
    finally:
        shutil.rmtree(output, ignore_errors=True)
    results.say()
    say(weights="agree", end="true")


if __name__ == "__main__":
    main()
