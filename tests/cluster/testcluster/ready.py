# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Images of hosts on which role node has nothing to install, with Slurm, and of one like Rocky Linux 9."""

import hashlib
import re

from . import image, kept, nodefiles, rpm, slurm
from .base import CHECKOUT, LABEL, ClusterError, say
from .engine import Engine
from .hostsettings import HostSettings

NAME = "localhost/scalebook-node-ready"
SLURM = "localhost/scalebook-node-slurm"
RPM = "localhost/scalebook-node-rpm"
_BUILDER = "scalebook-node-ready"
_DEFAULTS = CHECKOUT / "roles/node/defaults/main.yml"
# What a container of the image would otherwise have of the one that it was made from.
_SCRIPT = (
    "set -e; export DEBIAN_FRONTEND=noninteractive; apt-get -q update; "
    'apt-get -q install -y --no-install-recommends -o Dpkg::Options::=--force-confold "$@"; '
    "rm -f /etc/ssh/ssh_host_* /etc/chrony/chrony.keys /var/cache/apt/archives/*.deb"
)


def packages(name: str = NAME) -> list:
    """Return what role node installs on every node, what makes Python's environments, and Slurm's.

    Of the host like Rocky Linux 9, what it is made of.
    """
    if name == RPM:
        return list(rpm.PACKAGES)
    found = re.search(r"^node_packages: \[(.*)\]$", _DEFAULTS.read_text(), re.M)
    if not found:
        raise ClusterError(f"{_DEFAULTS} has no line node_packages: [...]")
    return [*found[1].split(", "), "python3-venv", *(slurm.PACKAGES if name == SLURM else ())]


def ensure(engine: Engine, host: HostSettings, name: str = NAME) -> None:
    """Make the image `name` unless that of these packages and settings is there. Half a minute."""
    bare = engine.inspect("image", image.NAME) or {}
    files = nodefiles.contents(host, "", image.known_bundle(host.suite).read_text())
    script = _SCRIPT
    if name == RPM:
        files.update(rpm.FILES)
        script += rpm.SCRIPT
    parts = (bare.get("Id"), packages(name), sorted(files.items()), script)
    recipe = hashlib.sha256(repr(parts).encode()).hexdigest()
    labels = (engine.inspect("image", name) or {}).get("Config", {}).get("Labels") or {}
    if labels.get(LABEL) == recipe[:16] or kept.load(engine, name, recipe[:16]):
        return
    say(f"making the image with {' '.join(packages(name))} (once)")
    engine("rm", "-f", _BUILDER, check=False)
    words = ["sh", "-c", script, "sh", *packages(name)]
    engine("create", "--name", _BUILDER, "--network", "host", image.NAME, *words)
    try:
        engine("cp", "-", f"{_BUILDER}:/", data=nodefiles.pack(files))
        engine("start", "--attach", _BUILDER, timeout=600)
        changes = [f'CMD ["/bin/sh", "-c", "{image.COMMAND}"]', f"LABEL {LABEL}={recipe[:16]}"]
        options = [word for change in changes for word in ("--change", change)]
        engine("commit", *options, _BUILDER, f"{name}:latest", timeout=300)
        kept.save(engine, name, recipe[:16])
    finally:
        engine("rm", "-f", _BUILDER, check=False)
