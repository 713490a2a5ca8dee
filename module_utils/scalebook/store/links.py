# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Relative links from a report to the files of its campaign."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from ansible.module_utils.scalebook.store.source import ARCHIVE, Source


class Links(NamedTuple):
    """Links, each (name, address): those of `runs` by case and repeat, and those of the campaign itself."""

    runs: dict[tuple[str, str], list[tuple[str, str]]]
    campaign: list[tuple[str, str]]


NONE = Links({}, [])


def of_campaign(source: Source, files: Iterable[str], out: Path) -> Links:
    """Return the links from a report in `out`; `files` are the names of the campaign's files.

    A run has links to its first node's log and to its record, and to its directory where it has more logs.
    The runs of an archive have none: the archive itself is linked.
    """
    base = quote(Path(os.path.relpath(source.top, out)).as_posix())
    plans = [(name, f"{base}/{name}") for name in ("plan.json", "provenance.json") if source.exists(name)]
    if source.sealed:
        archive = source.top / ARCHIVE
        return Links({}, [(ARCHIVE, f"{base}/{ARCHIVE}")] if archive.is_file() else [])
    found: dict[tuple[str, ...], list[str]] = {}
    for file in files:
        parts = file.split("/")
        if len(parts) == 4:
            found.setdefault(tuple(parts[:3]), []).append(parts[3])
    runs = {
        (case, repeat): _links(f"{base}/{folder}/{quote(case)}/{quote(repeat)}", names)
        for (folder, case, repeat), names in found.items()
    }
    return Links(runs, plans)


def _links(directory: str, names: Iterable[str]) -> list[tuple[str, str]]:
    logs = sorted((name for name in names if name.endswith(".log")), key=_natural)
    chosen = [("log", f"{directory}/{quote(logs[0])}")] if logs else []
    if "result.json" in names:
        chosen.append(("record", f"{directory}/result.json"))
    if len(logs) > 1:
        chosen.append(("all logs", f"{directory}/"))
    return chosen


def _natural(name: str) -> list[tuple[int, str]]:
    """Return the key that sorts NODE10 behind NODE2."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]
