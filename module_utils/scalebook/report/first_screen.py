# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What a reader needs to know first of each group: what was measured, how fast, how well, how sure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook import hardware
from ansible.module_utils.scalebook.contracts import Group, Mfu, Row
from ansible.module_utils.scalebook.judge import headings
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.text import clean

HEADING = ("workload", "model", "dtype")
UNKNOWN = (*("label", "shared", "devices", "rate", "total", "efficiency", "steps", "mfu", "peak", "spread"),)
"""What is not known of a group without a valid run."""


def noun_of(group: Group) -> str:
    """Return what the devices of a group are called."""
    return "GPU" if group.get("device") == "gpu" else "device"


def heading(group: Group, groups: Sequence[Group], wording: Wording) -> str:
    """Return such as `torch_bert · base · bf16 · torch.compile · batch 512 per GPU`.

    `groups` are all of the report: what some of them differ in, such as a setting, is named as well.
    """
    values: Mapping[str, Any] = group
    words = [clean(values[field]) for field in HEADING]
    if group["xla"]:
        words.append(clean(group.get("compiler") or wording("family.compiled")))
    words.append(wording("report.batch", size=group["bsz"], device=wording.name("noun", noun_of(group))))
    return " · ".join([*words, *map(clean, headings.unusual_words(group, groups))])


def settings(group: Group, wording: Wording) -> list[tuple[str, str]]:
    """Return the settings of a group that its heading leaves out, as names and values."""
    pairs: list[tuple[str, Any]] = [
        ("device", "CPU" if group.get("device") == "cpu" else ""),
        ("accumulation", group["accumulation"] if group["accumulation"] != 1 else ""),
        ("warmup", group.get("warmup")),
        ("window", group.get("window")),
        ("epoch_samples", group.get("epoch_samples")),
    ]
    named = [(wording.name("setting", name), value) for name, value in pairs]
    named += sorted((clean(name), value) for name, value in (group.get("settings") or {}).items())
    return [(name, _value(value)) for name, value in named if value not in (None, "")]


def _value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else clean(value)


def card(
    group: Group, groups: Sequence[Group], rows: Sequence[Row], shares: Mapping[str, Mfu], wording: Wording
) -> dict[str, Any]:
    """Return the numbers of a group's largest measured case; '' for what is not known.

    `groups` are all of the report, `rows` those of the group, `shares` the MFU of cases whose workload
    declares its operations, as the table has it; of other workloads it is what the runs report.  `flags`
    counts the flags of all rows.
    """
    measured = [(row["devices"], median, row) for row in rows if (median := row["median"]) is not None]
    flags = [(clean(row["label"]), flag["code"]) for row in rows for flag in row["flags"]]
    made: dict[str, Any] = {
        "id": group["id"],
        "heading": heading(group, groups, wording),
        "unit": wording.name("unit", group["unit"]),
        "device": wording.name("noun", noun_of(group)),
        "flags": wording.count(len(flags), "flag") if flags else "",
        "runs": f"{sum(row['good'] for row in rows)}/{sum(row['planned'] for row in rows)}",
        **dict.fromkeys(UNKNOWN, ""),
    }
    if not measured:
        return made
    devices, median, top = max(measured, key=lambda each: each[:2])
    made["label"] = clean(top["label"])
    made["shared"] = hardware.shared(top, wording)
    made["devices"] = wording.count(devices, noun_of(group))
    made["rate"] = wording.number(median / devices)
    made["total"] = wording.number(median)
    made["spread"] = wording.percent(top["spread"]) if top["good"] > 1 else ""
    if devices > 1 and top["efficiency"] is not None:
        made["efficiency"] = wording.percent(top["efficiency"])
        made["steps"] = f"1 → {wording.count(devices, noun_of(group))}"
    share = shares[top["case"]]["mfu"] if top["case"] in shares else mfu(top)
    made["mfu"] = wording.percent(share) if share is not None else ""
    made["peak"] = peak(shares[top["case"]], wording) if top["case"] in shares and made["mfu"] else ""
    return made


def peak(entry: Mfu, wording: Wording) -> str:
    """Return such as `989.4 TFLOP/s, NVIDIA H200, dense bf16`, what an MFU is a share of."""
    of = wording.tell(entry["peak_of"] or "")
    return wording.join([f"{entry['peak_tflops']:g} TFLOP/s", of])


def mfu(row: Row) -> float | None:
    """Return the median of the MFU that the runs of a row report, None where one reports none."""
    try:
        values = [float(run["self_reported"]["mfu"]) for run in row["runs"]]
    except (KeyError, TypeError, ValueError):
        return None
    return statistics.median(values) if values and all(0 < value < 10 for value in values) else None
