# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A campaign as it was read, and what it is compared with: the input of every judgement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypedDict

from ansible.module_utils.scalebook.contracts import Case, FileSum, Hardware, Message, Plan, Row, Run, message


@dataclass(frozen=True)
class Campaign:
    """A campaign or an import, read: one short run for each record.

    `name` is that of its directory.  `unreadable` says which files are not records, `doubts` what cannot be
    checked, `statuses` maps `runs/<case>/<repeat>` to the status of the record there, `hardware` is what the
    records say of their nodes, `reading` which time source counts.
    """

    name: str
    plan: Plan = field(default_factory=Plan)
    cases: dict[str, Case] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    unreadable: list[Message] = field(default_factory=list)
    doubts: list[Message] = field(default_factory=list)
    statuses: dict[str, str] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    hardware: list[Hardware] = field(default_factory=list)
    reading: str = "stamps"


class Baseline(NamedTuple):
    """A campaign to compare with; from `limit` on a slowdown is a regression."""

    path: str
    name: str
    rows: Sequence[Row]
    limit: float
    hardware: Sequence[Hardware] = ()
    provenance: Mapping[str, Any] = {}


class Manifest(TypedDict):
    """The content of manifest.json; `sha256` is that of the rest."""

    schema: int
    files: dict[str, FileSum]
    runs: dict[str, str]
    sha256: str


class Problem(TypedDict):
    """A file that is `changed`, `missing` or `added`; `run` is empty for files of no run."""

    file: str
    what: str
    run: str


class ManifestCheck(NamedTuple):
    """The campaign's files compared with its manifest.

    `manifest` is the one to write now.  `wrong` are the differences in files that must not change,
    `notes` says which others differ, that may.
    """

    manifest: Manifest
    wrong: list[Problem]
    notes: list[Message]


def message_of(problem: Problem) -> Message:
    """Return what happened to a file that must not change."""
    return message(f"note.{problem['what']}", file=problem["file"])


def notes_of(check: ManifestCheck) -> list[Message]:
    """Return what to say of each file that differs from the manifest, those that may last."""
    wrong_sums = [message("note.first-checksum", problem=message_of(each)) for each in check.wrong]
    return [*check.notes, *wrong_sums]
