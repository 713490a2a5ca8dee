# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The verdicts of acceptance.yml on the nodes of a campaign: a condemned node is refused."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook.accept import document, reasons
from ansible.module_utils.scalebook.accept.contracts import SCHEMA
from ansible.module_utils.scalebook.accept.verdict import UNCLEAR
from ansible.module_utils.scalebook.contracts import Finding, message
from ansible.module_utils.scalebook.files import read_small
from ansible.module_utils.scalebook.json_file import decode
from ansible.module_utils.scalebook.preflight.site import finding

CHECK = "acceptance"
AGAIN = message("fix.accept-again")
LOOPBACK = "127.0.0.1"


def read(path: Path) -> dict[str, Any] | None:
    """Return acceptance.json, None where there is none; raise ValueError for another file.

    What an earlier version wrote is as today's, if it can be read.
    """
    if not path.exists():
        return None
    try:
        content = decode(read_small(path))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return document.upgrade(content)


def findings(
    accepted: Mapping[str, Any] | None,
    machines: Sequence[Mapping[str, Any]],
    probed: Mapping[str, Mapping[str, Any]],
    days: float,
    now: datetime.datetime,
) -> Iterator[Finding]:
    """Yield what acceptance.json says against `machines`, as judge.judge takes them, or that it has nothing.

    A verdict is that on a node of the same name and address.  One older than `days` is a warning, as are
    other GPUs than were judged.
    """
    if accepted is None:
        return
    if accepted.get("schema") != SCHEMA:
        names = [node for machine in machines for node in machine["nodes"]]
        yield finding(
            CHECK, "warn", names, observed=message("preflight.acceptance-of-another-version"), fix=AGAIN
        )
        return
    judged = {machine["name"]: _judged(accepted["machines"], machine) for machine in machines}
    if not any(judged.values()):
        return
    judged_at = datetime.datetime.fromisoformat(accepted["time"])
    for machine in machines:
        nodes = judged[machine["name"]]
        unjudged = [node for node in machine["nodes"] if node not in nodes]
        yield from _verdicts(accepted, nodes, judged_at)
        if unjudged:
            yield finding(CHECK, "warn", unjudged, observed=message("preflight.not-judged"), fix=AGAIN)
        smi = probed.get(machine["name"], {}).get("facts", {}).get("smi") or {}
        present = sorted(str(gpu.get("uuid")) for gpu in smi.get("gpus", ()))
        others = [node for node in nodes if present and sorted(accepted["machines"][node]["gpus"]) != present]
        if others:
            yield finding(CHECK, "warn", others, observed=message("preflight.other-gpus-judged"), fix=AGAIN)
    names = [node for nodes in judged.values() for node in nodes]
    age = (now - judged_at).total_seconds() / 86400
    if age > days:
        yield finding(CHECK, "warn", names, observed=message("preflight.judged-before", days=age), fix=AGAIN)


def _judged(addressed: Mapping[str, Any], machine: Mapping[str, Any]) -> list[str]:
    """Return the nodes of a machine that acceptance.json knows under their address."""
    address = LOOPBACK if machine["local"] else machine["address"]
    return [node for node in machine["nodes"] if node in addressed and addressed[node]["address"] == address]


def _verdicts(
    accepted: Mapping[str, Any],
    nodes: Sequence[str],
    judged_at: datetime.datetime,
) -> Iterator[Finding]:
    """Yield the verdicts on the nodes that are not good."""
    for node in nodes:
        if node in accepted["bad"]:
            yield finding(
                CHECK,
                "refuse",
                [node],
                observed=message(
                    "preflight.condemned", day=judged_at.date().isoformat(), reason=accepted["reasons"][node]
                ),
                expected=message("expected.accepted-node"),
                fix=message("fix.condemned", limit=accepted["limit"], check=CHECK),
            )
        elif node in accepted["unclear"]:
            rows = [row for row in accepted["findings"] if row["verdict"] == UNCLEAR and node in row["nodes"]]
            parts = [reasons.of_part(row) for row in rows]
            observed = (
                message("preflight.no-verdict-on", parts=parts) if parts else message("preflight.no-verdict")
            )
            yield finding(CHECK, "warn", [node], observed=observed, fix=AGAIN)
