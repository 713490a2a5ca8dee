# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Run a trainer of TensorFlow, after a check that TensorFlow sees the GPUs that the run needs.

tensorflow_run.py GPUS SCRIPT [ARGUMENT...]
tensorflow_run.py GPUS -m MODULE [ARGUMENT...]

Without a CUDA library TensorFlow prints a warning, trains on the CPU and exits with status 0. The check is in
the trainer's process: one of its own would import TensorFlow once more, six seconds of each run on an H200.
"""

import os
import runpy
import sys

import tensorflow as tf


def main() -> None:
    """Check the GPUs, then run the trainer as `python SCRIPT` or `python -m MODULE` does."""
    needed = int(sys.argv[1])
    gpus = len(tf.config.list_physical_devices("GPU"))
    print("TensorFlow sees %d GPUs, the run needs %d" % (gpus, needed), flush=True)
    if gpus < needed:
        sys.exit(1)
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
