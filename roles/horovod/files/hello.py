# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""One process of the test run: sum a value of every process with Horovod.

    mpirun ... python hello.py torch|tensorflow|mxnet cpu|gpu

Rank r contributes an array of r + 1; each process prints one line with the result:
``scalebook <host> <rank> <size> <sum>``.
"""

import os
import platform
import sys
from typing import Tuple

LENGTH = 1 << 20


def with_torch(device: str) -> Tuple[int, int, float]:
    """Return (rank, size, sum of the first and last place) with torch."""
    import horovod.torch as hvd
    import torch

    hvd.init()
    value = torch.full((LENGTH,), float(hvd.rank() + 1))
    if device == "gpu":
        torch.cuda.set_device(hvd.local_rank())
        value = value.cuda()
    result = hvd.allreduce(value, op=hvd.Sum, name="hello")
    return hvd.rank(), hvd.size(), float(result[0] + result[-1]) / 2


def with_tensorflow(device: str) -> Tuple[int, int, float]:
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
        result = hvd.allreduce(tf.fill([LENGTH], float(hvd.rank() + 1)), op=hvd.Sum)
    return hvd.rank(), hvd.size(), float(result[0] + result[-1]) / 2


def with_mxnet(device: str) -> Tuple[int, int, float]:
    """Return (rank, size, sum of the first and last place) with MXNet."""
    import horovod.mxnet as hvd
    import mxnet as mx

    hvd.init()
    context = mx.gpu(hvd.local_rank()) if device == "gpu" else mx.cpu()
    value = mx.nd.full((LENGTH,), float(hvd.rank() + 1), ctx=context)
    result = hvd.allreduce(value, average=False, name="hello").asnumpy()
    return hvd.rank(), hvd.size(), float(result[0] + result[-1]) / 2


FRAMEWORKS = {"torch": with_torch, "tensorflow": with_tensorflow, "mxnet": with_mxnet}


def main() -> None:
    """Print this process's line."""
    framework, device = sys.argv[1:]
    rank, size, total = FRAMEWORKS[framework](device)
    # One write, so that lines of several processes do not mix.
    sys.stdout.write("scalebook %s %d %d %d\n" % (platform.node(), rank, size, total))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
