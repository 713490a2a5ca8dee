# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The container engine: Podman with storage of its own, else a Docker engine that answers."""

import json
import os
import resource
import shlex
import shutil
import subprocess
from pathlib import Path

from .base import HERE, RUN, STATE, ClusterError, run, say, write

# Debian's names. catatonit is the first process of every node: it reaps what mpirun leaves behind.
PODMAN_PACKAGES = {
    "podman": "podman",
    "runc": "runc",
    "catatonit": "catatonit",
    "iptables": "iptables",
    "netavark": "/usr/lib/podman/netavark",
}
# What is needed whatever the engine: building the image, reaching the nodes.
COMMON_PACKAGES = {
    "debootstrap": "debootstrap",
    "debian-archive-keyring": "/usr/share/keyrings/debian-archive-keyring.gpg",
    "openssh-client": "ssh",
    "iproute2": "ip",
}
# Runs the engine with the right settings from any directory, for people and for tests.
WRAPPER = STATE / "engine"


class Engine:
    """Runs one engine's commands; `name` is podman or docker."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.env = {}
        if name == "podman":
            self.env = {
                "CONTAINERS_CONF": str(STATE / "containers.conf"),
                "CONTAINERS_STORAGE_CONF": str(STATE / "storage.conf"),
            }

    def __call__(self, *args: str, check: bool = True, timeout: float = 120, data: bytes = b""):
        """Run `podman|docker args…`; see base.run.

        In our own folder: a container's monitor leaves an empty file `oom` where it was started.
        """
        return run([self.name, *args], check=check, timeout=timeout, data=data, env=self.env, cwd=STATE)

    def popen(self, *args: str, **kwargs) -> subprocess.Popen:
        """Start `podman|docker args…`."""
        return subprocess.Popen([self.name, *args], env={**os.environ, **self.env}, **kwargs)

    def refuse_mounts(self, mounts: list) -> None:
        """Refuse `source:target:O` with Docker: a mount that each node writes for itself is Podman's."""
        overlaid = [mount for mount in mounts if mount.endswith(":O")]
        if self.name == "docker" and overlaid:
            raise ClusterError(f"--mount {overlaid[0]}: only Podman knows :O; without it the nodes may read")

    def inspect(self, kind: str, name: str) -> dict | None:
        """Return what the engine knows of a container, network or image; None if there is none."""
        done = self(kind, "inspect", name, check=False)
        found = json.loads(done.stdout or "[]") if done.returncode == 0 else []
        return found[0] if found else None

    def configure(self) -> None:
        """Write the engine's settings and the wrapper."""
        if self.name == "podman":
            for name in ("containers.conf", "storage.conf"):
                text = (HERE / name).read_text()
                values = {
                    "STATE": str(STATE),
                    "RUN": str(RUN),
                    "NOFILE": _within_hard_limit(resource.RLIMIT_NOFILE, 1024, 4096),
                    "NPROC": _within_hard_limit(resource.RLIMIT_NPROC, 1000, 1000),
                }
                for key, value in values.items():
                    text = text.replace(f"@{key}@", value)
                write(STATE / name, text)
        settings = " ".join(f"{key}={shlex.quote(value)}" for key, value in self.env.items())
        state = shlex.quote(str(STATE))
        text = f"""#!/bin/sh
case "$1" in start | restart) cd {state} || exit ;; esac
exec env {settings} {self.name} "$@"
"""
        write(WRAPPER, text, 0o755)


def _within_hard_limit(what: int, soft: int, hard: int) -> str:
    """Return `soft:hard`, neither above the hard limit this process itself has."""
    limit = resource.getrlimit(what)[1]
    if limit != resource.RLIM_INFINITY:
        soft, hard = min(soft, limit), min(hard, limit)
    return f"{soft}:{hard}"


def _missing(packages: dict) -> list:
    return [name for name, probe in packages.items() if not (shutil.which(probe) or Path(probe).exists())]


def _install(packages: list) -> None:
    say("installing " + " ".join(packages))
    apt = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=300"]
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    install = [*apt, "install", "-y", "--no-install-recommends", *packages]
    # The machine's lists may be old or absent: they are fetched only when the first try fails.
    if run(install, check=False, timeout=600, env=quiet).returncode != 0:
        run([*apt, "update"], timeout=300, env=quiet)
        run(install, timeout=600, env=quiet)


def _docker_answers() -> bool:
    return bool(shutil.which("docker")) and run(["docker", "info"], check=False, timeout=20).returncode == 0


def prepare() -> Engine:
    """Return an engine that works, installing the Debian packages that are missing.

    Podman wherever it is available, else Docker if its engine answers; SCALEBOOK_CLUSTER_ENGINE names one.
    """
    asked = os.environ.get("SCALEBOOK_CLUSTER_ENGINE", "")
    if asked not in ("", "podman", "docker"):
        raise ClusterError(f"SCALEBOOK_CLUSTER_ENGINE={asked}: wanted podman or docker")
    if asked == "docker" and not _docker_answers():
        raise ClusterError("SCALEBOOK_CLUSTER_ENGINE=docker, but none answers: `docker info` says why")
    can_install = bool(shutil.which("apt-get"))
    absent = _missing(COMMON_PACKAGES if asked == "docker" else {**PODMAN_PACKAGES, **COMMON_PACKAGES})
    if absent and can_install:
        try:
            _install(absent)
        except ClusterError:
            if _missing(COMMON_PACKAGES) or not _docker_answers():
                raise
    if asked != "docker" and not _missing(PODMAN_PACKAGES):
        name = "podman"
    elif _docker_answers():
        name = "docker"
    else:
        absent = " ".join(_missing(PODMAN_PACKAGES))
        raise ClusterError(f"no container engine: install {absent}, or start a Docker engine")
    absent = _missing(COMMON_PACKAGES)
    if absent:
        raise ClusterError("install these first: " + " ".join(absent))
    engine = Engine(name)
    engine.configure()
    return engine


def existing() -> Engine | None:
    """Return the engine that an earlier `up` chose; None where there was none (or it is gone)."""
    if WRAPPER.exists():
        name = "docker" if " docker " in WRAPPER.read_text() else "podman"
    elif RUN.exists():
        name = "podman"  # .scalebook was deleted under a cluster
    else:
        return None
    if not shutil.which(name):
        return None
    engine = Engine(name)
    engine.configure()
    return engine
