# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What single GPUs went through within the window: held down by a limit, or idle part of the time."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import Flag, GpuState, Row, Run
from ansible.module_utils.scalebook.report import weak_scaling
from ansible.module_utils.scalebook.report.utilisation import TelemetryError

HELD_DOWN = 0.05
"""Share of the window from which clocks held down are flagged: less is within the spread of runs."""

IDLE, BUSY = 0.05, 80.0
"""A GPU swings if it was idle for this share of the window and some sample had this utilisation, in per cent:
a GPU that is idle throughout is slow for another reason, and a single short gap is within the spread."""

LIMITS = (
    # column of the readings, code of the flag, what is said
    ("throttle_power_cap", "power-limited", "the power limit held the clocks down"),
    ("throttle_thermal", "throttled", "the temperature held the clocks down"),
    ("throttle_hardware", "throttled", "the hardware held the clocks down (power supply or overheating)"),
)


def of_record(record: Mapping[str, Any]) -> list[GpuState]:
    """Return the GPUs of a run with the shares of the window that the readings know.

    Raises TelemetryError for telemetry that no reader of logs wrote.
    """
    found: list[GpuState] = []
    try:
        for node in record.get("telemetry") or []:
            quantities = node.get("quantities") or {}
            idle = node.get("gpu_idle") or {}
            for gpu in sorted(
                {name.split(":")[1] for name in quantities if name.startswith("gpu:")}, key=int
            ):
                state: GpuState = {"node": str(node.get("node")), "gpu": gpu, "shares": {}}
                for column, _, _ in LIMITS:
                    if f"gpu:{gpu}:{column}" in quantities:
                        state["shares"][column] = float(quantities[f"gpu:{gpu}:{column}"]["mean"])
                if gpu in idle and f"gpu:{gpu}:utilization" in quantities:
                    state["shares"]["idle"] = float(idle[gpu])
                    state["highest"] = float(quantities[f"gpu:{gpu}:utilization"]["max"])
                found.append(state)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as exc:
        raise TelemetryError(f"its GPUs cannot be read: {exc}") from exc
    return found


def flags(rows: Iterable[Row], runs: Sequence[Run]) -> list[tuple[Row, Flag]]:
    """Return each row with a flag that its GPUs give it; a share is the mean over the valid runs."""
    made = []
    for row in rows:
        of_row = [run for run in runs if run["case"] == row["case"] and run["rate"] is not None]
        gpus: dict[str, list[GpuState]] = {}
        for run in of_row:
            for state in run.get("gpus") or []:
                gpus.setdefault(f"{state['node']} GPU {state['gpu']}", []).append(state)
        for column, code, what in LIMITS:
            shares = {name: share for name, share in _shares(gpus, column).items() if share >= HELD_DOWN}
            if shares:
                made.append((row, weak_scaling.flag(code, f"{what}: {_named(shares)}")))
        idle = {
            name: share
            for name, share in _shares(gpus, "idle").items()
            if share >= IDLE and max(state.get("highest", 0.0) for state in gpus[name]) >= BUSY
        }
        if idle:
            text = f"GPUs swing between idle and busy; idle: {_named(idle)}"
            made.append((row, weak_scaling.flag("gpu-swings", text)))
    return made


def _shares(gpus: Mapping[str, Sequence[GpuState]], what: str) -> dict[str, float]:
    known = {
        name: [each["shares"][what] for each in states if what in each["shares"]]
        for name, states in gpus.items()
    }
    return {name: statistics.fmean(shares) for name, shares in known.items() if shares}


def _named(shares: Mapping[str, float]) -> str:
    """Return the GPU with the largest share, and how many others there are."""
    name, share = max(shares.items(), key=lambda item: item[1])
    more = f" ({len(shares) - 1} more, from {_percent(min(shares.values()))} on)" if len(shares) > 1 else ""
    return f"{name} for {_percent(share)} of the window{more}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
