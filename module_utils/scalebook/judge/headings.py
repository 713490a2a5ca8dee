# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What groups of rows are called: the fields that identify them, and those in which they differ."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import GROUP_FIELDS, Group
from ansible.module_utils.scalebook.grouping import grouped

_COMMIT = re.compile(r"\b[0-9a-f]{40}\b")
UNUSUAL = ("warmup", "window", "epoch_samples", "settings")
"""Fields that a heading names only where a workload has several values of them."""
USUAL = tuple(field for field in GROUP_FIELDS if field not in UNUSUAL)


def name_groups(groups: Sequence[Group]) -> None:
    """Give every group its `title` (all that identifies it), `short` (what tells it apart), `differing`."""
    differences = Differences(groups)
    for group in groups:
        own = differences.unusual(group)
        group["differing"] = " ".join(own)
        group["title"] = " ".join(filter(None, [*(word(group, field) for field in USUAL), *own]))
        group["short"] = differences.telling_apart(group) or group["title"]


class Differences:
    """In what groups, or tables of strong scaling, differ: looked for once, asked of each of them."""

    def __init__(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Look for the fields and, for each workload, for the settings."""
        self._usual = _varying(USUAL, list(entries))
        self._unusual = {}
        for workload, own in grouped(entries, lambda entry: entry["workload"]).items():
            settings = [entry.get("settings") or {} for entry in own]
            names = dict.fromkeys(name for each in settings for name in each)
            self._unusual[workload] = _varying(UNUSUAL, own), _varying(names, settings)

    def telling_apart(self, entry: Mapping[str, Any]) -> str:
        """Return what an entry has that others have not; '' for one alone.

        The usual value goes without saying, unless it is all that there is to say.
        """
        own = self.unusual(entry)
        different = [*(word(entry, field) for field in self._usual), *own]
        if not any(different):
            different = [word(entry, field, plain=False) for field in self._usual]
        return " ".join(filter(None, different))

    def unusual(self, entry: Mapping[str, Any]) -> list[str]:
        """Return what a heading says of steps and settings: in what the entries of its workload differ."""
        varying, _ = self._unusual[entry["workload"]]
        named = self.with_varying_settings(entry)
        return [words for field in varying if (words := word(named, field))]

    def with_varying_settings(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Return an entry with those settings only that differ between the entries of its workload."""
        own, (_, varying) = entry.get("settings") or {}, self._unusual[entry["workload"]]
        return {**entry, "settings": {name: own[name] for name in own if name in varying}}


def shared(entries: Sequence[Mapping[str, Any]], every: Sequence[Mapping[str, Any]]) -> str:
    """Return what `entries` have in common that others of `every` have not, but for steps and settings."""
    first, *others = entries
    alike = [
        field
        for field in USUAL
        if field in first and all(_value(other, field) == _value(first, field) for other in others)
    ]
    return " ".join(filter(None, (word(first, field) for field in _varying(alike, every))))


def _varying(fields: Iterable[str], entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the fields in which entries differ."""
    return [field for field in fields if len({_value(entry, field) for entry in entries}) > 1]


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
