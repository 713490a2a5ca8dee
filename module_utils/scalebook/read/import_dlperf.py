# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A tree of logs as DLPerf lays them out -> the same records and plan that a campaign leaves.

`DIR/<N>n<G>g/<model>_b<B>_<dtype>_<i>.log`: the case is in the names, any N and G.  Readings of telemetry
may lie beside a log: `<log>.<node>.telemetry.csv.xz` are those of one, with `<log>` its name without `.log`,
`<node>.telemetry.csv.xz` those of all logs of the folder, each of which takes its own window from them.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from ansible.module_utils.scalebook.contracts import (
    IMPORT_FIELDS,
    PLAN_SCHEMA,
    RECORD_SCHEMA,
    Case,
    Message,
    UnreadFile,
    make_case,
    message,
    together,
)
from ansible.module_utils.scalebook.files import read_small, write_json
from ansible.module_utils.scalebook.json_file import decode
from ansible.module_utils.scalebook.read.hints import hint
from ansible.module_utils.scalebook.read.record import log_record
from ansible.module_utils.scalebook.read.step_log import plain_lines
from ansible.module_utils.scalebook.workload import Workload, Workloads

CHECKSUM_LIMIT = 4 << 20
"""Imported logs up to this size always get a sha256, larger ones if another log has the same size, or on
demand: it reads them whole."""

MOST_FILES = 20_000
"""Files of one tree: a campaign has some hundreds, and a million would fill the memory."""

_FOLDER = re.compile(r"([1-9]\d{0,5})n([1-9]\d{0,5})g")
_NAME = r"[A-Za-z0-9][\w.+-]{0,79}"
_LOG = rf"({_NAME})_b([1-9]\d{{0,8}})_([A-Za-z0-9]{{1,16}})_(\d{{1,6}})"
_FILE = re.compile(rf"{_LOG}\.log", re.ASCII)
_READINGS = re.compile(rf"(?:(?P<log>{_LOG})\.)?(?P<node>{_NAME})\.telemetry\.csv(?:\.xz)?", re.ASCII)
_PLAIN = re.compile(r"[A-Za-z0-9][\w.+-]*", re.ASCII)
_PARALLEL = 64 << 20  # bytes from which on several processes pay


class TreeError(ValueError):
    """A directory that cannot be imported, or an output directory that must not be written.

    `example` is a file below the directory that is not the log of a case.
    """

    def __init__(self, text: str, example: UnreadFile | None = None) -> None:
        super().__init__(text)
        self.example = example


class Found(NamedTuple):
    """One log of the tree, the case its name tells, and the readings beside it, {node: path}."""

    path: str
    source: str
    case: Case
    repeat: int
    size: int
    readings: dict[str, str]


def import_tree(
    logs: str | os.PathLike[str],
    out: str | os.PathLike[str],
    name: str,
    workload: Workload,
    overrides: Mapping[str, Any] | None = None,
    checksums: bool = False,
    write: bool = True,
    others: Workloads | None = None,
) -> dict[str, Any]:
    """Read every log of the workload `name` below `logs`, and write records and a plan below `out`.

    `others` are all workloads: the reason of a log that is not of `name` says which
    of them reads it.

    They are `out`/runs/<case>/<repeat>/result.json and `out`/plan.json.
    One bad file never costs the others their numbers: it gets a record that says what is wrong.
    Returns `{"counts": {status: n}, "refused": [{"source", "status", "reason"}], "unread": [{"path",
    "reason"}], "changed"}`. `refused` lists the logs that do not count, `unread` the files that are not
    logs of a case.
    Raises TreeError for the directories.
    """
    root, target = Path(logs), Path(out)
    found, unread = find_logs(root, name, workload, read_overrides(overrides or {}))
    if not found:
        looked = f"no log below {root}: looked for <N>n<G>g/<model>_b<B>_<dtype>_<i>.log"
        raise TreeError(looked, unread[0] if unread else None)
    earlier = _earlier_import(target)
    sizes = Counter(item.size for item in found)
    twins = frozenset(size for size, count in sizes.items() if count > 1)
    results = list(
        _each(partial(_import_log, workload, others or {}, target, checksums, twins, write), found)
    )
    changed = any(result["changed"] for result in results)
    changed |= _remove_stale(target, earlier, found, write)
    if changed and write:
        # These records are new: what was signed before (manifest.py) is no longer theirs.
        (target / "manifest.json").unlink(missing_ok=True)
    changed |= write_json(target / "plan.json", _plan(root, found, unread, name, overrides), write)
    return {
        "counts": dict(Counter(result["status"] for result in results)),
        "refused": [
            {key: result[key] for key in ("source", "status", "reason")}
            for result in results
            if result["status"] != "ok"
        ],
        "unread": unread,
        "changed": changed,
    }


def processes() -> int:
    """Return how many processes this one may keep busy."""
    return len(os.sched_getaffinity(0))


def read_overrides(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return `overrides` checked; values may be text, as `-e` gives them.  Raises TreeError."""
    checked: dict[str, Any] = {}
    for key, value in overrides.items():
        if key not in IMPORT_FIELDS:
            raise TreeError(f"overrides: unknown key {key!r}; allowed are {', '.join(IMPORT_FIELDS)}")
        if key == "device":
            allowed: dict[str, Any] = {"cpu": "cpu", "gpu": "gpu"}
        elif key == "xla":
            allowed = {"true": True, "yes": True, "false": False, "no": False}
        else:
            least = 0 if key == "warmup" else 1
            digits = re.fullmatch(r"\d{1,9}", str(value))
            allowed = {str(value): int(str(value))} if digits and int(str(value)) >= least else {}
        text = str(value).lower()
        if text not in allowed:
            raise TreeError(f"overrides: {key}={str(value)[:40]!r} is not allowed")
        checked[key] = allowed[text]
    return checked


def find_logs(
    root: Path, name: str, workload: Workload, overrides: Mapping[str, Any]
) -> tuple[list[Found], list[UnreadFile]]:
    """Return the logs below `root` in the order of their cases, and what else lies there and why not."""
    try:
        real = root.resolve(strict=True)
        folders = _entries(real, 0)
    except OSError as exc:
        raise TreeError(f"{root}: {exc.strerror}") from None
    count = len(folders)
    found: list[tuple[tuple[Any, ...], Found]] = []
    unread: list[UnreadFile] = []
    taken: dict[tuple[str, int], str] = {}
    originals: dict[tuple[int, int], str] = {}

    def skip(path: str, reason: Message) -> None:
        unread.append({"path": _readable(path), "reason": reason})

    for folder in folders:
        place = f"{real.name}/{folder.name}"
        match = _FOLDER.fullmatch(folder.name)
        if not match:
            skip(place, message("import.no-folder"))
            continue
        if _leads_out(folder, real):
            skip(place, message("import.leads-out"))
            continue
        nodes, gpus = int(match[1]), int(match[2])
        try:
            files = _entries(folder.path, count)
        except OSError as exc:
            skip(place, message("import.unreadable", why=str(exc.strerror)))
            continue
        count += len(files)
        named_so = [(file, _READINGS.fullmatch(file.name)) for file in files]
        readings: dict[str, dict[str, str]] = {}
        for file, beside in named_so:
            reason = _no_log(file, real) if beside else None
            if reason:
                skip(f"{place}/{file.name}", reason)
            elif beside:
                # In the order of names .csv.xz comes after .csv, whose place it takes.
                readings.setdefault(beside["log"] or "", {})[beside["node"]] = file.path
        for file in [file for file, beside in named_so if not beside]:
            source = f"{place}/{file.name}"
            named = _FILE.fullmatch(file.name)
            if not named or ".." in named[1]:
                skip(source, message("import.no-log"))
                continue
            reason = _no_log(file, real)
            if reason:
                skip(source, reason)
                continue
            status = file.stat()
            # A link within the tree is not a second measurement.
            original = originals.setdefault((status.st_dev, status.st_ino), source)
            if original != source:
                skip(source, message("import.same-file", file=original))
                continue
            case = make_case(
                {
                    "workload": name,
                    "model": named[1],
                    "dtype": named[3],
                    "xla": False,
                    "bsz": int(named[2]),
                    "nodes": nodes,
                    "gpus": gpus,
                    "device": None,
                    "warmup": workload.warmup,
                    "window": workload.window,
                    "settings": {},
                    **overrides,
                }
            )
            repeat = int(named[4])
            twin = taken.setdefault((case["name"], repeat), source)
            if twin != source:
                skip(source, message("import.same-run", file=twin))
                continue
            order = (nodes, gpus, named[1], named[3], int(named[2]), repeat)
            mine = {**readings.get("", {}), **readings.get(file.name.removesuffix(".log"), {})}
            found.append((order, Found(file.path, source, case, repeat, status.st_size, mine)))
    return [item for _, item in sorted(found, key=lambda pair: pair[0])], unread


def _entries(path: str | os.PathLike[str], before: int) -> list[os.DirEntry[str]]:
    """Return what is in a directory by name; raises TreeError when there is too much, with `before`."""
    with os.scandir(path) as scan:
        entries = list(islice(scan, MOST_FILES + 1))
    if before + len(entries) > MOST_FILES:
        raise TreeError(f"{path}: more than {MOST_FILES} files up to here; import a part of them at a time")
    return sorted(entries, key=lambda entry: entry.name)


def _leads_out(entry: os.DirEntry[str], root: Path) -> bool:
    return entry.is_symlink() and not Path(entry.path).resolve().is_relative_to(root)


def _no_log(file: os.DirEntry[str], root: Path) -> Message | None:
    """Return why a file of a log's name is none."""
    if _leads_out(file, root):
        return message("import.leads-out")
    try:
        mode = file.stat().st_mode
    except OSError as exc:
        return message("import.unreadable", why=str(exc.strerror))
    if stat.S_ISDIR(mode):
        return message("import.directory")
    return None if stat.S_ISREG(mode) else message("import.not-regular")


def _import_log(
    workload: Workload,
    known: Workloads,
    out: Path,
    checksums: bool,
    twins: frozenset[int],
    write: bool,
    item: Found,
) -> dict[str, Any]:
    """Write the record of one log and return what the caller reports of it; `twins` are sizes of several."""
    try:
        checksum = checksums or item.size <= CHECKSUM_LIMIT or item.size in twins
        record = log_record(item.path, item.case, item.repeat, workload, item.source, checksum, item.readings)
        advice = hint(item.path, record, workload, known)
        if advice and record["reason"]:
            record["reason"] = together(record["reason"], advice)
    except Exception as exc:  # a log nobody has thought of must not end the import of the others
        record = {
            "schema": RECORD_SCHEMA,
            "case": item.case,
            "repeat": item.repeat,
            "status": "refused",
            "reason": message("reason.unreadable", file=item.source, why=f"{type(exc).__name__}: {exc}"),
            "notes": [],
            "unit": workload.unit,
            "nodes": [],
            "job": None,
            "source": item.source,
        }
    changed = write_json(_result(out, item.case["name"], item.repeat), record, write)
    return {key: record[key] for key in ("source", "status", "reason")} | {"changed": changed}


def _each(work: partial[dict[str, Any]], found: list[Found]) -> Iterable[dict[str, Any]]:
    count = processes()
    if count == 1 or sum(item.size for item in found) < _PARALLEL:
        return map(work, found)
    # fork: the modules of an Ansible task live in a zip of their own that a new interpreter lacks.
    with ProcessPoolExecutor(count, get_context("fork")) as pool:
        return list(pool.map(work, found, chunksize=max(1, min(16, len(found) // (4 * count)))))


def _plan(
    root: Path,
    found: list[Found],
    unread: list[UnreadFile],
    name: str,
    overrides: Mapping[str, Any] | None,
) -> dict[str, Any]:
    cases = {item.case["name"]: item.case for item in found}
    repeats = Counter(item.case["name"] for item in found)
    folder = root.resolve().name
    return {
        "schema": PLAN_SCHEMA,
        "campaign": re.sub(r"[^\w.-]", "_", folder, flags=re.ASCII) or "import",
        "inventory": "",
        "parameters": {"workload": name, **(overrides or {})},
        "repeats": max(repeats.values()),
        "cases": list(cases.values()),
        "skipped": [],
        "runs": [{"case": item.case["name"], "repeat": item.repeat} for item in found],
        "source": _readable(folder),
        "unread": unread,
    }


def _earlier_import(out: Path) -> list[tuple[str, int]]:
    """Return the runs that an earlier import left in `out`; a campaign there is never written over."""
    try:
        plan = decode(read_small(out / "plan.json"))
    except FileNotFoundError:
        if (out / "runs").exists():
            raise TreeError(f"{out} has runs but no plan.json: choose another directory") from None
        return []
    except (OSError, ValueError) as exc:
        raise TreeError(f"{out}/plan.json cannot be read: {exc}") from None
    if "source" not in plan:
        raise TreeError(f"{out} holds a campaign: choose another directory for the import")
    return [(str(run["case"]), int(run["repeat"])) for run in plan.get("runs", ())]


def _remove_stale(out: Path, earlier: list[tuple[str, int]], found: list[Found], write: bool) -> bool:
    """Take away the records of logs that are no longer in the tree; return whether there were any."""
    now = {(item.case["name"], item.repeat) for item in found}
    stale = [
        path
        for run in earlier
        if run not in now and _PLAIN.fullmatch(run[0]) and (path := _result(out, *run)).exists()
    ]
    for path in stale if write else ():
        path.unlink()
        path.parent.rmdir()
    return bool(stale)


def _result(out: Path, name: str, repeat: int) -> Path:
    return out / "runs" / name / str(repeat) / "result.json"


def _readable(name: str) -> str:
    return " ".join(plain_lines(os.fsencode(name)))
