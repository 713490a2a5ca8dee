# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Horovod: what its build is told, and what `horovodrun --check-build` says came of it.

A build that lacks something says nothing: without NCCL two GPUs are slower than one, and the way
to see it is the table that `--check-build` prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypedDict

FRAMEWORKS = ("TensorFlow", "PyTorch", "MXNet")
OPERATIONS = ("NCCL", "MPI", "Gloo")
"""What can be asked for, in the words of `--check-build`."""

_SECTIONS = {
    "Available Frameworks:": "frameworks",
    "Available Controllers:": "controllers",
    "Available Tensor Operations:": "operations",
}
_HEAD = re.compile(r"^Horovod v(\S+):\s*$")
_ENTRY = re.compile(r"^\s+\[([X ])\] (\S+)\s*$")


class HorovodError(ValueError):
    """A wish that no build can fulfil, or a text that is not `--check-build`'s; the message says which."""


class Build(TypedDict):
    """What `--check-build` says: per section, name -> whether it is there."""

    version: str
    frameworks: dict[str, bool]
    controllers: dict[str, bool]
    operations: dict[str, bool]


def build_environment(version: str, framework: str, operations: Iterable[str]) -> dict[str, str]:
    """Return the variables that make a build of `version` for `framework` able to do `operations`.

    Each thing is either required or left out by name: the build fails where something required is
    missing, which it would else leave out without a word.  Before 0.20 the GPU's operations were
    chosen one by one.  NCCL is linked as the shared library, so that the one that role nccl pins is used.
    """
    wanted = set(operations)
    unknown = sorted(wanted - set(OPERATIONS)) + sorted({framework} - set(FRAMEWORKS))
    if unknown:
        raise HorovodError(
            f"{', '.join(unknown)}: Horovod is built for {', '.join(FRAMEWORKS)} with {', '.join(OPERATIONS)}"
        )
    release = re.match(r"(\d+)\.(\d+)", version)
    if release is None:
        raise HorovodError(f"{version!r} is not a version of Horovod")
    required = {framework, *wanted}
    env = {
        f"HOROVOD_{'WITH' if name in required else 'WITHOUT'}_{name.upper()}": "1"
        for name in (*FRAMEWORKS, "MPI", "Gloo")
    }
    if "NCCL" in wanted:
        one_by_one = (int(release[1]), int(release[2])) < (0, 20)
        names = ("GPU_ALLREDUCE", "GPU_BROADCAST") if one_by_one else ("GPU_OPERATIONS",)
        env |= {f"HOROVOD_{name}": "NCCL" for name in names}
        env["HOROVOD_NCCL_LINK"] = "SHARED"
    return env


def read_check_build(text: str) -> Build:
    """Return what `horovodrun --check-build` printed; what a framework says before it is passed over."""
    build: Build = {"version": "", "frameworks": {}, "controllers": {}, "operations": {}}
    section: dict[str, bool] = {}
    for line in text.splitlines():
        if head := _HEAD.match(line):
            build["version"] = head[1]
        elif line.strip() in _SECTIONS:
            section = build[_SECTIONS[line.strip()]]  # type: ignore[literal-required]
        elif entry := _ENTRY.match(line):
            section[entry[2]] = entry[1] == "X"
    missing = [name for name, content in build.items() if not content]
    if missing:
        said = (text.strip() or "nothing").splitlines()[-1]
        raise HorovodError(
            f"not the output of horovodrun --check-build, no {missing[0]} in it: {said!r:.200}"
        )
    return build


def lacking(build: Build, wanted: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the names in `wanted` ({"operations": ["NCCL"], ...}) that the build lacks, each once."""
    names = [
        name
        for section, entries in wanted.items()
        for name in entries
        if not build[section].get(name, False)  # type: ignore[literal-required]
    ]
    return list(dict.fromkeys(names))
