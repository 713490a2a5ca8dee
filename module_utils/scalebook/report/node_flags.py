# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What nodes went through within the window: processor time that a hypervisor took."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ansible.module_utils.scalebook.contracts import Flag, Row, Run
from ansible.module_utils.scalebook.report import weak_scaling
from ansible.module_utils.scalebook.report.thresholds import THRESHOLDS
from ansible.module_utils.scalebook.report.utilisation import valid_by_case


def flags(rows: Iterable[Row], runs: Sequence[Run]) -> list[tuple[Row, Flag]]:
    """Return each row with a flag that its nodes give it, for the runs that count."""
    made = []
    by_case = valid_by_case(runs)
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
