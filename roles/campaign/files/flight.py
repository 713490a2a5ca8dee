#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Which collective each rank of a hung workload is in, as the flight recorder of torch has it.

With NCCL each rank waits for its GPU somewhere behind the collective that hangs, so its stack does not show
which one.  torch (ProcessGroupNCCL.cpp, FlightRecorder.cpp, 2.11) keeps the last collectives of a rank.
Where node scripts set TORCH_NCCL_DEBUG_INFO_PIPE_FILE, it makes a pipe for each rank: who writes into it gets
them as a file, from a thread that needs neither the interpreter nor the GPU.  The file is a pickle, of plain
values only; nothing else is read from it.

Runs on the nodes' own Python, 3.6 or later, standard library only.
"""

import glob
import os
import pickle
import re
import stat
import time
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

import procfs

PATIENCE = 4.0
"""Seconds that all ranks of the node have; torch looks at a pipe once a second."""

LARGEST = 1 << 26
"""Bytes of a file that are read at most; one of 2,000 collectives has about 2 MB."""

GROUPS = 8
"""Process groups of a rank that are reported at most, those that wait first."""

PIPE = b"TORCH_NCCL_DEBUG_INFO_PIPE_FILE"
FILES = (b"TORCH_FR_DUMP_TEMP_FILE", b"TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
"""The variables with the name of the files, without the rank; the second is that of earlier versions."""

LIBRARY = re.compile(r"/(?:site|dist)-packages/|/lib/python3|^<")


class PlainUnpickler(pickle.Unpickler):
    """Reads numbers, texts and their lists, tuples and dictionaries; refuses everything that is code."""

    def find_class(self, module: str, name: str) -> Any:
        """Refuse any class or function."""
        raise pickle.UnpicklingError("%s.%s is not a plain value" % (module, name))


def read(path: str) -> Optional[Dict[str, Any]]:
    """Return what is in a file of the flight recorder, None where it is not (yet) a whole one."""
    try:
        with open(path, "rb") as stream:
            if os.fstat(stream.fileno()).st_size > LARGEST:
                return None
            content = PlainUnpickler(stream).load()
    except (OSError, EOFError, ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError):
        return None
    except (pickle.UnpicklingError, MemoryError, RecursionError):
        return None
    return content if isinstance(content, dict) and isinstance(content.get("entries"), list) else None


def place(frames: Iterable[Dict[str, Any]]) -> str:
    """Return the first function that is not of a library, with its place; empty where there is none."""
    for frame in frames:
        if not LIBRARY.search(str(frame["filename"])):
            return "%s:%s, %s" % (os.path.basename(frame["filename"]), frame["line"], frame["name"])
    return ""


def groups(content: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Return for each process group its last collective, and the first one that has not ended, if any.

    `last` and `number` count the collectives of the group; messages between two ranks have none.
    """
    of_groups: Dict[str, Dict[str, Any]] = {}
    for entry in content["entries"]:
        name = str(entry["process_group"][0])
        group = of_groups.setdefault(name, {"group": name, "last": 0})
        if not entry["is_p2p"]:
            group["last"] = max(group["last"], int(entry["collective_seq_id"]))
        # Gloo's do not get the state completed, they are retired.
        if "waits" not in group and entry["state"] != "completed" and not entry["retired"]:
            group["waits"] = str(entry["profiling_name"]).split(":", 1)[-1]
            group["place"] = place(entry.get("frames") or ())
            if not entry["is_p2p"]:
                group["number"] = int(entry["collective_seq_id"])
    return sorted(of_groups.values(), key=lambda group: "waits" not in group)[:GROUPS]


def pipes(pids: Iterable[int]) -> Dict[int, Tuple[str, str]]:
    """Return {rank: (pipe, file)} of the ranks of these processes."""
    ranks = {}
    for _, environment in procfs.environments(pids):
        named = dict(word.split(b"=", 1) for word in environment if b"=" in word)
        stem = named.get(PIPE, b"").decode("utf-8", "replace")
        file = next((named[name] for name in FILES if named.get(name)), b"").decode("utf-8", "replace")
        if not (stem and file):
            continue
        for path in glob.glob(glob.escape(stem) + "*.pipe"):
            rank = path[len(stem) : -len(".pipe")]
            if rank.isdigit() and stat.S_ISFIFO(os.stat(path).st_mode):
                ranks[int(rank)] = path, file + rank
    return ranks


def ask(pids: List[int], event: Callable[..., Any], patience: float = PATIENCE) -> None:
    """Write into the node's log which collective each of the ranks among `pids` is in, by `event`."""
    waiting = {}
    for rank, (pipe, file) in sorted(pipes(pids).items()):
        try:
            if os.path.exists(file):
                os.remove(file)
            descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
            try:
                os.write(descriptor, b"1\n")
            finally:
                os.close(descriptor)
        except OSError:
            continue  # it has ended: nobody reads the pipe
        waiting[rank] = file
    deadline = time.monotonic() + patience
    while waiting:
        for rank, file in list(waiting.items()):
            content = read(file)
            if content:
                del waiting[rank]
                report(rank, content, event)
        if time.monotonic() > deadline:
            return
        time.sleep(0.05)


def report(rank: int, content: Dict[str, Any], event: Callable[..., Any]) -> None:
    """Write one line for each process group of a rank."""
    try:
        for group in groups(content):
            event(event="collective", rank=rank, **group)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OSError):
        return  # it is of another version of torch, or the disk of the log is full
