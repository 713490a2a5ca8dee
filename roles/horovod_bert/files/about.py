# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What is installed, and what a process says of its place.

As a program it prints what is installed as one JSON object.
"""

import json
import os
import platform
import socket

import carrier
import horovod
import horovod.torch as hvd
import torch


def place():
    """Return this process' place: its node by the gang's word, and its host's own name."""
    return {"node_rank": os.environ["TASK_INDEX"], "host": socket.gethostname(), "rank": hvd.rank()}


def nodes():
    """Return how many nodes really take part: different ones among the processes, not what one was told."""
    seen = hvd.allgather_object((os.environ["TASK_INDEX"], socket.gethostname()))
    return len(set(seen))


def main():
    """Print what is installed."""
    found = {
        "horovod": horovod.__version__,
        "operations": carrier.operations(hvd),
        "torch": torch.__version__,
        "cuda": torch.version.cuda or "",
        "gpus": torch.cuda.device_count() if torch.cuda.is_available() else 0,
        "python": platform.python_version(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
