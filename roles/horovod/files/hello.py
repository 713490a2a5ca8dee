# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""One process of a hello run: add up what every process has to give, with Horovod.

    mpirun ... python hello.py torch|tensorflow cpu|gpu

Rank r gives r + 1 on each place of an array; each process prints one line with what it got:
``scalebook <host> <rank> <size> <sum>``.
"""

import os
import platform
import sys

LENGTH = 1 << 20


def with_torch(device):
    """Return (rank, size, sum of the first and last place) with torch."""
    import horovod.torch as hvd
    import torch

    hvd.init()
    value = torch.full((LENGTH,), float(hvd.rank() + 1))
    if device == "gpu":
        torch.cuda.set_device(hvd.local_rank())
        value = value.cuda()
    got = hvd.allreduce(value, op=hvd.Sum, name="hello")
    return hvd.rank(), hvd.size(), float(got[0] + got[-1]) / 2


def with_tensorflow(device):
    """Return (rank, size, sum of the first and last place) with TensorFlow."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import horovod.tensorflow as hvd
    import tensorflow as tf

    tf.compat.v1.enable_eager_execution()  # TensorFlow 1 does not by itself
    hvd.init()
    gpus = tf.config.experimental.list_physical_devices("GPU") if device == "gpu" else []
    if gpus:
        tf.config.experimental.set_visible_devices(gpus[hvd.local_rank()], "GPU")
        tf.config.experimental.set_memory_growth(gpus[hvd.local_rank()], True)
    with tf.device("/GPU:0" if gpus else "/CPU:0"):
        got = hvd.allreduce(tf.fill([LENGTH], float(hvd.rank() + 1)), op=hvd.Sum)
    return hvd.rank(), hvd.size(), float(got[0] + got[-1]) / 2


def main():
    """Print this process's line."""
    framework, device = sys.argv[1:]
    rank, size, total = {"torch": with_torch, "tensorflow": with_tensorflow}[framework](device)
    # One write: lines of several processes do not mix.
    sys.stdout.write("scalebook %s %d %d %d\n" % (platform.node(), rank, size, total))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
