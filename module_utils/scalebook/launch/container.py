# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The container of a workload's runs: its image, what it sees of the machine, why nodes cannot start it.

`roles/campaign/files/container.py` has the command lines; `Settings` are what it is parameter.
"""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from ansible.module_utils.scalebook.launch.jobs import telemetry
from ansible.module_utils.scalebook.workload import Workload

DECLARED = "declared"
"""The value of the parameter `container` that stands for the image in the workload's declaration."""

IN_FILES = ("enroot", "apptainer", "pyxis")
"""Engines whose images are files."""

OF_IMAGE = ("framework", "python", "cuda", "cudnn", "nccl", "horovod")
"""What a node's provenance says of software, which is the image's where the interpreter is."""


class Settings(TypedDict):
    """What container.py is parameter; `name` is the image's name where `image` is a file of it.

    `python` is the interpreter of the image that trains, "" for that of the installation.
    """

    engine: str
    image: str
    name: str
    mounts: list[str]
    gpus: bool
    options: list[str]
    python: str


def settings(
    parameters: Mapping[str, Any],
    workload: Workload,
    directories: Sequence[str],
    gpus: bool,
    options: Sequence[str],
) -> Settings:
    """Return the container of a workload's runs; raise ValueError where the parameters name none.

    `directories` are seen at their own paths. The first is scalebook_home, where images are that are files.
    """
    name, engine, python = parameters["container"], parameters["container_engine"] or "podman", ""
    if engine == "pyxis" and parameters.get("launcher") != "srun":
        raise ValueError(
            "container_engine=pyxis: it is a plugin of srun. Fix: add launcher=srun, or use enroot"
        )
    if name == DECLARED:
        if not workload.containers:
            raise ValueError(
                f"container={DECLARED}: {workload.name} declares no image. Fix: name one with container=IMAGE"
            )
        name, python = workload.containers[0].image, workload.containers[0].python
    image = name
    if engine in IN_FILES and not name.startswith("/"):
        suffix = "sif" if engine == "apptainer" else "sqsh"
        image = f"{directories[0]}/images/{re.sub(r'[^A-Za-z0-9._-]', '+', name)}.{suffix}"
    # mpirun and its ranks find each other below /tmp.
    mounts = telemetry(0, [*directories, "/tmp"])["directories"]  # noqa: S108
    return {
        "engine": engine,
        "image": image,
        "name": name,
        "mounts": mounts,
        "gpus": gpus,
        "options": list(options),
        "python": python,
    }


def pull_command(container: Settings) -> str:
    """Return the command that brings the image onto a node, "" where a file has no other name."""
    engine, name, image = container["engine"], container["name"], container["image"]
    if engine not in IN_FILES:
        return shlex.join([engine, "pull", name])
    if name == image:
        return ""
    if engine == "apptainer":
        return shlex.join(["apptainer", "pull", image, f"docker://{name}"])
    registry, slash, rest = name.partition("/")
    in_enroot = f"{registry}#{rest}" if slash and re.search("[.:]", registry) else name
    return shlex.join(["enroot", "import", "-o", image, f"docker://{in_enroot}"])


def refusal(container: Settings, answers: Mapping[str, Mapping[str, Any]]) -> str:
    """Return why runs cannot start in the container, with the fix, "" if they can.

    `answers` are what container.py says on each host.
    """
    problems: dict[tuple[str, str], list[str]] = defaultdict(list)
    images: dict[str, list[str]] = defaultdict(list)
    for host, answer in answers.items():
        if "id" in answer:
            images[answer["id"]].append(host)
        else:
            problems[answer["problem"], answer["why"]].append(host)
    engine, name = container["engine"], container["name"]
    parameter = f"container={name}"
    pull = pull_command(container)
    fixes = {
        "engine": (
            f"container_engine={engine}",
            f"install {engine} there, or choose another container_engine",
        ),
        "image": (parameter, f"run there: {pull}" if pull else "copy the file there"),
        "start": (
            parameter,
            f"repair what {engine} says there; campaign_container_options are further arguments",
        ),
        "program": (
            parameter,
            "use an image that has it, or a directory of it in campaign_container_options",
        ),
    }
    for (problem, why), hosts in problems.items():
        what, fix = fixes[problem]
        lacks = "the image has no program " if problem == "program" else ""
        return f"{what}: {', '.join(hosts)}: {lacks}{why}. Fix: {fix}"
    if len(images) > 1:
        each = "; ".join(f"{', '.join(hosts)}: {number}" for number, hosts in sorted(images.items()))
        fix = f"run on all of them: {pull}" if pull else "copy the same file to all of them"
        return f"{parameter}: the nodes have different images of this name: {each}. Fix: {fix}"
    return ""


def provenance(container: Mapping[str, Any]) -> dict[str, str]:
    """Return what the container, with the answer of container.py, adds to the provenance of a node."""
    if not container:
        return {}
    image = f"{container['name']}@{container['digest']}"
    software = {key: f"the image's, {image}" for key in OF_IMAGE if container["python"]}
    return {**software, "container": f"{image} ({container['engine']})"}


def srun_options(container: Mapping[str, Any]) -> list[str]:
    """Return the options of srun by which pyxis starts a step in the container, none for other engines."""
    if container.get("engine") != "pyxis":
        return []
    mounts = ",".join(f"{mount}:{mount}" for mount in container["mounts"])
    return [
        f"--container-image={container['image']}",
        f"--container-mounts={mounts}",
        "--no-container-entrypoint",
        *container["options"],
    ]
