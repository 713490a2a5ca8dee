# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The public variables of a campaign: coerced and checked here, and nowhere else.

`ansible-playbook -e "bsz=64 dtype=fp16"` hands over text, `-e '{"bsz": [32, 64]}'` typed
values, ansible-runner either: `bsz=32,64`, `bsz=[32,64]` and `{"bsz": [32, 64]}` mean the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

# Far above any cluster, far below what would fill memory when a matrix is expanded.
LARGEST = {"bsz": 1_000_000, "nodes": 100_000, "gpus": 1024, "repeats": 1000, "accumulation": 1_000_000}

LISTS = ("dtype", "xla", "bsz", "nodes", "gpus")
"""Knobs that take several values; every combination becomes a case."""

SINGLES = ("framework", "model", "repeats", "accumulation", "device", "campaign", "plan_only", "force")
"""Knobs that take one value."""

NAMES = LISTS + SINGLES

_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


class KnobError(ValueError):
    """One or more knobs are wrong; the text names each variable, its value and what is allowed."""


def as_list(value: Any) -> list[Any]:
    """Return `value` as a list: `"32,64"`, `"[32, 64]"`, `64`, `[32, 64]`."""
    if isinstance(value, str):
        return [part.strip() for part in value.strip().removeprefix("[").removesuffix("]").split(",")]
    if isinstance(value, Sequence):
        return list(value)
    return [value]


def as_bool(name: str, value: Any) -> bool:
    """Return the truth that `value` spells, as Ansible's own booleans do."""
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise KnobError(f"{name}={value}: allowed are true and false")


def as_count(name: str, value: Any) -> int:
    """Return a positive whole number no larger than LARGEST[name]."""
    text = str(value).strip()
    largest = LARGEST[name]
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= largest:
        raise KnobError(f"{name}={text[:40]}: allowed are whole numbers from 1 to {largest}")
    return int(text)


def as_choice(name: str, value: Any, allowed: Sequence[str]) -> str:
    """Return `value` if it is one of `allowed`, with a hint at the nearest one otherwise."""
    text = str(value).strip()
    if text in allowed:
        return text
    near = get_close_matches(text, allowed, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise KnobError(f"{name}={text[:40]}: allowed are {', '.join(allowed)}{hint}")


def check_names(given: Sequence[str], prefixes: Sequence[str], others: Sequence[str] = ()) -> None:
    """Refuse an extra variable that nothing reads: `-e bzs=64` must not measure something else.

    `prefixes` are the names of the roles (their variables are `<role>_…`), `others` further
    names that playbooks read.
    """
    known = [*NAMES, *others]
    problems = []
    for name in given:
        if name in known or name.startswith(("ansible_", "stack", *(f"{prefix}_" for prefix in prefixes))):
            continue
        near = get_close_matches(name, known, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        problems.append(
            f"{name}: no variable of a campaign has this name{hint}; allowed are {', '.join(known)}"
        )
    if problems:
        raise KnobError("; ".join(problems))


def read_knobs(raw: Mapping[str, Any], workload: Mapping[str, Any], device: str) -> dict[str, Any]:
    """Return all knobs as typed values; what was not given is the workload's default.

    `nodes` and `gpus` may stay `None`: their default depends on the inventory (matrix.plan).
    Raises KnobError that lists every problem at once.
    """
    known_dtypes = sorted({dtype for dtypes in workload["dtypes"].values() for dtype in dtypes}, reverse=True)
    readers = {
        "bsz": lambda value: as_count("bsz", value),
        "nodes": lambda value: as_count("nodes", value),
        "gpus": lambda value: as_count("gpus", value),
        "dtype": lambda value: as_choice("dtype", value, known_dtypes),
        "xla": lambda value: as_bool("xla", value),
    }
    defaults: dict[str, Any] = {
        "bsz": workload.get("bsz", {}).get(device, 32),
        "dtype": "fp32",
        "xla": False,
        "repeats": 3,
        "accumulation": workload.get("accumulation", 1),
        "model": workload["models"][device],
        "force": False,
    }
    given = {name: value for name, value in raw.items() if value is not None and value != ""}
    chosen = {**defaults, **given}
    knobs: dict[str, Any] = {"nodes": None, "gpus": None}
    problems: list[str] = []

    def read(name: str, reader: Any) -> None:
        try:
            knobs[name] = reader(chosen[name])
        except KnobError as error:
            problems.append(str(error))

    for name, reader in readers.items():
        if name in chosen:
            read(
                name,
                lambda value, name=name, reader=reader: _unique(name, [reader(v) for v in as_list(value)]),
            )
    read("repeats", lambda value: as_count("repeats", value))
    read("accumulation", lambda value: as_count("accumulation", value))
    read("force", lambda value: as_bool("force", value))
    read("model", lambda value: as_choice("model", value, workload["model_names"]))
    wrong_xla = [value for value in knobs.get("xla", []) if value not in workload["xla"]]
    if wrong_xla:
        problems.append(f"xla={str(wrong_xla[0]).lower()}: {workload['title']} has no such switch")
    if problems:
        raise KnobError("; ".join(problems))
    return knobs


def safe_name(name: str, value: Any) -> str:
    """Return `value` if it can be a directory name and a word of a command line."""
    text = str(value)
    if not _SAFE_NAME.fullmatch(text) or ".." in text:
        raise KnobError(
            f"{name}={text[:60]!r}: allowed are letters, digits, dot, dash and underscore, at most 100, "
            "beginning with a letter or digit"
        )
    return text


def _unique(name: str, values: list[Any]) -> list[Any]:
    for index, value in enumerate(values):
        if value in values[:index]:
            raise KnobError(f"{name}: {str(value).lower()} is named twice; every value is measured once")
    return values
