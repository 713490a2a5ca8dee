# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What groups of rows are called: the fields that identify them, and those in which they differ.

A name is a message of words; a word is a name itself, such as `fp16` or `b64`, or a message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible.module_utils.scalebook.contracts import GROUP_FIELDS, Group, Message, message
from ansible.module_utils.scalebook.grouping import grouped

Word = str | Message
COMPILED = "compiled"
"""The compiler of a workload that declares none."""
_COMMIT = re.compile(r"\b[0-9a-f]{40}\b")
UNUSUAL = ("warmup", "window", "epoch_samples", "settings")
"""Fields that a heading names only where a workload has several values of them."""
USUAL = tuple(field for field in GROUP_FIELDS if field not in UNUSUAL)


def name_groups(groups: Sequence[Group]) -> None:
    """Give every group its `title` (all that identifies it), `short` (what tells it apart), `differing`."""
    differences = Differences(groups)
    for group in groups:
        own = differences.unusual(group)
        group["differing"] = named(own)
        group["title"] = named([*words_of(group, USUAL), *own])
        short = differences.telling_apart(group)
        group["short"] = named(short) if short else group["title"]


def named(words: Iterable[Word]) -> Message:
    """Return the name of these words."""
    return message("name.of", words=list(words))


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

    def telling_apart(self, entry: Mapping[str, Any]) -> list[Word]:
        """Return what an entry has that others have not, nothing for one alone.

        The usual value goes without saying, unless it is all that there is to say.
        """
        own = self.unusual(entry)
        different = [*words_of(entry, self._usual), *own]
        return different or words_of(entry, self._usual, plain=False)

    def unusual(self, entry: Mapping[str, Any]) -> list[Word]:
        """Return what a heading says of steps and settings: in what the entries of its workload differ."""
        varying, _ = self._unusual[entry["workload"]]
        return words_of(self.with_varying_settings(entry), varying)

    def with_varying_settings(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Return an entry with those settings only that differ between the entries of its workload."""
        own, (_, varying) = entry.get("settings") or {}, self._unusual[entry["workload"]]
        return {**entry, "settings": {name: own[name] for name in own if name in varying}}


def shared(entries: Sequence[Mapping[str, Any]], every: Sequence[Mapping[str, Any]]) -> list[Word]:
    """Return what `entries` have in common that others of `every` have not, but for steps and settings."""
    first, *others = entries
    alike = [
        field
        for field in USUAL
        if field in first and all(_value(other, field) == _value(first, field) for other in others)
    ]
    return words_of(first, _varying(alike, every))


def _varying(fields: Iterable[str], entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the fields in which entries differ."""
    return [field for field in fields if len({_value(entry, field) for entry in entries}) > 1]


def _value(values: Mapping[str, Any], field: str) -> str:
    """Return a value as text that is that of no other value, not even of 1 and True."""
    value = values.get(field)
    if isinstance(value, (str, int, float)) or value is None:
        return repr(value)
    return json.dumps(value, sort_keys=True, default=str)


def words_of(values: Mapping[str, Any], fields: Iterable[str], plain: bool = True) -> list[Word]:
    """Return how a heading names fields of `values`; `plain` leaves out the usual values."""
    return [word for field in fields for word in _words(values, field, plain)]


def _words(values: Mapping[str, Any], field: str, plain: bool) -> list[Word]:
    value = values.get(field)
    if field == "xla":
        return [] if plain and not value else [_compiled(bool(value), values.get("compiler"))]
    if field == "bsz":
        return [f"b{value}"]
    if field == "accumulation":
        return [] if plain and value == 1 else [message("name.accumulation", steps=value)]
    if field == "device":
        device = str(value or "unknown").upper()
        return [] if plain and value != "cpu" else [message("name.on", device=device)]
    if field in ("warmup", "window", "epoch_samples"):
        return [message(f"name.{field}", count=value)] if value is not None else []
    if field == "settings":
        chosen = {name: each for name, each in sorted((value or {}).items()) if each != ""}
        return [f"{name}={_short(each)}" for name, each in chosen.items()]
    if field == "model" and str(value) in str(values.get("workload")).split("_"):
        return []
    return [str(value)]


def _compiled(compiled: bool, compiler: Any) -> Word:
    """Return what compiled a model, or that nothing did."""
    if compiler and compiler != COMPILED:
        return str(compiler) if compiled else message("name.without", compiler=str(compiler))
    return message("name.compiled" if compiled else "name.not-compiled")


def _short(value: Any) -> str:
    """Return a value of a setting; a commit by its first digits."""
    return _COMMIT.sub(lambda digits: digits[0][:7], str(value))
