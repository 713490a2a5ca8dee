# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What a host answers when it is asked for its GPUs (roles/workload/tasks/device.yml): how many, or why not.

A host whose GPUs do not answer is not a host without GPUs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypedDict

from ansible.module_utils.scalebook.text import clean

INFOROM = "14"
"""nvidia-smi's status where a GPU works whose infoROM is damaged; the preflight warns of that."""

LOST = re.compile("unable to determine|unknown error|is lost", re.IGNORECASE)
"""What nvidia-smi says of a GPU that no longer answers, whatever its status."""

TIMED_OUT = ("124", "137")

CPU = "measure on processors with device=cpu"


class Gpus(TypedDict):
    """How many GPUs a host has; `problem` is why that is not known, with the fix, "" where it is."""

    count: int
    problem: str


def gpus(output: str) -> Gpus:
    """Return what the output of the question says."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    status = _answer(lines, r"nvidia-smi: (none|\d+)")
    bus = int(_answer(lines, r"bus: (\d+)") or 0)
    listed = [line for line in lines if re.match(r"GPU \d+:", line)]
    others = [
        line for line in lines if line not in listed and not re.match(r"(nvidia-smi|bus|\s*MIG): ?", line)
    ]
    error_text = clean(" ".join(others))
    lost_gpu = LOST.search(error_text)
    if listed and status in ("0", INFOROM) and not lost_gpu:
        return {"count": len(listed), "problem": ""}
    if status == "none":
        return {"count": 0, "problem": _hidden(bus, "it has no nvidia-smi") if bus else ""}
    none = status == "0" or re.search("no devices (were )?found", error_text, re.IGNORECASE)
    if none and not listed and not lost_gpu:
        return {"count": 0, "problem": _hidden(bus, "nvidia-smi lists none") if bus else ""}
    return {"count": 0, "problem": _failed(status, error_text)}


def mixed(counts: Mapping[str, int]) -> str:
    """Return why hosts with these numbers of GPUs have no device in common, "" where they have."""
    without_gpus = [host for host, count in counts.items() if not count]
    if not without_gpus or len(without_gpus) == len(counts):
        return ""
    few = ", ".join(without_gpus[:3]) + (
        f" and {len(without_gpus) - 3} more" if len(without_gpus) > 3 else ""
    )
    verb = "has" if len(without_gpus) == 1 else "have"
    return (
        f"device=auto: {few} {verb} no GPU, other machines have some. Fix: leave what has none out of the "
        f"group nodes, or {CPU}"
    )


def _answer(lines: list[str], pattern: str) -> str:
    """Return what the last line that is an answer says, "" without one."""
    numbers = [match.group(1) for line in lines if (match := re.fullmatch(pattern, line))]
    return numbers[-1] if numbers else ""


def _hidden(bus: int, what: str) -> str:
    devices = "an NVIDIA GPU" if bus == 1 else f"{bus} NVIDIA GPUs"
    return f"{devices} on the PCI bus, but {what}. Fix: install NVIDIA's driver and check dmesg, or {CPU}"


def _failed(status: str, output: str) -> str:
    """Return the problem of a driver that answers with an error, or not at all."""
    what = f"nvidia-smi ended with status {status}: {output[:300] or 'it printed nothing'}"
    fix = "restart the host, or install NVIDIA's driver again"
    if re.search("version mismatch", output, re.IGNORECASE):
        fix = "reboot the host: its kernel has another version of the driver than its libraries"
    elif status in TIMED_OUT:
        what, fix = "nvidia-smi gives no answer within 20 s", "see dmesg and reboot the host"
    elif not status:
        what, fix = (
            f"it did not say whether it has GPUs: {output[:300]}",
            "check that its shell runs commands",
        )
    return f"{what.rstrip('.')}. Fix: {fix}, or {CPU}"
