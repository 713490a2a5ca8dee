# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The content of a JSON file -> an object, or ValueError: whatever it holds, it takes no more than it may."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

VALUE, KEY = 72, 160
"""Bytes of memory that a value in a list can take, and what a key of an object takes besides."""
FREE, EACH = 64 << 20, 64
"""Bytes of memory that the values of any file may take, and how many more for each byte of it on the disk.

Three bytes of JSON can become 144 of memory, and one of an archive thousands of JSON.
"""
LARGEST_NUMBER = 1 << 63

_LONG = re.compile(rb"[0-9]{19}|[0-9][eE]\+?[0-9]{3}")


def decode(content: bytes, packed: int = 0) -> dict[str, Any]:
    """Return the content of a JSON file that has to be an object, or raise ValueError.

    `packed` are the bytes of the archive that the file is in, 0 for a file of its own.
    """
    size = packed or len(content)
    memory = VALUE * sum(map(content.count, (b",", b"[", b"{"))) + KEY * content.count(b":")
    if memory > FREE + EACH * size:
        raise ValueError(f"holds too many values for a file of {size} bytes")
    # Only a file that holds such a number at all pays for a look at each.
    numbers: dict[str, Any] = {"parse_int": _whole, "parse_float": _real} if _LONG.search(content) else {}
    try:
        decoded = json.loads(content, parse_constant=_refuse_constant, object_pairs_hook=_distinct, **numbers)
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    if not isinstance(decoded, dict):
        raise ValueError("is not a JSON object")
    return decoded


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these pairs; of two values of one key nobody can know which one is meant."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"names {twice[:100]!r} twice in one object")
    return fields


def _refuse_constant(text: str) -> NoReturn:
    """Refuse the constants that Python reads and JSON does not have."""
    raise ValueError(f"holds {text}, which is not a number")


def _whole(text: str) -> int:
    """Return a whole number that every program can read."""
    number = int(text) if len(text) < 25 else LARGEST_NUMBER
    if not -LARGEST_NUMBER < number < LARGEST_NUMBER:
        raise ValueError(f"holds the number {text[:30]}, which is too large")
    return number


def _real(text: str) -> float:
    """Return a number; one beyond all floating point numbers would become infinite."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"holds the number {text[:30]}, which is too large")
    return number
