# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Print the versions of MXNet and Horovod, Horovod's operations and the number of GPUs as one JSON object.

Runs on Python 3.6 and 3.7.
"""

import json

import backend
import horovod
import horovod.mxnet as hvd
import mxnet


def main() -> None:
    """Print the versions."""
    versions = {
        "horovod": horovod.__version__,
        "operations": backend.operations(hvd),
        "mxnet": mxnet.__version__,
        "gpus": mxnet.context.num_gpus(),
    }
    print(json.dumps(versions))


if __name__ == "__main__":
    main()
