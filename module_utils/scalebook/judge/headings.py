# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What groups of rows are called: the fields that identify them, and those in which they differ."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import GROUP_FIELDS, Group

_COMMIT = re.compile(r"\b[0-9a-f]{40}\b")
UNUSUAL = ("warmup", "window", "epoch_samples", "settings")
"""Fields that a heading names only where a workload has several values of them."""
USUAL = tuple(field for field in GROUP_FIELDS if field not in UNUSUAL)


def name_groups(groups: Sequence[Group]) -> None:
    """Give every group its `title` (all that identifies it), `short` (what tells it apart), `differing`."""
    for group in groups:
        own = unusual_words(group, groups)
        group["differing"] = " ".join(own)
        group["title"] = " ".join(filter(None, [*(word(group, field) for field in USUAL), *own]))
        group["short"] = telling_apart(group, groups) or group["title"]


def telling_apart(entry: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> str:
    """Return what a group, or a table of strong scaling, has that others have not; '' for one alone.

    The usual value goes without saying, unless it is all that there is to say.
    """
    varying = [field for field in USUAL if len({_value(other, field) for other in entries}) > 1]
    own = unusual_words(entry, entries)
    different = [*(word(entry, field) for field in varying), *own]
    if not any(different):
        different = [word(entry, field, plain=False) for field in varying]
    return " ".join(filter(None, different))


def shared(entries: Sequence[Mapping[str, Any]], every: Sequence[Mapping[str, Any]]) -> str:
    """Return what `entries` have in common that others of `every` have not, but for steps and settings."""
    first, *others = entries
    alike = [
        field
        for field in USUAL
        if field in first and all(_value(other, field) == _value(first, field) for other in others)
    ]
    varying = [field for field in alike if len({_value(other, field) for other in every}) > 1]
    return " ".join(filter(None, (word(first, field) for field in varying)))


def unusual_words(entry: Mapping[str, Any], entries: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return what a heading says of steps and settings: that in which `entries` of the workload differ."""
    same = [other for other in entries if other["workload"] == entry["workload"]]
    varying = [field for field in UNUSUAL if len({_value(other, field) for other in same}) > 1]
    named = with_varying_settings(entry, same)
    return [words for field in varying if (words := word(named, field))]


def with_varying_settings(entry: Mapping[str, Any], entries: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return `entry` with those settings only that differ between the `entries` of its workload."""
    own = entry.get("settings") or {}
    same = [other.get("settings") or {} for other in entries if other["workload"] == entry["workload"]]
    varying = {name for name in own if len({_value(settings, name) for settings in same}) > 1}
    return {**entry, "settings": {name: own[name] for name in own if name in varying}}


def _value(values: Mapping[str, Any], field: str) -> str:
    """Return a value as text that is that of no other value, not even of 1 and True."""
    value = values.get(field)
    if isinstance(value, (str, int, float)) or value is None:
        return repr(value)
    return json.dumps(value, sort_keys=True, default=str)


def word(values: Mapping[str, Any], field: str, plain: bool = True) -> str:
    """Return how a heading names `field` of `values`; `plain` leaves out the usual value."""
    value = values.get(field)
    if field == "xla":
        compiler = str(values.get("compiler") or "compiled")
        if plain and not value:
            return ""
        return compiler if value else ("not compiled" if compiler == "compiled" else f"no {compiler}")
    if field == "bsz":
        return f"b{value}"
    if field == "accumulation":
        return "" if plain and value == 1 else f"accumulation {value}"
    if field == "device":
        return "on CPU" if value == "cpu" else ("" if plain else f"on {str(value or 'unknown').upper()}")
    if field in ("warmup", "window", "epoch_samples"):
        return f"{field.replace('_', ' ')} {value}" if value is not None else ""
    if field == "settings":
        chosen = {name: each for name, each in sorted((value or {}).items()) if each != ""}
        return " ".join(f"{name}={_short(each)}" for name, each in chosen.items())
    if field == "model" and str(value) in str(values.get("workload")).split("_"):
        return ""
    return str(value)


def _short(value: Any) -> str:
    """Return a value of a setting; a commit by its first digits."""
    return _COMMIT.sub(lambda digits: digits[0][:7], str(value))
