# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Which machines and which hardware each row of a report was measured on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ansible.module_utils.scalebook.contracts import Hardware, Row, Run
from ansible.module_utils.scalebook.hardware import places


def attach(rows: Iterable[Row], runs: Sequence[Run], hardware: Sequence[Hardware]) -> None:
    """Give each row the places of its nodes in `hardware`, and the number of its machines.

    They are those of its valid runs, of any run where none is valid.
    """
    for row in rows:
        own = [run for run in runs if run["case"] == row["case"]]
        own = [run for run in own if run["rate"] is not None] or own
        row["hardware"] = places(hardware, [entry for run in own for entry in run.get("hardware") or ()])
        counts = [len(set(each)) for run in own if len(each := _machines(run)) == row["nodes"]]
        row["machines"] = min(counts, default=None)
        if row["machines"] == row["nodes"] > 1 and not any(run.get("boots") for run in own):
            # Names of containers do not tell whether they share a host.
            row["machines"] = None if in_containers(hardware, row) else row["nodes"]


def in_containers(entries: Sequence[Hardware], row: Row) -> bool:
    """Return whether nodes of a row are containers, as far as its records say it."""
    return any(entries[index].get("virtual") == "container" for index in row.get("hardware") or ())


def unknown(entries: Sequence[Hardware], row: Row) -> bool:
    """Return whether a row has several nodes, in containers of which no record says where they were."""
    return row["nodes"] > 1 and row.get("machines") is None and in_containers(entries, row)


def simulated(runs: Iterable[Run]) -> dict[str, int] | None:
    """Return `{"nodes", "machines"}` of the largest run whose nodes shared machines, None without one.

    `containers` is there where the nodes took themselves for machines of their own.
    """
    per_run: list[dict[str, int]] = []
    for run in runs:
        machines, hosts = _machines(run), list(run["hosts"].values())
        if len(set(machines)) < len(machines):
            own = {"containers": 1} if len(set(hosts)) == len(machines) else {}
            per_run.append({"nodes": len(machines), "machines": len(set(machines)), **own})
    return max(per_run, key=lambda counts: counts["nodes"], default=None)


def _machines(run: Run) -> list[str]:
    """Return a word for the machine of each node of a run that tells it.

    It is the start of its kernel (Linux's boot_id), which containers of one host share, where every node says
    it, else the host name that its node script reported.
    """
    boots, hosts = run.get("boots") or {}, run["hosts"]
    return list((boots if boots and len(boots) >= len(hosts) else hosts).values())
