# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Filters of role horovod: the environment of a build, and what the build lacks.

A build without an operation reports nothing: without NCCL two GPUs are slower than one, and only the table of
`horovodrun --check-build` shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from ansible.errors import AnsibleFilterError

FRAMEWORKS = ("TensorFlow", "PyTorch", "MXNet")
OPERATIONS = ("NCCL", "MPI", "Gloo")
"""The operations, named as by `--check-build`."""

_SECTIONS = {
    "Available Frameworks:": "frameworks",
    "Available Controllers:": "controllers",
    "Available Tensor Operations:": "operations",
}
_HEAD = re.compile(r"^Horovod v(\S+):\s*$")
_ENTRY = re.compile(r"^\s+\[([X ])\] (\S+)\s*$")


class HorovodError(AnsibleFilterError):
    """A build that does not exist, or a text that is not the output of `--check-build`."""


class Build(TypedDict):
    """The output of `--check-build`: per section, name -> whether the build has it."""

    version: str
    frameworks: dict[str, bool]
    controllers: dict[str, bool]
    operations: dict[str, bool]


def build_environment(version: str, framework: str, operations: Iterable[str]) -> dict[str, str]:
    """Return the variables that make a build of `version` for `framework` able to do `operations`.

    Everything is either required or left out by name: a build fails where something required is missing,
    which it would otherwise leave out silently.  Before 0.20, the operations on GPUs were chosen one by one.
    NCCL is linked as a shared library, so that the one that role nccl pins is used.
    """
    required_operations = set(operations)
    unknown = sorted(required_operations - set(OPERATIONS)) + sorted({framework} - set(FRAMEWORKS))
    if unknown:
        raise HorovodError(
            f"{', '.join(unknown)}: Horovod is built for {', '.join(FRAMEWORKS)} with {', '.join(OPERATIONS)}"
        )
    release = re.match(r"(\d+)\.(\d+)", version)
    if release is None:
        raise HorovodError(f"{version!r} is not a version of Horovod")
    required = {framework, *required_operations}
    env = {
        f"HOROVOD_{'WITH' if name in required else 'WITHOUT'}_{name.upper()}": "1"
        for name in (*FRAMEWORKS, "MPI", "Gloo")
    }
    if "NCCL" in required_operations:
        one_by_one = (int(release[1]), int(release[2])) < (0, 20)
        names = ("GPU_ALLREDUCE", "GPU_BROADCAST") if one_by_one else ("GPU_OPERATIONS",)
        env |= {f"HOROVOD_{name}": "NCCL" for name in names}
        env["HOROVOD_NCCL_LINK"] = "SHARED"
    return env


def read_check_build(text: str) -> Build:
    """Parse the output of `horovodrun --check-build`; messages of the framework before it are skipped."""
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
        last_line = (text.strip() or "nothing").splitlines()[-1]
        raise HorovodError(
            f"not the output of horovodrun --check-build, no {missing[0]} in it: {last_line!r:.200}"
        )
    return build


def lacking(build: Build, required: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the names in `required` ({"operations": ["NCCL"], ...}) that the build lacks, each once."""
    names = [
        name
        for section, entries in required.items()
        for name in entries
        if not build[section].get(name, False)  # type: ignore[literal-required]
    ]
    return list(dict.fromkeys(names))


class FilterModule:
    """The filters of role horovod."""

    def filters(self) -> dict[str, Any]:
        """Name -> function."""
        return {
            "horovod_build_environment": build_environment,
            "horovod_lacking": lambda text, required: lacking(read_check_build(text), required),
        }
