# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What all checks of a preflight share: the probed machines, and the form of a check and of a finding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ansible.module_utils.scalebook.contracts import Finding, Message, Statement, as_message

LEVELS = ("ok", "warn", "refuse")


def finding(
    check: str,
    level: str,
    nodes: Iterable[str],
    *,
    observed: Statement = "",
    expected: Statement = "",
    fix: Statement = "",
) -> Finding:
    """Return one finding; texts that came from other machines are made printable."""
    return {
        "check": check,
        "level": level,
        "nodes": list(nodes),
        "message": _printable_message(as_message(observed)),
        "expected": _printable_message(as_message(expected)),
        "fix": _printable_message(as_message(fix)),
    }


def printable(text: str) -> str:
    """Return `text` as one line that cannot move a terminal's cursor."""
    return " ".join("".join(char if char.isprintable() else " " for char in str(text)[:2000]).split())[:400]


def _printable_message(statement: Message) -> Message:
    return {"code": statement["code"], "values": {k: _in_one_line(v) for k, v in statement["values"].items()}}


def _in_one_line(value: Any) -> Any:
    """Return a value of a message with its texts made printable, those of the messages in it too."""
    if isinstance(value, list):
        return [_in_one_line(each) for each in value]
    if isinstance(value, Mapping):
        return _printable_message(cast(Message, value))
    return printable(value) if isinstance(value, str) else value


@dataclass(frozen=True)
class Check:
    """A check: `inspect` yields what is wrong at a site; it is made only where `applies`."""

    name: str
    inspect: Callable[[Site], Iterator[Finding]]
    applies: Callable[[Site], bool] = lambda site: True


class Site:
    """All machines of a preflight with the results of their probes.

    `machines` as judge.machines returns them; `probed`, `limits` and `device` as judge.judge takes them.
    """

    def __init__(
        self,
        machines: Sequence[Mapping[str, Any]],
        probed: Mapping[str, Mapping[str, Any]],
        limits: Mapping[str, Any],
        device: str,
    ) -> None:
        self.machines = machines
        self.probed = probed
        self.limits = limits
        self.device = device

    @property
    def nodes(self) -> list[str]:
        """The names of all nodes, in inventory order of their machines."""
        return [node for machine in self.machines for node in machine["nodes"]]

    @property
    def connected(self) -> bool:
        """Whether there are several machines, which must reach each other."""
        return len(self.machines) > 1

    @property
    def with_gpus(self) -> bool:
        """Whether runs will compute on GPUs, as far as is known before they start."""
        if self.device != "auto":
            return self.device == "gpu"
        return any(smi["gpus"] for _, smi in self.facts("smi"))

    def fact(self, machine: Mapping[str, Any], probe: str) -> Any:
        """Return the result of `probe` on `machine`, or None."""
        return self.probed.get(machine["name"], {}).get("facts", {}).get(probe)

    def failure(self, machine: Mapping[str, Any], probe: str) -> str | None:
        """Return why `probe` failed on `machine`, or None."""
        why = self.probed.get(machine["name"], {}).get("failed", {}).get(probe)
        return None if why is None else str(why)

    def facts(self, probe: str) -> Iterator[tuple[Mapping[str, Any], Any]]:
        """Yield each machine on which `probe` returned a result, with the result."""
        for machine in self.machines:
            value = self.fact(machine, probe)
            if value is not None:
                yield machine, value

    def failures(
        self, probe: str, check: str, level: str, *, expected: Statement, fix: Message
    ) -> Iterator[Finding]:
        """Yield a finding for each machine on which `probe` failed."""
        for machine in self.machines:
            why = self.failure(machine, probe)
            if why is not None:
                yield finding(check, level, machine["nodes"], observed=why, expected=expected, fix=fix)
