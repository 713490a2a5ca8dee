# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Which hosts are supported: the one place that refuses processors, GPUs and systems by name.

A host is asked before anything else is done there, by commands that every Linux has.
"""

from __future__ import annotations

import re

OLDEST = {"debian": (10,), "ubuntu": (18, 4)}
"""System whose packages provision.yml installs -> its oldest version, whose Python is 3.6 or newer."""

OF_RHEL = (8, 9, 10)
"""Releases of Rocky, Alma, RHEL, CentOS Stream and Oracle Linux whose packages provision.yml installs."""

_RHEL = {"rhel", "ol"}
_PROCESSORS = ("x86_64", "amd64")
_OF_PROCESSOR = {"aarch64": " (Grace of GB200 and GH200, Graviton)", "arm64": " (of Apple)"}
_AMD, _NVIDIA = "0x1002", "0x10de"
# Classes of PCI without a display: Instinct has one or the other, the graphics of a processor neither.
_ACCELERATORS = ("0x1200", "0x0380")
_ANSWER = re.compile(r"^scalebook-(processor|libc|system|device) (.*?)\s*$", re.MULTILINE)
_ASSIGNMENT = re.compile(r"""([A-Z_]+)=["']?(.*?)["']?""")


def script(root: str = "") -> str:
    """Return one line of POSIX sh that prints the host's processor, C library, system and GPUs.

    `root` is the directory of its files.
    """
    return (
        'echo "scalebook-processor $(uname -m)"; '
        'echo "scalebook-libc $(getconf GNU_LIBC_VERSION 2>/dev/null)"; '
        f"for f in '{root}/etc/os-release' '{root}/usr/lib/os-release'; do "
        'if [ -r "$f" ]; then sed "s/^/scalebook-system /" "$f"; break; fi; done; '
        f"for d in '{root}'/sys/bus/pci/devices/*; do "
        'if read v 2>/dev/null <"$d/vendor" && read c 2>/dev/null <"$d/class"; then '
        f'case "$v" in {_AMD}|{_NVIDIA}) '
        'echo "scalebook-device $v $c";; esac; fi; done; exit 0'
    )


def refusal(host: str, answer: str, device: str = "auto", installs: bool = False) -> str:
    """Return why `host` is not supported, what is missing, and the fix; "" where it is.

    `answer` is what it said to `script`.  `device` is what its runs compute with, `installs` whether packages
    are installed there.  A host that did not answer is none that is refused.
    """
    answers = _answers(answer)
    processor = next((text for kind, text in answers if kind == "processor"), "")
    if processor and processor not in _PROCESSORS:
        return (
            f"{host} has {processor} processors, and only x86-64 is supported. Missing: the locked packages "
            f"of Python, Open MPI and frameworks for {processor}{_OF_PROCESSOR.get(processor, '')}, and a "
            "test there. Fix: leave the host out of the inventory."
        )
    devices = [text for kind, text in answers if kind == "device"]
    of_amd = [text for text in devices if text.startswith(tuple(f"{_AMD} {kind}" for kind in _ACCELERATORS))]
    has_nvidia = any(text.startswith(f"{_NVIDIA} 0x03") for text in devices)
    if of_amd and not has_nvidia and device != "cpu":
        count = "a GPU" if len(of_amd) == 1 else f"{len(of_amd)} GPUs"
        return (
            f"{host} has {count} of AMD, and only those of NVIDIA are supported. Missing: the frameworks for "
            "ROCm, RCCL, and the checks and telemetry of these GPUs. Fix: leave the host out of the "
            "inventory, or measure its processors with -e device=cpu."
        )
    return _of_system(host, _release(answer)) if processor and installs else ""


def family(answer: str) -> tuple[str, int]:
    """Return the family of the host's system, debian or rhel, "" for another, and its first number."""
    system = _release(answer)
    names = {system.get("ID", ""), *system.get("ID_LIKE", "").split()}
    number = re.match(r"\d+", system.get("VERSION_ID", ""))
    family_name = "debian" if names & set(OLDEST) else "rhel" if names & _RHEL else ""
    return family_name, int(number[0]) if number else 0


def glibc(answer: str) -> str:
    """Return the version of the host's glibc, such as 2.27; "" where it did not say one."""
    library = next((text for kind, text in _answers(answer) if kind == "libc"), "")
    match = re.fullmatch(r"glibc (\d+\.\d+)\S*", library)
    return match[1] if match else ""


def _answers(answer: str) -> list[tuple[str, str]]:
    """Return what the host said to `script` as (what about, text)."""
    return _ANSWER.findall(answer.replace("\r", ""))


def name_and_version(answer: str) -> tuple[str, str]:
    """Return ID and VERSION_ID of the host's system, such as ubuntu and 22.04."""
    system = _release(answer)
    return system.get("ID", ""), system.get("VERSION_ID", "")


def _release(answer: str) -> dict[str, str]:
    """Return what os-release of the host assigns."""
    lines = (text for kind, text in _answers(answer) if kind == "system")
    return {match[1]: match[2] for line in lines if (match := _ASSIGNMENT.fullmatch(line))}


def _of_system(host: str, system: dict[str, str]) -> str:
    """Return why nothing can be installed on a system with this os-release, "" where it can."""
    names = [system.get("ID", ""), *system.get("ID_LIKE", "").split()]
    named = system.get("PRETTY_NAME") or " ".join(filter(None, (names[0], system.get("VERSION_ID"))))
    runs = f"{host} runs {named or 'a system without a name'}, and"
    version = tuple(map(int, re.findall(r"\d+", system.get("VERSION_ID", ""))))
    if set(names) & _RHEL and version[:1] in [(release,) for release in OF_RHEL]:
        return ""
    if not set(names) & set(OLDEST):
        return (
            f"{runs} provision.yml installs on Debian, Ubuntu and releases 8 to 10 of the RHEL family alone. "
            "Missing: the names of packages and the repositories of other systems. "
            "Fix: leave the host out of the inventory."
        )
    oldest = OLDEST.get(names[0], ())
    if version and version < oldest:
        oldest_text = f"{oldest[0]}" if len(oldest) == 1 else f"{oldest[0]}.{oldest[1]:02d}"
        return (
            f"{runs} provision.yml needs {names[0].capitalize()} {oldest_text} or newer. Missing: Python 3.6 "
            "or newer as a package of the system. Fix: leave the host out of the inventory, or upgrade it."
        )
    return ""
