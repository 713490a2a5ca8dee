# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What a run says of its place and software, and the shape of its data."""

import os
import platform
import socket
import subprocess

import numpy as np
import torch
import torch.distributed as dist


def shape(directory):
    """(tokens, predictions) of a sample in a directory of arrays."""
    arrays = [
        np.load(os.path.join(directory, name + ".npy"), mmap_mode="r") for name in ("words", "positions")
    ]
    return arrays[0].shape[1], arrays[1].shape[1]


def nodes():
    """How many nodes really take part: different launchers among the ranks, not what one was told."""
    mine = (os.environ["GROUP_RANK"], socket.gethostname())
    seen = [None] * dist.get_world_size()
    dist.all_gather_object(seen, mine)
    return len(set(seen))


def where():
    """This process' place, by the launcher."""
    return {
        "node_rank": os.environ["GROUP_RANK"],
        "processes": os.environ["LOCAL_WORLD_SIZE"],
        "host": socket.gethostname(),
    }


def driver():
    """Version of the NVIDIA driver, or None."""
    try:
        answer = subprocess.run(
            ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            universal_newlines=True,
            timeout=30,
        )
    except (OSError, subprocess.SubprocessError):
        return None  # torch runs without the tool; the line then says None
    return (answer.stdout.split() or [None])[0]


def software(device):
    """Lines, each a dict, on versions and devices of this node."""
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
