# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The image of a host that role node has nothing to install on: for tests of what comes after that."""

import hashlib
import re

from . import image, kept, nodefiles
from .base import CHECKOUT, LABEL, ClusterError, say
from .engine import Engine
from .hostsettings import HostSettings

NAME = "localhost/scalebook-node-ready"
_BUILDER = "scalebook-node-ready"
_DEFAULTS = CHECKOUT / "roles/node/defaults/main.yml"
# What a container of the image would otherwise have of the one that it was made from.
_SCRIPT = (
    "set -e; export DEBIAN_FRONTEND=noninteractive; apt-get -q update; "
    'apt-get -q install -y --no-install-recommends "$@"; '
    "rm -f /etc/ssh/ssh_host_* /etc/chrony/chrony.keys /var/cache/apt/archives/*.deb"
)


def packages() -> list:
    """Return what role node installs on every node, and what makes Python's environments."""
    found = re.search(r"^node_packages: \[(.*)\]$", _DEFAULTS.read_text(), re.M)
    if not found:
        raise ClusterError(f"{_DEFAULTS} has no line node_packages: [...]")
    return [*found[1].split(", "), "python3-venv"]


def ensure(engine: Engine, host: HostSettings) -> None:
    """Make the image unless that of these packages and settings is there. Half a minute."""
    bare = engine.inspect("image", image.NAME) or {}
    files = nodefiles.contents(host, "", image.KNOWN_BUNDLE.read_text())
    recipe = hashlib.sha256(repr((bare.get("Id"), packages(), sorted(files.items()))).encode()).hexdigest()
    labels = (engine.inspect("image", NAME) or {}).get("Config", {}).get("Labels") or {}
    if labels.get(LABEL) == recipe[:16] or kept.load(engine, NAME, recipe[:16]):
        return
    say(f"making the image with {' '.join(packages())} (once)")
    engine("rm", "-f", _BUILDER, check=False)
    words = ["sh", "-c", _SCRIPT, "sh", *packages()]
    engine("create", "--name", _BUILDER, "--network", "host", image.NAME, *words)
    try:
        engine("cp", "-", f"{_BUILDER}:/", data=nodefiles.pack(files))
        engine("start", "--attach", _BUILDER, timeout=600)
        changes = [f'CMD ["/bin/sh", "-c", "{image.COMMAND}"]', f"LABEL {LABEL}={recipe[:16]}"]
        options = [word for change in changes for word in ("--change", change)]
        engine("commit", *options, _BUILDER, f"{NAME}:latest", timeout=300)
        kept.save(engine, NAME, recipe[:16])
    finally:
        engine("rm", "-f", _BUILDER, check=False)
