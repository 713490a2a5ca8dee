# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The logs of a run -> what its GPUs were connected by, as NCCL chose it."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from ansible.module_utils.scalebook import nccl_lines, network
from ansible.module_utils.scalebook.contracts import Interconnect, Record
from ansible.module_utils.scalebook.files import NotRegularError, open_regular
from ansible.module_utils.scalebook.unpack import UnpackError, unpacked

MOST = 1 << 26
"""Bytes of the lines of a node's further processes that are read at most."""


def file_of(node: str) -> str:
    """Return the name of the file with the lines of a node's further processes (run_node)."""
    return f"{node}.nccl.xz"


def of_run(run_dir: str | os.PathLike[str], nodes: Sequence[str]) -> Interconnect | None:
    """Return what NCCL said on all `nodes` of a run, None where it said nothing."""
    return nccl_lines.of_nodes(nodes, [_lines(Path(run_dir), node) for node in nodes])


def refuse_sockets(record: Record) -> None:
    """Make a run that counts `refused` if it used sockets where InfiniBand or RoCE is up."""
    why = network.refusal(record.get("nccl"), record.get("hardware") or ())
    if why:
        record["status"], record["last_lines"] = "refused", []
        record["reason"] = why
        record.pop("telemetry", None)


def _lines(run_dir: Path, node: str) -> Iterator[str]:
    """Yield the lines that NCCL may have written in a node's first process, and in its further ones."""
    try:
        with open_regular(run_dir / f"{node}.log") as log:
            lines = io.BufferedReader(cast(io.RawIOBase, log))
            yield from (line.decode("utf-8", "replace") for line in lines if nccl_lines.MARK.encode() in line)
        with open_regular(run_dir / file_of(node)) as packed:
            yield from unpacked(packed.read(), MOST).decode("utf-8", "replace").splitlines()
    except (OSError, NotRegularError, UnpackError):
        return  # what is missing says the record elsewhere; mostly there are no further processes
