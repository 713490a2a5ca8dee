# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Run the fork's run_classifier.py, unchanged, as one of Horovod's processes, and say what it does.

mpirun starts the processes. The fork gets the flags of seed 003. Without a TPU TensorFlow 1.15 prints
neither the number of a step nor its loss, so a hook that the fork's estimator is given besides prints them,
in the words of train.py; the estimator fetches the loss of every step anyway. Runs on Python 3.6 and 3.7.
"""

import argparse
import ctypes
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

# A run that loses its launcher must not live on (Linux: PR_SET_PDEATHSIG is 1).
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import carrier  # noqa: E402
import horovod  # noqa: E402
import horovod.tensorflow as hvd  # noqa: E402
import tensorflow as tf  # noqa: E402
import upstream_flags  # noqa: E402

# How far the processes' weights may be apart at the end, as a share of their norm. Those of the fork drift
# apart by up to 3e-5 in 120 steps: for the learning rate it reads the number of the step, which is written
# at the same time. Where gradients are not summed it is 6e-3 and more (tiny model, 2 and 4 processes).
APART = 1e-3


def say(*pairs):
    """One line of ours on standard output."""
    print("HOROVOD_BERT " + " ".join("%s=%s" % pair for pair in pairs), flush=True)


def arguments():
    """The command line; every value that decides a measurement is named here."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--fork", required=True, help="directory of run_classifier.py")
    parser.add_argument("--data", required=True, help="directory that upstream_data.py has filled")
    parser.add_argument("--device", choices=["cpu", "gpu"], required=True)
    parser.add_argument("--devices", type=int, required=True, help="processes that the run must have")
    parser.add_argument("--model", required=True)
    parser.add_argument("--batch", type=int, required=True, help="samples per device and step")
    parser.add_argument("--steps", type=int, required=True, help="of every device")
    parser.add_argument("--samples", type=int, required=True, help="pairs in the data's train.tsv")
    parser.add_argument("--length", type=int, required=True, help="words of a sample")
    parser.add_argument("--learning-rate", type=float, required=True, help="that of one device")
    parser.add_argument("--checkpoint", default="", help="weights to begin with; none: new ones")
    parser.add_argument("--scratch", required=True, help="where the fork may write; nothing stays")
    return parser.parse_args()


class Watch(tf.train.SessionRunHook):
    """Says what takes part, every step, and whether all processes trained one model."""

    def __init__(self, args, backend):
        self.args, self.backend, self.done = args, backend, 0

    def begin(self):
        """Add what is asked of all processes to the graph, before it is closed."""
        self.loss = tf.get_collection(tf.GraphKeys.LOSSES)[0]
        node = "%s %s" % (os.environ["TASK_INDEX"], socket.gethostname())
        self.nodes = hvd.allgather(tf.constant([zlib.crc32(node.encode())], tf.int64), name="scalebook_nodes")
        weights = tf.concat([tf.reshape(v, [-1]) for v in tf.trainable_variables()], 0)
        mean = hvd.allreduce(weights)
        apart = tf.norm(weights - mean) / tf.norm(mean)
        self.apart = hvd.allgather(tf.reshape(apart, [1]), name="scalebook_apart")

    def after_create_session(self, session, coord):
        """Lines on what takes part, and on what it does."""
        args, size = self.args, hvd.size()
        nodes = len(set(session.run(self.nodes).tolist()))
        place = [("node_rank", os.environ["TASK_INDEX"]), ("host", socket.gethostname())]
        say(("world_size", size), ("backend", self.backend), ("nodes", nodes), *place, ("rank", hvd.rank()))
        built = "+".join(carrier.operations(hvd))
        say(("horovod", horovod.__version__), ("built", built), ("tensorflow", tf.__version__))
        batch = [("batch", args.batch), ("accumulation", 1), ("global_batch", args.batch * size)]
        say(*batch, ("length", args.length))
        say(("dtype", "fp32"), ("compression", "fp16"))
        count = sum(int(v.shape.num_elements()) for v in tf.trainable_variables())
        say(("model", args.model), ("parameters", count))

    def before_run(self, run_context):
        """The estimator fetches the loss as well."""
        return tf.train.SessionRunArgs(self.loss)

    def after_run(self, run_context, run_values):
        """One line a step; ends the run where the loss is no number."""
        now = time.time()
        self.done += 1
        step = "%d/%d" % (self.done, self.args.steps)
        say(("step", step), ("loss", "%.4f" % run_values.results), ("time", "%.6f" % now))
        if not math.isfinite(run_values.results):
            sys.exit("the loss of step %d on rank %d is %s" % (self.done, hvd.rank(), run_values.results))

    def end(self, session):
        """Only one model counts."""
        apart = max(session.run(self.apart).tolist())
        if apart > APART:
            sys.exit("the processes' weights are %.2g apart: gradients were not summed" % apart)
        say(("steps_done", self.done), ("loss", "finite"), ("apart", "%.2g" % apart))


def watched(args, backend):
    """Have every estimator of the fork carry the hook."""
    estimator = tf.contrib.tpu.TPUEstimator
    train = estimator.train

    def with_hook(self, *positional, **named):
        named["hooks"] = list(named.get("hooks") or []) + [Watch(args, backend)]
        return train(self, *positional, **named)

    estimator.train = with_hook


def main():
    """Form the group, and let the fork train."""
    args = arguments()
    try:
        backend = carrier.backend(args.device, carrier.operations(hvd))
    except carrier.LackingError as error:
        sys.exit(str(error))
    hvd.init()
    if hvd.size() != args.devices:
        sys.exit(
            "Horovod sees %d processes, the run has %d: start it with the mpirun that Horovod was built with"
            % (hvd.size(), args.devices)
        )
    watched(args, backend)
    # What is ended removes its checkpoints too: those of BERT base are above 1 GB.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    output = tempfile.mkdtemp(prefix="output-", dir=args.scratch)
    sys.argv = ["run_classifier.py", *upstream_flags.flags(args, output)]
    say(("command", "'%s'" % " ".join(sys.argv)))
    sys.path.insert(0, args.fork)
    try:
        runpy.run_path(os.path.join(args.fork, "run_classifier.py"), run_name="__main__")
    except SystemExit as done:
        if done.code:
            raise
    finally:
        shutil.rmtree(output, ignore_errors=True)
    say(("weights", "agree"), ("end", "true"))


if __name__ == "__main__":
    main()
