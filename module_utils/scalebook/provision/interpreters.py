# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Finds the Python versions of a host, and the environment whose Ansible supports one of them.

Ansible runs Python on its hosts, and every ansible-core drops the oldest version that the one before
supported. Its error messages then mention JSON or `annotations`, so the host is checked first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

Version = tuple[int, ...]

OLDEST: dict[Version, Version] = {
    (2, 16): (3, 6),
    (2, 17): (3, 7),
    (2, 18): (3, 8),
    (2, 19): (3, 8),
    (2, 20): (3, 9),
    (2, 21): (3, 9),
}
"""ansible-core -> oldest Python 3 of a host, from its support matrix; later releases count as 2.21."""

ALSO: Version = (2, 7)
"""The only Python 2 that is supported, by the oldest ansible-core above only."""

OURS: Version = (3, 6)
"""The oldest Python for what scalebook itself runs on a node."""

PLACES = (
    *(f"python3.{minor}" for minor in range(14, 5, -1)),
    "/usr/bin/python3",
    "python3",
    "/usr/libexec/platform-python",
    "python2.7",
    "/usr/bin/python",
)
"""Where ansible-core of any version looks for Python."""

_REPORT = (
    'import sys; print("scalebook-python %s %d.%d.%d" % ((sys.executable,) + tuple(sys.version_info[:3])))'
)
_PYTHON = re.compile(r"^scalebook-python (/\S*) (\d+)\.(\d+)\.(\d+)\s*$", re.MULTILINE)
_APT = re.compile(r"^scalebook-apt\s*$", re.MULTILINE)
_LEGACY = ".scalebook/legacy"


class Interpreter(NamedTuple):
    """A Python of a host, as it reports itself."""

    path: str
    version: Version

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.version))} ({self.path})"


def named_interpreter(interpreter: str) -> str:
    """Return the interpreter that an inventory names, empty where Ansible is to find one (`auto…`)."""
    return "" if interpreter.startswith("auto") else interpreter


def script(interpreter: str = "") -> str:
    """Return one line of POSIX sh that prints the version of `interpreter`, or of all that a host has."""
    places = [named_interpreter(interpreter)] if named_interpreter(interpreter) else PLACES
    words = " ".join("'" + place.replace("'", "'\\''") + "'" for place in places)
    return (
        f"for p in {words}; do \"$p\" -c '{_REPORT}' 2>/dev/null; done; "
        "command -v apt-get >/dev/null && echo scalebook-apt; exit 0"
    )


def interpreters_in(output: str) -> list[Interpreter]:
    """Return the interpreters in the output of a host, each once; banners and error messages are ignored."""
    interpreters = [
        Interpreter(match[1], tuple(map(int, match.group(2, 3, 4))))
        for match in _PYTHON.finditer(output.replace("\r", ""))
    ]
    return list(dict.fromkeys(interpreters))


def has_apt(output: str) -> bool:
    """Return whether the host installs packages with apt."""
    return bool(_APT.search(output.replace("\r", "")))


def drives(core: str, version: Version) -> bool:
    """Return whether ansible-core `core` ("2.19.14") supports this Python on a host."""
    minor = _oldest(core)
    return version >= OLDEST[minor] or (minor == min(OLDEST) and version[:2] == ALSO)


def choice(core: str, installed: Sequence[Interpreter]) -> str:
    """Return the interpreter to set for Ansible, empty where it can use any that it may find.

    Its own search may choose a Python that is too old where a newer one is beside it.
    """
    usable = [each for each in installed if _usable(core, each)]
    return usable[0].path if 0 < len(usable) < len(installed) else ""


def refusal(host: str, core: str, installed: Sequence[Interpreter], interpreter: str = "") -> str:
    """Return why `host` cannot be provisioned from here, and the fix; empty where it can.

    `core` is the version of ansible-core, `installed` the interpreters of the host, `interpreter` its
    ansible_python_interpreter.
    """
    if any(_usable(core, each) for each in installed):
        return ""
    if not installed and named_interpreter(interpreter):
        return f"{host} has no {interpreter}: set its ansible_python_interpreter to one that is there."
    if not installed:
        return (
            f"{host} has no Python, which Ansible needs there: install one "
            "(dnf install python3, zypper install python3, apt-get install python3)."
        )
    listed = ", ".join(map(str, installed))
    if all(each.version < OURS for each in installed):
        return (
            f"{host} has Python {listed}, and what runs on a node needs {_text(OURS)} or newer: "
            "install one beside it."
        )
    return (
        f"{host} has Python {listed}, and ansible-core {core} needs {_text(OLDEST[_oldest(core)])} or newer "
        f"on a host: use that of requirements-legacy.txt. python3 -m venv {_LEGACY} && "
        f"{_LEGACY}/bin/pip install --require-hashes -r requirements-legacy.txt && "
        f". {_LEGACY}/bin/activate, then give the same command again."
    )


def _usable(core: str, interpreter: Interpreter) -> bool:
    return interpreter.version >= OURS and drives(core, interpreter.version)


def _oldest(core: str) -> Version:
    minor = tuple(map(int, core.split(".")[:2]))
    return max((version for version in OLDEST if version <= minor), default=min(OLDEST))


def _text(version: Version) -> str:
    return ".".join(map(str, version))
