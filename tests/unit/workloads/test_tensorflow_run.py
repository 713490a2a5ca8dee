# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""tensorflow_run.py: a trainer starts as Python starts it where its GPUs are seen, and its step is shown."""

import os
import subprocess
import sys
import zlib

import pytest
from role_files import ROLES

RUN = ROLES / "workload/files/kit/tensorflow_run.py"
# A stand-in for TensorFlow that sees two GPUs. What a trainer calls for each replica adds to the graph.
TENSORFLOW = """
from types import SimpleNamespace as Some


class StrategyExtended:
    def call_for_each_replica(self, fn, args=(), kwargs=None):
        graph.extend(fn(*args))
        return "result"


class CallbackList:
    def __init__(self, *variables):
        strategy = Some(experimental_local_results=lambda variable: variable)
        self.model = Some(distribute_strategy=strategy, trainable_variables=variables)

    def on_train_end(self, logs=None):
        print("train ends")


def operation(kind, dtype):
    return Some(type=kind, outputs=[Some(dtype=Some(name=dtype))])


def weights(*replicas):
    return [Some(numpy=lambda each=each: Some(tobytes=lambda: each)) for each in replicas]


graph = [operation("MatMul", "int8")]
batch = [Some(shape=(8, 128)), Some(shape=(8, 128))]
config = Some(list_physical_devices=lambda kind: [0, 1], optimizer=Some(get_jit=lambda: "autoclustering"))
strategy = Some(num_replicas_in_sync=4, experimental_local_results=lambda value: value)
distribute = Some(get_strategy=lambda: strategy)
nest = Some(flatten=lambda args: [args[0]])
default = Some(get_operations=lambda: list(graph))
v1 = Some(distribute=Some(StrategyExtended=StrategyExtended), get_default_graph=lambda: default)
compat = Some(v1=v1)
keras = Some(callbacks=Some(CallbackList=CallbackList))
executing_eagerly = lambda: False
"""
TRAINER = "import os, sys\nprint(__name__, os.path.basename(sys.argv[0]), sys.argv[1:], sys.path[0])\n"
STEP = """
import tensorflow as tf
products = [tf.operation(kind, dtype) for kind, dtype in {products}]
made = tf.StrategyExtended().call_for_each_replica(lambda batch: products, (tf.batch,))
assert made == "result"
"""
END = """
import tensorflow as tf
tf.CallbackList({weights}).on_train_end()
"""


@pytest.fixture
def run(tmp_path):
    """Return a function that starts tensorflow_run.py beside the stand-in and a trainer."""
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages/tensorflow.py").write_text(TENSORFLOW)
    (tmp_path / "trainer.py").write_text(TRAINER)

    def start(*arguments):
        return subprocess.run(
            [sys.executable, RUN, *arguments],
            env={**os.environ, "PYTHONPATH": str(tmp_path / "packages")},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    return start


def test_a_run_without_its_gpus_ends_before_the_trainer_starts(run):
    done = run("3", "trainer.py")
    assert (done.returncode, done.stdout) == (1, "TensorFlow sees 2 GPUs, the run needs 3\n")


@pytest.mark.parametrize("trainer", [["trainer.py"], ["-m", "trainer"]], ids=["script", "module"])
def test_the_trainer_starts_as_python_starts_it(run, tmp_path, trainer):
    done = run("2", *trainer, "--steps", "5")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1] == f"__main__ trainer.py ['--steps', '5'] {tmp_path}"


@pytest.fixture
def shown(run, tmp_path):
    """Return a function that runs the text of a trainer, and returns how it ended."""

    def start(trainer, tensorflow=TENSORFLOW):
        (tmp_path / "trainer.py").write_text(trainer)
        (tmp_path / "packages/tensorflow.py").write_text(tensorflow)
        done = run("2", "trainer.py")
        return done.returncode, done.stdout.splitlines()[1:], done.stderr

    return start


def test_a_step_is_described_by_its_graph(shown):
    products = [("Einsum", "float16"), ("Mul", "float32"), ("MatMul", "float16")]
    line = "TENSORFLOW replicas=4 global_batch=32 dtype=float16 xla=true"
    assert shown(STEP.format(products=products)) == (0, [line], "")


def test_every_dtype_of_the_products_of_a_step_is_named(shown):
    products = [("MatMul", "float32"), ("Conv2D", "float16"), ("Conv2D", "float16")]
    assert " dtype=float16,float32 " in shown(STEP.format(products=products))[1][0]


def test_a_batch_without_a_size_in_the_graph_is_unknown(shown):
    unsized = TENSORFLOW.replace("Some(shape=(8, 128))]", "Some(shape=(None, 128))]")
    assert " global_batch=unknown " in shown(STEP.format(products=[("MatMul", "float32")]), unsized)[1][0]


def test_a_function_without_products_is_no_step(shown):
    assert shown(STEP.format(products=[("AssignAddVariableOp", "float32")])) == (0, [], "")


def test_what_is_not_a_graph_is_no_step(shown):
    eager = TENSORFLOW.replace("executing_eagerly = lambda: False", "executing_eagerly = lambda: True")
    assert shown(STEP.format(products=[("MatMul", "float32")]), eager) == (0, [], "")


def test_the_weights_of_a_node_are_one_checksum(shown):
    weights = 'tf.weights(b"one", b"one"), tf.weights(b"two", b"two")'
    line = f"TENSORFLOW weights={zlib.crc32(b'onetwo'):08x} compared=2"
    assert shown(END.format(weights=weights)) == (0, ["train ends", line], "")


def test_replicas_with_different_weights_end_the_run(shown):
    status, lines, error = shown(END.format(weights='tf.weights(b"one", b"one"), tf.weights(b"two", b"2")'))
    assert (status, lines) == (1, ["train ends"])
    assert error.startswith("the replicas hold different weights: the gradients were not summed: [")
