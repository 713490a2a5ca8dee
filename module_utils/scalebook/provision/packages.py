# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What packages are called: roles name those of Debian, and this table has the names of the RHEL family.

apt installs them on Debian and Ubuntu, dnf in the RHEL family.  On a node of Slurm none are installed, on any
system, and those that are missing are named for its administrator.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ansible.module_utils.scalebook.provision import systems

OF_RPM = {
    "bzip2": "bzip2",
    "ca-certificates": "ca-certificates",
    "chrony": "chrony",
    "g++": "gcc-c++",
    "gcc": "gcc",
    "git": "git",
    "iproute2": "iproute",
    "libcudnn7-dev": "libcudnn7-devel",
    "libgomp1": "libgomp",
    "libnccl-dev": "libnccl-devel",
    "libnccl2": "libnccl",
    "libopenmpi-dev": "openmpi-devel",
    "make": "make",
    "munge": "munge",
    "openmpi-bin": "openmpi",
    "openssh-client": "openssh-clients",
    "openssh-server": "openssh-server",
    "pdsh": "pdsh pdsh-rcmd-ssh",
    "perl": "perl",
    "procps": "procps-ng",
    "python3-dnf-plugin-versionlock": "python3-dnf-plugin-versionlock",
    "rsync": "rsync",
    "slurm-client": "slurm",
    "slurmctld": "slurm-slurmctld",
    "slurmd": "slurm-slurmd",
}
"""Package of Debian -> packages of the RHEL family, releases 8 to 10, separated by blanks.

Others are called the same: CUDA's, and those that one family alone has.
"""

OF_EPEL = ("pdsh", "pdsh-rcmd-ssh", "slurm", "slurm-slurmctld", "slurm-slurmd")
"""Packages that the family has in EPEL alone."""

EPEL = "https://dl.fedoraproject.org/pub/epel"
EPEL_KEYS = {
    8: "94E279EB8D8F25B21810ADF121EA45AB2F86D6A1",
    9: "FF8AD1344597106ECE813B918A3872BF3228467C",
    10: "7D8D15CBFC4E62688591FB2633D98517E37ED158",
}
"""Release of the RHEL family -> fingerprint of the key of its EPEL, as Fedora publishes it."""

PYTHONS = {
    8: {"3.6": "python3", "3.8": "python38", "3.9": "python39", "3.11": "python3.11", "3.12": "python3.12"},
    9: {"3.9": "python3", "3.11": "python3.11", "3.12": "python3.12"},
    10: {"3.12": "python3"},
}
"""Release of the RHEL family -> {version of Python: its package}."""

_PYTHON = re.compile(r"python(\d+\.\d+)-(venv|dev)")

_DPKG = (
    # dpkg --audit reports what a killed dpkg left, except for steps that are recorded but not merged yet.
    'test -z "$(dpkg --audit; ls /var/lib/dpkg/updates)" || echo dpkg was interrupted; '
    "dpkg-query --show --showformat '${Package} ${db:Status-Status}\\n' \"$@\""
)
_RPM = (
    'for p; do rpm --query --whatprovides "$p" >/dev/null 2>&1 && echo "$p installed"; done; '
    # dnf marks what a transaction that never ended was to install. rpm has recorded some of it, and may not
    # have run its scripts.
    "cut=$(LC_ALL=C dnf --quiet --cacheonly history info last 2>/dev/null "
    r"| sed -n 's/^ \*\* *[A-Za-z-]*[^d ]  *\([^ ]*\).*/\1/p' "
    '| while read -r p; do rpm --query "$p" >/dev/null 2>&1 && echo "$p"; done); '
    'rpm --query --all >/dev/null 2>&1 && test -z "$cut" || echo dnf was interrupted: $cut; exit 0'
)


def tool(answer: str) -> str:
    """Return what installs packages on the host, apt or dnf; for its `answer` see systems.refusal."""
    return "dnf" if _release(answer) else "apt"


def interpreter(versions: Iterable[str], answer: str) -> str:
    """Return the first of these versions of Python that a host of the RHEL family has, else ""."""
    shipped = PYTHONS.get(_release(answer), {})
    return next((version for version in versions if version in shipped), "")


def names(needs: Iterable[str], answer: str) -> list[str]:
    """Return what the host calls the packages `needs` of Debian; for its `answer` see systems.refusal."""
    release = _release(answer)
    return [name for need in needs for name in (_of_rpm(need, release).split() if release else [need])]


def epel(answer: str) -> dict[str, Any]:
    """Return where the host finds EPEL, its key and the key's fingerprint, and which `packages` it has.

    For a host that is not of the RHEL family all are empty.
    """
    release = _release(answer)
    return {
        "uri": f"{EPEL}/{release}/Everything/x86_64/" if release else "",
        "key": f"{EPEL}/RPM-GPG-KEY-EPEL-{release}" if release else "",
        "fingerprint": EPEL_KEYS.get(release, ""),
        "packages": list(OF_EPEL) if release else [],
    }


def question(needs: Iterable[str], answer: str) -> list[str]:
    """Return a command that prints `NAME installed` for each of the packages `needs` that the host has.

    It also prints whether dpkg or dnf was interrupted, dnf with what it may have left without its scripts.
    Its status is 0, 1 where dpkg misses one of them, or 127 where the host has no dpkg.
    """
    return ["sh", "-c", _RPM if _release(answer) else _DPKG, "sh", *names(needs, answer)]


def _release(answer: str) -> int:
    """Return the release of a host of the RHEL family whose packages are known, 0 for another."""
    family, number = systems.family(answer)
    return number if family == "rhel" and number in PYTHONS else 0


def _of_rpm(need: str, release: int) -> str:
    python = _PYTHON.fullmatch(need)
    if not python:
        return OF_RPM.get(need, need)
    base = PYTHONS[release].get(python[1], f"python{python[1]}")
    # There venv and ensurepip come with Python itself.
    return base if python[2] == "venv" else f"{base}-devel"
