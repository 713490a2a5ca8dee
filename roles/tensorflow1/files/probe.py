# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Print the versions of TensorFlow 1 and Horovod, Horovod's operations, and how many GPUs there are, as JSON.

Runs on Python 3.6 and 3.7.
"""

import json
import os

# TensorFlow's messages are not printed.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import backend  # noqa: E402
import horovod.tensorflow as hvd  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.python.client import device_lib  # noqa: E402

facts = backend.facts("TensorFlow " + tf.__version__, hvd)
facts["gpus"] = sum(device.device_type == "GPU" for device in device_lib.list_local_devices())
print(json.dumps(facts))
