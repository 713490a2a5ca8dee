# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Versions of the installed software, and the place of a process.

As a program it prints the versions as one JSON object.
"""

import json
import os
import platform
import socket
from typing import Any, Dict

import backend
import horovod
import horovod.torch as hvd
import torch


def place() -> Dict[str, Any]:
    """Return the place of this process: the number of its node in the job, its host's name, its rank."""
    return {"node_rank": os.environ["TASK_INDEX"], "host": socket.gethostname(), "rank": hvd.rank()}


def nodes() -> int:
    """Return how many nodes take part, counted among the processes."""
    places = hvd.allgather_object((os.environ["TASK_INDEX"], socket.gethostname()))
    return len(set(places))


def main() -> None:
    """Print the versions."""
    versions = {
        "horovod": horovod.__version__,
        "operations": backend.operations(hvd),
        "torch": torch.__version__,
        "cuda": torch.version.cuda or "",
        "gpus": torch.cuda.device_count() if torch.cuda.is_available() else 0,
        "python": platform.python_version(),
    }
    print(json.dumps(versions))


if __name__ == "__main__":
    main()
