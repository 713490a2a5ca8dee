# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What a single setting changed: pairs of rows of one campaign that differ in nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ansible.module_utils.scalebook.contracts import Message, Row, message
from ansible.module_utils.scalebook.grouping import grouped

LEAST = 0.02
"""Share by which rows must differ before a sentence says so; docs/explanation/repeats.md."""
SAME = ("workload", "model", "device", "unit", "nodes", "gpus", "machines")
FIELDS = ("dtype", "xla", "bsz", "accumulation")


class Effect(NamedTuple):
    """Two rows that differ in `setting` only; `gain` is the quotient of the faster rate and the slower.

    `clear` says whether the ranges of their runs are apart; one run has no range.
    """

    setting: str
    faster: Row
    slower: Row
    gain: float
    clear: bool

    def value(self, row: Row) -> Any:
        """Return the value of the setting in one of the rows."""
        return settings_of(row)[self.setting]


def settings_of(row: Row) -> dict[str, Any]:
    """Return all that somebody can set of a row and that may change its rate, by name."""
    values: Mapping[str, Any] = row
    return {**{field: values[field] for field in FIELDS}, **(row.get("settings") or {})}


def effects(rows: Iterable[Row]) -> list[Effect]:
    """Return the effects of settings, those at the most devices first, then the largest."""
    alike = grouped(
        (row for row in rows if row["median"]),
        lambda row: json.dumps([row.get(field) for field in SAME]),
    )
    each_effect = [
        effect
        for own in alike.values()
        for index, row in enumerate(own)
        for other in own[:index]
        if (effect := _effect(row, other))
    ]
    return sorted(each_effect, key=lambda each: (-each.faster["devices"], -each.gain))


def _effect(row: Row, other: Row) -> Effect | None:
    one, two = settings_of(row), settings_of(other)
    unlike = [name for name in {**one, **two} if one.get(name) != two.get(name)]
    if len(unlike) != 1 or unlike[0] not in one or unlike[0] not in two:
        return None
    faster, slower = sorted((row, other), key=lambda each: -float(each["median"] or 0))
    gain = float(faster["median"] or 0) / float(slower["median"] or 1)
    low, high = faster["min"], slower["max"]
    apart = low is not None and high is not None and low > high
    return Effect(unlike[0], faster, slower, gain, apart and gain - 1 >= LEAST)


def of_setting(effects: Iterable[Effect], row: Row, setting: str) -> list[Effect]:
    """Return the effects of a setting on a row, the largest first."""
    own = [each for each in effects if each.setting == setting and (each.faster is row or each.slower is row)]
    return sorted(own, key=lambda each: -each.gain)


def named(row: Row, setting: str) -> Message:
    """Return what a row has of a setting: `bf16`, `batch 64`, `bucket_mb=2000`."""
    value = settings_of(row)[setting]
    if setting == "xla":
        return message("effect.compiled" if value else "effect.not-compiled")
    if setting in ("bsz", "accumulation", "dtype"):
        return message(f"effect.{setting}", value=value)
    return message(
        "effect.setting", name=setting, value=str(value).lower() if isinstance(value, bool) else value
    )
