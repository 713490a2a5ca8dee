# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""manifest.json: the sha256 of every file that a campaign's numbers come from, as of the first report.

    {"schema": 1, "files": {"runs/<case>/1/NODE1.log": {"sha256", "bytes"}, …},
     "runs": {"runs/<case>/1": "ok", …}, "sha256": of all this}

A later report adds new runs, and excluded runs that were measured again.  The files of a run
that counted must never change: the manifest keeps their first sha256, and every report names the difference.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, cast

from ansible.module_utils.scalebook import shapes
from ansible.module_utils.scalebook.contracts import FileSum, Message, message
from ansible.module_utils.scalebook.judge.campaign import Manifest, ManifestCheck, Problem
from ansible.module_utils.scalebook.store.source import Source

NAME = "manifest.json"
SCHEMA = 1
NO_RUN = ""
"""Stands for the run of files outside runs/; if it is `ok`, as with micro-benchmarks, these never change."""


class ManifestError(ValueError):
    """A manifest that cannot be trusted itself."""


def read(source: Source) -> Manifest | None:
    """Return the manifest of a campaign, None without one; raise ManifestError for a bad one."""
    path = source.top / NAME
    try:
        manifest = source.decode(NAME)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as exc:
        raise ManifestError(f"{path} cannot be read: {exc}") from None
    if manifest.get("schema") != SCHEMA:
        raise ManifestError(f"{path} is not a manifest of schema {SCHEMA}")
    try:
        shapes.check(Manifest, manifest)
    except shapes.ShapeError as exc:
        raise ManifestError(f"{path}: {exc}") from None
    if manifest.get("sha256") != _own_sha256(manifest):
        raise ManifestError(f"{path} has been changed: its content does not have the sha256 that it names")
    return cast(Manifest, manifest)


def files_of(source: Source) -> dict[str, FileSum]:
    """Return the checksum of every file the campaign's numbers come from, by its name below the top."""
    return {file: source.checksum(file) for file in source.covered()}


def differences(manifest: Manifest, now: Mapping[str, FileSum]) -> list[Problem]:
    """Return the files that differ from `manifest`; `now` comes from files_of."""
    before = manifest["files"]
    problems: list[Problem] = []
    for file in sorted({*before, *now}):
        if file not in now:
            what = "missing"
        elif file not in before:
            what = "added"
        elif before[file]["sha256"] != now[file]["sha256"]:
            what = "changed"
        else:
            continue
        problems.append({"file": file, "what": what, "run": _run(file)})
    return problems


def extend(
    manifest: Manifest | None, now: Mapping[str, FileSum], statuses: Mapping[str, str]
) -> ManifestCheck:
    """Compare the files `now` with the manifest and extend it by what is new.

    `statuses` maps `runs/<case>/<repeat>` to the status of the record there.
    """
    files, runs = dict(now), dict(statuses)
    wrong: list[Problem] = []
    notes: dict[str, Message] = {}
    for problem in differences(manifest, now) if manifest else ():
        file, run = problem["file"], problem["run"]
        status = manifest["runs"].get(run) if manifest else None
        if manifest and status == "ok":
            wrong.append(problem)
            files.pop(file, None)
            if file in manifest["files"]:
                files[file] = manifest["files"][file]
            runs[run] = "ok"
        elif status:
            notes[run] = message("note.measured-again", run=run, status=status)
        elif not run:
            notes[file] = message(f"note.now-{problem['what']}", file=file)
    extended: Manifest = {
        "schema": SCHEMA,
        "files": dict(sorted(files.items())),
        "runs": dict(sorted(runs.items())),
        "sha256": "",
    }
    extended["sha256"] = _own_sha256(extended)
    return ManifestCheck(extended, wrong, [notes[name] for name in sorted(notes)])


def _run(file: str) -> str:
    parts = file.split("/")
    return "/".join(parts[:3]) if len(parts) == 4 else ""


def _own_sha256(manifest: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in manifest.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
