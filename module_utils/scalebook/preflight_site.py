# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What the checks of a preflight share: the machines as they were seen, and the form of a finding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

LEVELS = ("ok", "warn", "refuse")

Finding = dict[str, Any]
"""`{"check", "level", "nodes", "found", "wanted", "cure"}`, see preflight.judge."""


def finding(
    check: str, level: str, nodes: Iterable[str], found: str = "", wanted: str = "", cure: str = ""
) -> Finding:
    """Return one finding; the words of other machines in it are made plain."""
    return {
        "check": check,
        "level": level,
        "nodes": list(nodes),
        "found": plain(found),
        "wanted": plain(wanted),
        "cure": plain(cure),
    }


def plain(text: str) -> str:
    """Return `text` as one line that cannot move a terminal's cursor."""
    return " ".join("".join(char if char.isprintable() else " " for char in str(text)[:2000]).split())[:400]


class Site:
    """All machines of a preflight with what was seen of each.

    `machines` as preflight.machines returns them, `seen`, `limits` and `device` as preflight.judge
    takes them.
    """

    def __init__(
        self,
        machines: Sequence[Mapping[str, Any]],
        seen: Mapping[str, Mapping[str, Any]],
        limits: Mapping[str, Any],
        device: str,
    ) -> None:
        self.machines = machines
        self.seen = seen
        self.limits = limits
        self.device = device

    @property
    def nodes(self) -> list[str]:
        """The names of all nodes, in inventory order of their machines."""
        return [node for machine in self.machines for node in machine["nodes"]]

    @property
    def connected(self) -> bool:
        """Whether there are machines that must reach each other."""
        return len(self.machines) > 1

    @property
    def with_gpus(self) -> bool:
        """Whether runs will compute on GPUs, as far as anybody can tell now."""
        if self.device != "auto":
            return self.device == "gpu"
        return any(smi["gpus"] for _, smi in self.facts("smi"))

    def fact(self, machine: Mapping[str, Any], probe: str) -> Any:
        """Return what `probe` saw of `machine`, or None."""
        return self.seen.get(machine["name"], {}).get("facts", {}).get(probe)

    def failure(self, machine: Mapping[str, Any], probe: str) -> str | None:
        """Return why `probe` saw nothing of `machine`, or None."""
        why = self.seen.get(machine["name"], {}).get("failed", {}).get(probe)
        return None if why is None else str(why)

    def facts(self, probe: str) -> Iterator[tuple[Mapping[str, Any], Any]]:
        """Yield each machine of which `probe` saw something, with that."""
        for machine in self.machines:
            value = self.fact(machine, probe)
            if value is not None:
                yield machine, value

    def failures(self, probe: str, check: str, level: str, wanted: str, cure: str) -> Iterator[Finding]:
        """Yield a finding for each machine on which `probe` failed."""
        for machine in self.machines:
            why = self.failure(machine, probe)
            if why is not None:
                yield finding(check, level, machine["nodes"], why, wanted, cure)
