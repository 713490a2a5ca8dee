# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Print the version of TensorFlow, how many GPUs it sees and where its packages of CUDA are, as JSON.

    python probe.py MODULE...

A trainer has another MODULE in each version of tf-models-official: the one that is there is imported too.
"""

import importlib
import importlib.util
import json
import os
import sys

# tf-models-official is written for Keras 2, which is a package of its own beside a newer TensorFlow.
if importlib.util.find_spec("tf_keras"):
    os.environ["TF_USE_LEGACY_KERAS"] = "1"

import tensorflow as tf  # noqa: E402

# Models that are beside the environment are beside this program too.
sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "models"))


def has(module: str) -> bool:
    """Return whether a module can be imported."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


importlib.import_module(next(filter(has, sys.argv[1:]), sys.argv[-1]))
cuda = importlib.util.find_spec("nvidia.cuda_nvcc") if has("nvidia") else None
facts = {
    "versions": "TensorFlow " + tf.__version__,
    "gpus": len(tf.config.list_physical_devices("GPU")),
    # Where XLA finds libdevice and ptxas.
    "cuda": next(iter(cuda.submodule_search_locations or ()), "") if cuda else "",
    "fix": "It would train on the CPU without an error. Install the libraries that it does not find",
}
print(json.dumps(facts))
