# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Keep the lines in which NCCL says what it connects the GPUs by: each rank has a file of them.

They are those of INIT, NET and GRAPH, as node scripts ask for them (roles/workload/files/kit/run_head.sh).
Where the user's environment says where NCCL writes, nothing is kept. Python 3.6 or later.
"""

import lzma
import os
from typing import Dict, Iterable, List, Tuple

NAME = "collectives.nccl.xz"
NODE = "NODE %d\n"
"""The line before those of a node."""


def listen(folder: str, rank: int) -> str:
    """Make NCCL write the lines of this rank into a file, and return its path."""
    if "NCCL_DEBUG_FILE" in os.environ:
        return ""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "nccl.%d" % rank)
    os.environ["NCCL_DEBUG_FILE"] = path
    os.environ.setdefault("NCCL_DEBUG", "INFO")
    os.environ.setdefault("NCCL_DEBUG_SUBSYS", "INIT,NET,GRAPH")
    return path


def packed(path: str) -> bytes:
    """Return the packed lines of a rank, and remove their file."""
    try:
        with open(path, "rb") as stream:
            lines = [line for line in stream if b"NCCL " in line]
        os.remove(path)
    except OSError:
        lines = []  # the environment keeps NCCL from writing any
    return lzma.compress(b"".join(lines))


def write(folder: str, ranks: Iterable[Tuple[int, bytes]]) -> None:
    """Write the lines of all ranks, (number of the node, packed lines), into one file, by node."""
    of_nodes: Dict[int, List[bytes]] = {}
    for node, lines in ranks:
        of_nodes.setdefault(node, []).append(lzma.decompress(lines))
    parts = [(NODE % node).encode() + b"".join(lines) for node, lines in sorted(of_nodes.items())]
    with open(os.path.join(folder, NAME), "wb") as stream:
        stream.write(lzma.compress(b"".join(parts)))
