# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The place of a process, the versions of its software, and the shape of the data."""

import os
import platform
import socket
import subprocess
from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy as np
import torch
import torch.distributed as dist


def shape(directory: str) -> Tuple[int, int]:
    """Return (tokens, predictions) of a sample in a directory of arrays."""
    arrays = [
        np.load(os.path.join(directory, name + ".npy"), mmap_mode="r") for name in ("words", "positions")
    ]
    return arrays[0].shape[1], arrays[1].shape[1]


def nodes() -> int:
    """Return how many nodes take part: launchers counted over the ranks, not an argument."""
    mine = (os.environ["GROUP_RANK"], socket.gethostname())
    places: List[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(places, mine)
    return len(set(places))


def where() -> Dict[str, str]:
    """Return the place of this process, by the launcher."""
    return {
        "node_rank": os.environ["GROUP_RANK"],
        "processes": os.environ["LOCAL_WORLD_SIZE"],
        "host": socket.gethostname(),
    }


def driver() -> Optional[str]:
    """Return the version of the NVIDIA driver, or None."""
    try:
        answer = subprocess.run(
            ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            universal_newlines=True,
            timeout=30,
        )
    except (OSError, subprocess.SubprocessError):
        return None  # torch runs without the tool; the line then has None
    words = answer.stdout.split()
    return words[0] if words else None


def software(device: torch.device) -> Iterator[Dict[str, Any]]:
    """Yield lines, each a dict, about versions and devices of this node."""
    yield {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
    }
    if device.type == "cuda":
        version = torch.cuda.nccl.version()
        yield {"cuda": torch.version.cuda, "nccl": ".".join(map(str, version)), "driver": driver()}
        for index in range(torch.cuda.device_count()):
            found = torch.cuda.get_device_properties(index)
            yield {"gpu": index, "memory_mib": found.total_memory >> 20, "name": "'%s'" % found.name}
