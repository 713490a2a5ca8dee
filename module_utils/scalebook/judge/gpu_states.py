# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What single GPUs went through within the window: held down by a limit, or idle part of the time."""

from __future__ import annotations

from ansible.module_utils.scalebook.contracts import GpuState, Record
from ansible.module_utils.scalebook.judge.flags import HELD_DOWN
from ansible.module_utils.scalebook.judge.utilisation import TelemetryError


def of_record(record: Record) -> list[GpuState]:
    """Return the GPUs of a run with the shares of the window that the readings know.

    Raises TelemetryError for telemetry that no reader of logs wrote.
    """
    states: list[GpuState] = []
    try:
        for node in record.get("telemetry") or []:
            quantities = node.get("quantities") or {}
            idle, about = node.get("gpu_idle") or {}, node.get("about") or {}
            for gpu in sorted(
                {name.split(":")[1] for name in quantities if name.startswith("gpu:")}, key=int
            ):
                state: GpuState = {"node": str(node.get("node")), "gpu": gpu, "shares": {}}
                for column in HELD_DOWN:
                    if f"gpu:{gpu}:{column}" in quantities:
                        state["shares"][column] = float(quantities[f"gpu:{gpu}:{column}"]["mean"])
                if gpu in idle and f"gpu:{gpu}:utilization" in quantities:
                    state["shares"]["idle"] = float(idle[gpu])
                    state["highest"] = float(quantities[f"gpu:{gpu}:utilization"]["max"])
                limit = ((about.get("gpus") or {}).get(gpu) or {}).get("power_limit")
                power = quantities.get(f"gpu:{gpu}:energy") or quantities.get(f"gpu:{gpu}:power")
                if limit and power:
                    state["power_used"] = float(power["mean"]) / float(limit)
                states.append(state)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as exc:
        raise TelemetryError("run.odd-gpus", why=str(exc)) from exc
    return states
