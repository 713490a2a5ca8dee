#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The node script in a container: the command that starts it there, and what a node has for it.

usage: container.py SETTINGS DIR [PROGRAM ...]

A container changes the file system and nothing else: it shares the machine's network, shared memory,
processes and limits, so that ranks reach each other, and are found and ended, as without it. SETTINGS, as in
the container.json of a job's directory, are JSON: {"engine", "image", "mounts", "gpus", "options"}. The usage
above prints {"id", "image", "digest"}, where `image` names it for good, or {"problem", "why"}: `engine` (it
is missing or does not answer), `image` (it is not on this node), `start` (a container of it does not start
below DIR) or `program` (it lacks one).

The command lines are those of podman-run(1), docs.docker.com/reference/cli/docker/container/run, enroot's
doc/cmd/start.md, apptainer.org/docs/user/latest/cli/apptainer_exec.html and the README.md of pyxis. That of
Podman is tested with it; the others have not been run. pyxis starts run_node itself in the container.

Runs on the nodes' own Python, 3.6 or later, standard library only.
"""

import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
from typing import Any, Dict, List, Mapping, Sequence

WITH_DAEMON = ("podman", "docker")
"""Engines that keep images and containers themselves; those of the others are files and processes."""

OF_THE_HOST = {
    "PATH",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "HOME",
    "SHELL",
    "PWD",
    "OLDPWD",
    "HOSTNAME",
    "TERM",
    "_",
}
"""Variables that say where the machine has what; the image has its own. Other variables are passed on."""

INFINIBAND = "/dev/infiniband"

LIMITS = {
    "memlock": resource.RLIMIT_MEMLOCK,
    "nofile": resource.RLIMIT_NOFILE,
    "nproc": resource.RLIMIT_NPROC,
}
"""Limits that are passed on; without memlock, InfiniBand cannot pin memory."""

SCRIPT = 'cd "$JOB_DIR" && exec /bin/sh "$JOB_DIR/run.sh"'

PATIENCE = 120
"""Seconds that an engine has for an answer, and for a container that does nothing."""


def read_settings(directory: str) -> Dict[str, Any]:
    """Return the content of the directory's container.json, {} where the run is in no container."""
    path = os.path.join(directory, "container.json")
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        settings: Dict[str, Any] = json.load(file)
        return {} if settings["engine"] == "pyxis" else settings


def name_of(directory: str, rank: str) -> str:
    """Return the name of a rank's container: the same for every start in a directory."""
    return "scalebook-" + hashlib.sha256(("%s:%s" % (directory, rank)).encode()).hexdigest()[:16]


def command(
    settings: Mapping[str, Any], name: str, env: Mapping[str, str], words: Sequence[str] = ("-c", SCRIPT)
) -> List[str]:
    """Return the command that runs /bin/sh with `words` in a container with the variables `env`."""
    engine, image, mounts = settings["engine"], settings["image"], settings["mounts"]
    passed = sorted(set(env) - OF_THE_HOST)
    if engine in WITH_DAEMON:
        argv = [
            engine,
            "run",
            "--rm",
            "--name",
            name,
            "--pull=never",
            "--network=host",
            "--ipc=host",
            "--pid=host",
        ]
        # Where SELinux is on, it would hide the directories.
        argv += ["--security-opt=label=disable", "--log-driver=none"]
        argv += _limits()
        argv += ["--device=" + INFINIBAND] if os.path.isdir(INFINIBAND) else []
        argv += _user(engine) + _gpus(engine, settings)
        argv += ["--volume=%s:%s" % (mount, mount) for mount in mounts]
        argv += ["--env=" + variable for variable in passed]
        return argv + list(settings["options"]) + ["--entrypoint=/bin/sh", image] + list(words)
    if engine == "enroot":
        argv = ["enroot", "start", "--rw"]
        for mount in mounts:
            argv += ["--mount", "%s:%s:none:x-create=auto,rbind" % (mount, mount)]
        # Its hooks give the devices that these name.
        passed += ["MELLANOX_VISIBLE_DEVICES=all"] if os.path.isdir(INFINIBAND) else []
        for variable in passed + _gpus(engine, settings):
            argv += ["--env", variable]
        return argv + list(settings["options"]) + [image, "/bin/sh"] + list(words)
    argv = ["apptainer", "exec"] + _gpus(engine, settings)  # it passes the variables and /dev on by itself
    for mount in mounts:
        argv += ["--bind", mount]
    return argv + list(settings["options"]) + [image, "/bin/sh"] + list(words)


def _limits() -> List[str]:
    """Return the options by which a container has the limits of this process."""
    with open("/proc/sys/kernel/pid_max", encoding="ascii") as file:
        most = int(file.read())  # more processes there cannot be, and Podman cannot give more
    options = []
    for limit, number in sorted(LIMITS.items()):
        pair = resource.getrlimit(number)
        if limit == "nproc":
            pair = (min(pair[0] % (1 << 64), most), min(pair[1] % (1 << 64), most))
        options.append("--ulimit=%s=%d:%d" % ((limit,) + pair))
    return options


def _user(engine: str) -> List[str]:
    """Return the options by which what the job writes, and its processes, are those of its user."""
    if os.getuid() == 0:
        return []
    return ["--userns=keep-id"] if engine == "podman" else ["--user=%d:%d" % (os.getuid(), os.getgid())]


def _gpus(engine: str, settings: Mapping[str, Any]) -> List[str]:
    """Return the options for all GPUs; CUDA_VISIBLE_DEVICES says which of them a rank uses."""
    options = {
        "podman": ["--device=nvidia.com/gpu=all"],
        "docker": ["--gpus=all"],
        "enroot": ["NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"],
        "apptainer": ["--nv"],
    }
    return options[engine] if settings["gpus"] else []


def remove(directory: str, rank: str) -> Dict[str, Any]:
    """Remove the container of a rank's job, with what runs in it, if there is one; return its settings."""
    settings = read_settings(directory)
    if settings.get("engine") in WITH_DAEMON:
        _ask([settings["engine"], "rm", "--force", name_of(directory, rank)])
    return settings


def _ask(argv: Sequence[str], **more: Any) -> "subprocess.CompletedProcess[str]":
    """Return what a command says; one that hangs or is not there has failed."""
    try:
        return subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
            timeout=PATIENCE,
            check=False,
            **more,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(argv, 124, "", "no answer within %d s" % PATIENCE)
    except OSError as error:
        return subprocess.CompletedProcess(argv, 127, "", "%s: %s" % (argv[0], error.strerror))


def look(settings: Mapping[str, Any], directory: str, programs: Sequence[str]) -> Dict[str, Any]:
    """Return what the usage above prints."""
    engine = settings["engine"]
    if engine == "pyxis":
        if "--container-image" not in _ask(["srun", "--help"]).stdout:
            return {"problem": "engine", "why": "srun has no --container-image"}
    elif not shutil.which(engine):
        return {"problem": "engine", "why": "there is no program %s" % engine}
    image = _stored(settings) if engine in WITH_DAEMON else _file(settings["image"])
    if "problem" in image or engine == "pyxis":
        return image
    env = dict(os.environ, JOB_DIR=directory)
    name = name_of(directory, "trial %d" % os.getpid())
    test = 'cd "$JOB_DIR" && for each; do test -x "$each" || command -v "$each" || exit 113; done'
    settings = dict(settings, image=image["image"])
    trial = _ask(command(settings, name, env, ["-c", test, "sh"] + list(programs)), env=env)
    if trial.returncode == 113:
        return {"problem": "program", "why": " ".join(os.path.realpath(each) for each in programs)}
    if trial.returncode:
        if engine in WITH_DAEMON:
            _ask([engine, "rm", "--force", name])
        lines = (trial.stderr + trial.stdout).strip().splitlines() or ["exit status %d" % trial.returncode]
        return {"problem": "start", "why": lines[-1]}
    return image


def _stored(settings: Mapping[str, Any]) -> Dict[str, Any]:
    """Return what an engine tells of an image: its id, and the digest by which a registry knows it."""
    answer = _ask(
        [
            settings["engine"],
            "image",
            "inspect",
            "--format",
            "{{.Id}} {{json .RepoDigests}}",
            settings["image"],
        ]
    )
    if answer.returncode:
        lines = answer.stderr.strip().splitlines() or ["exit status %d" % answer.returncode]
        is_unknown_image = any(
            words in lines[-1].lower() for words in ("no such image", "not known", "not found")
        )
        return {"problem": "image" if is_unknown_image else "engine", "why": lines[-1]}
    number, _, digests = answer.stdout.strip().partition(" ")
    number = number if number.startswith("sha256:") else "sha256:" + number
    of_registry = [each.partition("@")[2] for each in json.loads(digests) or []]
    return {"id": number, "image": number, "digest": (of_registry + [number])[0]}


def _file(path: str) -> Dict[str, Any]:
    """Return the digest of an image that is a file, in place of its id too."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            for part in iter(lambda: file.read(1 << 20), b""):
                digest.update(part)
    except OSError as error:
        return {"problem": "image", "why": "%s: %s" % (path, error.strerror)}
    number = "sha256:" + digest.hexdigest()
    return {"id": number, "image": path, "digest": number}


if __name__ == "__main__":
    print(json.dumps(look(json.loads(sys.argv[1]), sys.argv[2], sys.argv[3:])))
