# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What Horovod was built with for TensorFlow 1, where the fork of BERT runs. As a program: one JSON object.

Runs on Python 3.6 and 3.7.
"""

import json
import os
import platform

# The one object on standard output is all that is wanted.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import carrier  # noqa: E402
import horovod  # noqa: E402
import horovod.tensorflow as hvd  # noqa: E402
import tensorflow as tf  # noqa: E402


def main():
    """Print what is installed."""
    found = {
        "horovod": horovod.__version__,
        "operations": carrier.operations(hvd),
        "tensorflow": tf.__version__,
        "python": platform.python_version(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
