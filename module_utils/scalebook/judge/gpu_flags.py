# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What single GPUs went through within the window: held down by a limit, or idle part of the time."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

from ansible.module_utils.scalebook.contracts import Flag, GpuState, Record, Row, Run
from ansible.module_utils.scalebook.judge import weak_scaling
from ansible.module_utils.scalebook.judge.thresholds import THRESHOLDS
from ansible.module_utils.scalebook.judge.utilisation import TelemetryError, valid_by_case

LIMITS = (
    # column of the readings, code of the flag, what is said
    ("throttle_power_cap", "power-limited", "the power limit held the clocks down"),
    ("throttle_thermal", "throttled", "the temperature held the clocks down"),
    ("throttle_hardware", "throttled", "the hardware held the clocks down (power supply or overheating)"),
)


def of_record(record: Record) -> list[GpuState]:
    """Return the GPUs of a run with the shares of the window that the readings know.

    Raises TelemetryError for telemetry that no reader of logs wrote.
    """
    found: list[GpuState] = []
    try:
        for node in record.get("telemetry") or []:
            quantities = node.get("quantities") or {}
            idle, about = node.get("gpu_idle") or {}, node.get("about") or {}
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
                limit = ((about.get("gpus") or {}).get(gpu) or {}).get("power_limit")
                power = quantities.get(f"gpu:{gpu}:energy") or quantities.get(f"gpu:{gpu}:power")
                if limit and power:
                    state["power_used"] = float(power["mean"]) / float(limit)
                found.append(state)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as exc:
        raise TelemetryError(f"its GPUs cannot be read: {exc}") from exc
    return found


def flags(rows: Iterable[Row], runs: Sequence[Run]) -> list[tuple[Row, Flag]]:
    """Return each row with a flag that its GPUs give it; a share is the mean over the valid runs."""
    made = []
    by_case = valid_by_case(runs)
    for row in rows:
        gpus: dict[str, list[GpuState]] = {}
        for run in by_case.get(row["case"], []):
            for state in run.get("gpus") or []:
                gpus.setdefault(f"{state['node']} GPU {state['gpu']}", []).append(state)
        for column, code, what in LIMITS:
            shares = {
                name: share
                for name, share in _shares(gpus, column).items()
                if 100 * share >= THRESHOLDS["held-down"].value
                and (column != "throttle_power_cap" or _near_its_limit(gpus[name]))
            }
            if shares:
                made.append((row, weak_scaling.flag(code, f"{what}: {_named(shares)}")))
        idle = {
            name: share
            for name, share in _shares(gpus, "idle").items()
            if 100 * share >= THRESHOLDS["idle"].value
            and max(state.get("highest", 0.0) for state in gpus[name]) >= THRESHOLDS["swings-to"].value
        }
        if idle:
            text = f"GPUs swing between idle and busy; idle: {_named(idle)}"
            made.append((row, weak_scaling.flag("gpu-swings", text)))
    return made


def _near_its_limit(states: Sequence[GpuState]) -> bool:
    """Return whether a GPU drew nearly its power limit on average; the driver's flag outlasts a burst."""
    used = [state["power_used"] for state in states if "power_used" in state]
    return bool(used) and 100 * statistics.fmean(used) >= THRESHOLDS["power-near"].value


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
