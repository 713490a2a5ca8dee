# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""manifest.json: the sha256 of every file a campaign's numbers come from, taken when they are reported.

    {"schema": 1, "files": {"runs/<case>/1/NODE1.log": {"sha256", "bytes"}, …},
     "runs": {"runs/<case>/1": "ok", …}, "sha256": of all this}

A later report adds new runs and runs that did not count and were measured again.  What belongs to a
run that counted never changes: the manifest keeps its first sha256, and every report says so.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook.logs import LogError
from ansible.module_utils.scalebook.record import sha256_of

NAME = "manifest.json"
SCHEMA = 1
PLANS = ("plan.json", "provenance.json")  # written anew by every bench.yml of the campaign
COVERED = ("*.log", "exit.json", "result.json")

Manifest = dict[str, Any]
Problem = dict[str, str]


class ManifestError(ValueError):
    """A manifest that cannot be trusted itself."""


def read(top: Path) -> Manifest | None:
    """Return the manifest of the campaign in `top`, None without one; raise ManifestError for a bad one."""
    path = top / NAME
    try:
        manifest = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as exc:
        raise ManifestError(f"{path} cannot be read: {exc}") from None
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        raise ManifestError(f"{path} is no manifest of schema {SCHEMA}")
    if manifest.get("sha256") != _own(manifest):
        raise ManifestError(f"{path} has been changed: it does not have the sha256 that it names itself")
    return manifest


def files_of(top: Path) -> dict[str, dict[str, Any]]:
    """Return path below `top` -> `{"sha256", "bytes"}` of every file the campaign's numbers come from.

    A file that cannot be read, or is no regular one, has the sha256 None.
    """
    paths = [top / name for name in PLANS if (top / name).exists()]
    for pattern in COVERED:
        paths += top.glob(f"runs/*/*/{pattern}")
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(paths):
        try:
            entry = {"sha256": sha256_of(path), "bytes": path.stat().st_size}
        except (OSError, LogError):
            entry = {"sha256": None, "bytes": None}
        found[path.relative_to(top).as_posix()] = entry
    return found


def differences(manifest: Mapping[str, Any], now: Mapping[str, Any]) -> list[Problem]:
    """Return `{"file", "what", "run"}` of each file that is `changed`, `missing` or `added`.

    `now` comes from files_of.  `run` is `runs/<case>/<repeat>`, or empty for what is no run's.
    """
    before = manifest["files"]
    problems = []
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
    manifest: Mapping[str, Any] | None, now: Mapping[str, Any], statuses: Mapping[str, str]
) -> tuple[Manifest, list[Problem], list[str]]:
    """Return (new manifest, what must not have changed, sentences about what changed and may).

    `statuses` maps `runs/<case>/<repeat>` to the status of the record there.
    """
    before = manifest or {"files": {}, "runs": {}}
    files, runs = dict(now), dict(statuses)
    wrong, said = [], set()
    for problem in differences(before, now) if manifest else ():
        file, run = problem["file"], problem["run"]
        if before["runs"].get(run) == "ok":
            wrong.append(problem)
            files.pop(file, None)
            if file in before["files"]:
                files[file] = before["files"][file]
            runs[run] = "ok"
        elif run in before["runs"]:
            said.add(f"{run} ({before['runs'][run]}) was measured again since the last report")
        elif not run:
            said.add(f"{file} is {problem['what']} since the last report")
    made: Manifest = {
        "schema": SCHEMA,
        "files": dict(sorted(files.items())),
        "runs": dict(sorted(runs.items())),
    }
    return {**made, "sha256": _own(made)}, wrong, sorted(said)


def sentence(problem: Problem) -> str:
    """Return what a problem is in words."""
    after = {"changed": "has been changed", "missing": "is missing", "added": "has been added"}
    return f"{problem['file']} {after[problem['what']]} since it was reported"


def _run(file: str) -> str:
    parts = file.split("/")
    return "/".join(parts[:3]) if len(parts) == 4 else ""


def _own(manifest: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in manifest.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
