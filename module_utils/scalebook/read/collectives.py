# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The collectives that the ranks of a hung run are in, by torch's flight recorder -> which rank is missing.

run_node writes a line of its own for each rank and process group (flight.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook.contracts import Message, message
from ansible.module_utils.scalebook.read.stacks import PLACES, events, some

DEFAULT = ("", "0")
"""The names of the group of all ranks; it is not named."""


def waits(paths: Iterable[Path]) -> list[Message]:
    """Return in which collective ranks wait, and for whom, by the logs `paths` of all nodes."""
    ranks_of: dict[str, dict[int, Mapping[str, Any]]] = {}
    for line in (each for path in paths for each in events(path, "collective")):
        try:
            ranks_of.setdefault(str(line["group"]), {})[int(line["rank"])] = {
                **line,
                "last": int(line["last"]),
            }
        except (KeyError, TypeError, ValueError):
            continue  # not written by flight.py
    sentences = [each for group, ranks in sorted(ranks_of.items()) for each in _of_group(group, ranks)]
    return sentences[:PLACES]


def _of_group(group: str, ranks: Mapping[int, Mapping[str, Any]]) -> list[Message]:
    """Return who of a process group waits in what, the ranks that have not begun it first."""
    together: dict[tuple[Any, str, str], list[int]] = {}
    for rank, line in sorted(ranks.items()):
        if "waits" in line:
            key = line.get("number"), str(line["waits"]), str(line.get("place") or "")
            together.setdefault(key, []).append(rank)
    numbers = [number for number, _, _ in together if isinstance(number, int)]
    absent = [rank for rank, line in sorted(ranks.items()) if numbers and line["last"] < min(numbers)]
    sentences = []
    if absent:
        sentences.append(message("reason.not-begun", ranks=some(absent), **_collective(group, min(numbers))))
    for (number, name, place), waiting in sorted(together.items(), key=lambda each: (len(each[1]), each[1])):
        what = {"name": name, **_collective(group, number)}
        where = [message("reason.called-at", place=place)] if place else []
        code = "reason.waits-in" if isinstance(number, int) else "reason.waits-in-message"
        sentences.append(message(code, ranks=some(waiting), where=where, **what))
    return sentences


def _collective(group: str, number: Any) -> dict[str, Any]:
    named = [message("reason.of-group", group=group)] if group not in DEFAULT else []
    return {"number": number, "group": named}
