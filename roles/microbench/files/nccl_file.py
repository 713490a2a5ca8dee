# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Keep the lines in which NCCL says what it connects the GPUs by: each process has a file of them.

They are those of INIT, NET and GRAPH, as node scripts ask for them (roles/workload/files/kit/run_head.sh).
Where the user's environment says where NCCL writes, nothing is kept. Python 3.6 or later.
"""

import lzma
import os
from typing import Dict, Iterable, List, Tuple

NAME = "collectives.nccl.xz"
NODE = "NODE %d\n"
"""The line before those of a node."""
ENDS: Dict[str, int] = {}
"""How far the file of this process was read: it may be in one process group after another."""
OF_PROCESS = (b"NCCL version", b": Using ")
"""What NCCL says once in a process."""


def listen(folder: str, rank: int) -> str:
    """Make NCCL write the lines of this process into a file, and return its path."""
    earlier = os.environ.get("NCCL_DEBUG_FILE")
    if earlier:
        return earlier if earlier in ENDS else ""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "nccl.%d" % rank)
    ENDS[path] = 0
    os.environ["NCCL_DEBUG_FILE"] = path
    os.environ.setdefault("NCCL_DEBUG", "INFO")
    os.environ.setdefault("NCCL_DEBUG_SUBSYS", "INIT,NET,GRAPH")
    return path


def packed(path: str) -> bytes:
    """Return the packed lines of this process since the last call, and what it says once."""
    try:
        with open(path, "rb") as stream:
            text = stream.read()
    except OSError:
        text = b""  # the environment keeps NCCL from writing any
    begin = ENDS.get(path, 0)
    ENDS[path] = len(text)
    once = [line for line in text[:begin].splitlines(True) if any(words in line for words in OF_PROCESS)]
    lines = [line for line in text[begin:].splitlines(True) if b"NCCL " in line]
    return lzma.compress(b"".join(once + lines))


def remove(path: str) -> None:
    """Remove the file of this process, which will be in no other group."""
    if os.path.exists(path):
        os.remove(path)


def of_nodes(ranks: Iterable[Tuple[int, bytes]]) -> bytes:
    """Return the packed lines of all ranks, (number of the node, packed lines), by node."""
    lines_of: Dict[int, List[bytes]] = {}
    for node, lines in ranks:
        lines_of.setdefault(node, []).append(lzma.decompress(lines))
    parts = [(NODE % node).encode() + b"".join(lines) for node, lines in sorted(lines_of.items())]
    return lzma.compress(b"".join(parts))
