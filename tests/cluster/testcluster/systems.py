# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Which systems bare nodes can have: what a node of each is created from."""

from . import image
from .engine import Engine
from .hostsettings import discover
from .nodes import Kind

# As its documentation prints it.
_UBUNTU_22 = """\
PRETTY_NAME="Ubuntu 22.04.5 LTS"
NAME="Ubuntu"
VERSION_ID="22.04"
VERSION="22.04.5 LTS (Jammy Jellyfish)"
VERSION_CODENAME=jammy
ID=ubuntu
ID_LIKE=debian
UBUNTU_CODENAME=jammy
"""
DEFAULT = "debian12"
SYSTEMS = {
    DEFAULT: ("bookworm", {}),
    "debian13": ("trixie", {}),
    # Debian 12, whose glibc and Python are the next ones, by its name: its own packages are not there.
    "like-ubuntu22": ("bookworm", {"usr/lib/os-release": _UBUNTU_22}),
}
"""Name of a system -> suite of Debian, and files that it has besides."""


def kinds(engine: Engine, subnet: str, names: list, count: int) -> list:
    """Return what NODE1..NODE<count> are created from; the last name is that of all further nodes.

    Images that are not there are built.
    """
    made = {}
    for name in dict.fromkeys(names[:count]):
        suite, files = SYSTEMS[name]
        host = discover(subnet, suite)
        image.ensure(engine, host)
        made[name] = Kind(image.name(suite), host, image.known_bundle(suite).read_text(), files)
    return [made[names[min(number, len(names) - 1)]] for number in range(count)]
