# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Run a trainer of TensorFlow, and print what TensorFlow trains, which the trainer does not.

tensorflow_run.py GPUS SCRIPT [ARGUMENT...]
tensorflow_run.py GPUS -m MODULE [ARGUMENT...]

Without a CUDA library TensorFlow prints a warning, trains on the CPU and exits with status 0. The check is in
the trainer's process: one of its own would import TensorFlow once more, six seconds of each run on an H200.

The batch and the dtype are those of the graph of a step, read when TensorFlow has made it; the weights are
read after the last step. Neither the graph nor what is timed changes.
"""

import functools
import os
import runpy
import sys
import zlib
from collections import Counter
from typing import Any, Callable, Iterable

import tensorflow as tf

PRODUCTS = ("BatchMatMulV2", "BatchMatMulV3", "Conv2D", "Einsum", "MatMul")
"""Operations that multiply matrices: nearly all of the arithmetic of a step."""


def describe(operations: Iterable[Any], args: Any) -> None:
    """Print what the operations of a step compute with and how many samples; nothing for other functions."""
    products = Counter(each.outputs[0].dtype.name for each in operations if each.type in PRODUCTS)
    if not products:
        return
    strategy = tf.distribute.get_strategy()
    replicas = strategy.num_replicas_in_sync
    batches = [each.shape[0] for each in strategy.experimental_local_results(tf.nest.flatten(args)[0])]
    # A batch that may be smaller at the end of the data has no size in the graph.
    is_known = None not in batches
    line = "TENSORFLOW replicas=%d global_batch=%s dtype=%s xla=%s" % (
        replicas,
        sum(batches) * replicas // len(batches) if is_known else "unknown",
        ",".join(name for name, _ in products.most_common()),
        str(bool(tf.config.optimizer.get_jit())).lower(),
    )
    print(line, flush=True)


def showing_steps(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return the `call_for_each_replica` of a strategy, which then describes the graph that it has made."""

    def call_and_describe(extended: Any, fn: Any, args: Any = (), kwargs: Any = None) -> Any:
        if tf.executing_eagerly():
            return call(extended, fn, args, kwargs)
        graph = tf.compat.v1.get_default_graph()
        before = len(graph.get_operations())
        result = call(extended, fn, args, kwargs)
        describe(graph.get_operations()[before:], args)
        return result

    return call_and_describe


def checksum(weights: Iterable[Any]) -> int:
    """Return the CRC of the weights of one replica."""
    return functools.reduce(lambda crc, each: zlib.crc32(each.numpy().tobytes(), crc), weights, 0)


def comparing_weights(end: Callable[..., None]) -> Callable[..., None]:
    """Return the `on_train_end` of all callbacks, which then compares the weights of the node's replicas.

    Those of all nodes are compared by who reads their logs.
    """

    def end_and_compare(callbacks: Any, logs: Any = None) -> None:
        end(callbacks, logs)
        local = callbacks.model.distribute_strategy.experimental_local_results
        weights = [local(each) for each in callbacks.model.trainable_variables]
        sums = [checksum(each[replica] for each in weights) for replica in range(len(weights[0]))]
        if len(set(sums)) != 1:
            sys.exit("the replicas hold different weights: the gradients were not summed: %s" % sums)
        print("TENSORFLOW weights=%08x compared=%d" % (sums[0], len(sums)), flush=True)

    return end_and_compare


def main() -> None:
    """Check the GPUs, then run the trainer as `python SCRIPT` or `python -m MODULE` does."""
    needed = int(sys.argv[1])
    gpus = len(tf.config.list_physical_devices("GPU"))
    print("TensorFlow sees %d GPUs, the run needs %d" % (gpus, needed), flush=True)
    if gpus < needed:
        sys.exit(1)
    strategy, callbacks = tf.compat.v1.distribute.StrategyExtended, tf.keras.callbacks.CallbackList
    strategy.call_for_each_replica = showing_steps(strategy.call_for_each_replica)
    callbacks.on_train_end = comparing_weights(callbacks.on_train_end)
    del sys.argv[:2]
    if sys.argv[0] == "-m":
        del sys.argv[0]
        sys.path[0] = os.getcwd()
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
