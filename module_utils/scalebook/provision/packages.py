# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What packages are called: roles name those of Debian, and this table has the names of the RHEL family.

Packages are installed on Debian and Ubuntu alone.  On a node of Slurm none are, on any system, and those that
are missing are named for its administrator.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ansible.module_utils.scalebook.provision import systems

OF_RPM = {
    "bzip2": "bzip2",
    "ca-certificates": "ca-certificates",
    "chrony": "chrony",
    "g++": "gcc-c++",
    "gcc": "gcc",
    "git": "git",
    "iproute2": "iproute",
    "libgomp1": "libgomp",
    "libopenmpi-dev": "openmpi-devel",
    "make": "make",
    "openmpi-bin": "openmpi",
    "openssh-client": "openssh-clients",
    "openssh-server": "openssh-server",
    "pdsh": "pdsh",
    "perl": "perl",
    "procps": "procps-ng",
    "rsync": "rsync",
}
"""Package of Debian -> package of the RHEL family, releases 8 to 10; pdsh is in EPEL."""

RELEASES = {8: "3.6", 9: "3.9", 10: "3.12"}
"""Release of the RHEL family -> the version of its python3."""

_PYTHON = re.compile(r"python(\d+\.\d+)-(venv|dev)")

_DPKG = (
    # dpkg --audit reports what a killed dpkg left, except for steps that are recorded but not merged yet.
    'test -z "$(dpkg --audit; ls /var/lib/dpkg/updates)" || echo dpkg was interrupted; '
    "dpkg-query --show --showformat '${Package} ${db:Status-Status}\\n' \"$@\""
)
_RPM = 'for p; do rpm --query --whatprovides "$p" >/dev/null 2>&1 && echo "$p installed"; done; exit 0'


def names(needs: Iterable[str], answer: str) -> list[str]:
    """Return what the host calls the packages `needs` of Debian; for its `answer` see systems.refusal."""
    release = _release(answer)
    return [_of_rpm(need, release) if release else need for need in needs]


def question(needs: Iterable[str], answer: str) -> list[str]:
    """Return a command that prints `NAME installed` for each of the packages `needs` that the host has.

    It also prints whether dpkg was interrupted.  Its status is 0, 1 where dpkg misses one of them, or 127
    where the host has no dpkg.
    """
    return ["sh", "-c", _RPM if _release(answer) else _DPKG, "sh", *names(needs, answer)]


def _release(answer: str) -> int:
    """Return the release of a host of the RHEL family whose packages are known, 0 for another."""
    family, number = systems.family(answer)
    return number if family == "rhel" and number in RELEASES else 0


def _of_rpm(need: str, release: int) -> str:
    python = _PYTHON.fullmatch(need)
    if not python:
        return OF_RPM.get(need, need)
    base = "python3" if python[1] == RELEASES[release] else f"python{python[1]}"
    # There venv and ensurepip come with Python itself.
    return base if python[2] == "venv" else f"{base}-devel"
