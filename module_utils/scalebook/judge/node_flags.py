# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What nodes went through: processor time that a hypervisor took, machines that changed or were shared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ansible.module_utils.scalebook import hardware
from ansible.module_utils.scalebook.contracts import BASELINE, Flag, Hardware, Row, Run
from ansible.module_utils.scalebook.judge import sharing, weak_scaling
from ansible.module_utils.scalebook.judge.thresholds import THRESHOLDS
from ansible.module_utils.scalebook.judge.utilisation import valid_by_case


def flags(
    rows: Iterable[Row], runs: Sequence[Run], entries: Sequence[Hardware] = ()
) -> list[tuple[Row, Flag]]:
    """Return each row with a flag that its nodes give it, for the runs that count.

    `entries` is the hardware of the report.
    """
    rows = list(rows)
    by_case = valid_by_case(runs)
    return [*_stolen(rows, by_case), *_machine_changed(rows, by_case), *_shared(rows, entries)]


def _shared(rows: Iterable[Row], entries: Sequence[Hardware]) -> list[tuple[Row, Flag]]:
    """Return flags of rows whose nodes shared machines, as simulated nodes and containers of one host do."""
    made = []
    for row in rows:
        text = hardware.shared(row)
        if text:
            text += ": this says nothing about a network between machines"
        elif sharing.unknown(entries, row):
            text = f"{row['nodes']} nodes in containers: no record says on how many machines"
        if text:
            made.append((row, weak_scaling.flag("shared-machine", text)))
    return made


def _stolen(rows: Iterable[Row], by_case: Mapping[str, Sequence[Run]]) -> list[tuple[Row, Flag]]:
    made = []
    for row in rows:
        shares = {
            run["repeat"]: max((run.get("utilisation") or {}).get("stolen", [0.0]))
            for run in by_case.get(row["case"], [])
        }
        large = {repeat: share for repeat, share in shares.items() if share >= THRESHOLDS["stolen"].value}
        if large:
            worst, names = max(large.values()), ", ".join(map(str, sorted(large)))
            text = f"the hypervisor took up to {worst:.3g} % of a node's processor time (repeat {names})"
            made.append((row, weak_scaling.flag("stolen", text)))
    return made


def _machine_changed(rows: Sequence[Row], by_case: Mapping[str, Sequence[Run]]) -> list[tuple[Row, Flag]]:
    """Return flags of rows whose runs, or whose 1n1g, ran on other machines under the same names.

    A virtual machine that is made again looks like one that was started again.
    """
    made = []
    boots = {
        row["case"]: {
            run["repeat"]: set(known.values())
            for run in by_case.get(row["case"], ())
            if len(known := run.get("boots") or {}) == row["nodes"]
        }
        for row in rows
    }
    alone = {row["group"]: boots[row["case"]] for row in rows if row["label"] == BASELINE}
    for row in rows:
        own = boots[row["case"]]
        first = own[min(own)] if own else set()
        others = ", ".join(str(repeat) for repeat in sorted(own) if own[repeat] != first)
        if others:
            text = (
                "not all repeats ran on the same machines, or one was started again in between "
                f"(repeat {others})"
            )
            made.append((row, weak_scaling.flag("machine-changed", text)))
        used = set().union(*own.values())
        base = alone.get(row["group"], {})
        elsewhere = ", ".join(str(repeat) for repeat in sorted(base) if not base[repeat] <= used)
        if used and elsewhere:
            text = (
                f"1n1g (repeat {elsewhere}) ran on a machine that this case did not use, or before it was "
                "started again: the speedup compares different machines"
            )
            made.append((row, weak_scaling.flag("machine-changed", text)))
    return made
