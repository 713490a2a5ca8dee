# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Print the versions of TensorFlow 1 and Horovod, and Horovod's operations, as one JSON object.

Runs on Python 3.6 and 3.7.
"""

import json
import os
import platform

# TensorFlow's messages are not printed.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import backend  # noqa: E402
import horovod  # noqa: E402
import horovod.tensorflow as hvd  # noqa: E402
import tensorflow as tf  # noqa: E402


def main() -> None:
    """Print the versions."""
    versions = {
        "horovod": horovod.__version__,
        "operations": backend.operations(hvd),
        "tensorflow": tf.__version__,
        "python": platform.python_version(),
    }
    print(json.dumps(versions))


if __name__ == "__main__":
    main()
