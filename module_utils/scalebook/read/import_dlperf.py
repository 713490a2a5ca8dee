# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A tree of logs as DLPerf lays them out -> the same records and plan that a campaign leaves.

`DIR/<N>n<G>g/<model>_b<B>_<dtype>_<i>.log`: the case is in the names, any N and G.  The tree may lie in
further directories and be an archive, its logs may be packed (packed.py).  Readings of telemetry may lie
beside a log: `<log>.<node>.telemetry.csv.xz` are those of one, with `<log>` its name without `.log`,
`<node>.telemetry.csv.xz` those of all logs of the folder, each of which takes its own window from them.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
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
from ansible.module_utils.scalebook.read.packed import (
    DEEPEST,
    SUFFIXES,
    suffix_of,
    unpack_archive,
    unpack_log,
)
from ansible.module_utils.scalebook.read.record import log_record
from ansible.module_utils.scalebook.read.step_log import plain_lines
from ansible.module_utils.scalebook.unpack import UnpackError
from ansible.module_utils.scalebook.workload import Workload, Workloads

CHECKSUM_LIMIT = 4 << 20
"""Imported logs up to this size always get a sha256, larger ones if another log has the same size, or on
demand: it reads them whole."""

MOST_FILES = 20_000
"""Files of one tree: a campaign has some hundreds, and a million would fill the memory."""

_FOLDER = re.compile(r"([1-9]\d{0,5})n([1-9]\d{0,5})g")
_NAME = r"[A-Za-z0-9][\w.+-]{0,79}"
_LOG = rf"({_NAME})_b([1-9]\d{{0,8}})_([A-Za-z0-9]{{1,16}})_(\d{{1,6}})"
_FILE = re.compile(rf"{_LOG}\.log(\.gz)?", re.ASCII)
_READINGS = re.compile(rf"(?:(?P<log>{_LOG})\.)?(?P<node>{_NAME})\.telemetry\.csv(?:\.xz)?", re.ASCII)
_PLAIN = re.compile(r"[A-Za-z0-9][\w.+-]*", re.ASCII)
_PARALLEL = 64 << 20  # bytes from which on several processes pay


class TreeError(ValueError):
    """Logs that cannot be imported, or an output directory that must not be written.

    `example` is a file below them that is not the log of a case.
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
    with _opened(Path(logs)) as tree:
        return _import(tree, Path(out), name, workload, overrides or {}, checksums, write, others or {})


class _Tree(NamedTuple):
    """The logs as they were named, where they lie, under which name, and what of them was not unpacked."""

    path: Path
    root: Path
    name: str
    unread: list[UnreadFile]


@contextmanager
def _opened(logs: Path) -> Iterator[_Tree]:
    """Give a tree, one that is packed unpacked for as long as it is read."""
    try:
        real = logs.resolve(strict=True)
    except OSError as exc:
        raise TreeError(f"{logs}: {exc.strerror}") from None
    if real.is_dir():
        yield _Tree(logs, real, real.name, [])
        return
    if not suffix_of(real.name):
        raise TreeError(f"{logs}: is not a directory, and its name ends with none of {', '.join(SUFFIXES)}")
    unread: list[UnreadFile] = []
    with tempfile.TemporaryDirectory(prefix="scalebook-logs-") as directory:
        try:
            unpack_archive(
                real,
                Path(directory),
                MOST_FILES,
                lambda path, reason: unread.append(
                    {"path": _readable(f"{real.name}/{path}"), "reason": reason}
                ),
            )
        except UnpackError as exc:
            raise TreeError(f"{logs}: {exc}") from None
        yield _Tree(logs, Path(directory).resolve(), real.name, unread)


def _import(
    tree: _Tree,
    target: Path,
    name: str,
    workload: Workload,
    overrides: Mapping[str, Any],
    checksums: bool,
    write: bool,
    others: Workloads,
) -> dict[str, Any]:
    logs, unread = find_logs(tree, name, workload, read_overrides(overrides))
    if not logs:
        looked = f"no log below {tree.path}: looked for <N>n<G>g/<model>_b<B>_<dtype>_<i>.log"
        raise TreeError(looked, unread[0] if unread else None)
    earlier = _earlier_import(target)
    sizes = Counter(item.size for item in logs)
    twins = frozenset(size for size, count in sizes.items() if count > 1)
    results = list(_each(partial(_import_log, workload, others, target, checksums, twins, write), logs))
    changed = any(result["changed"] for result in results)
    changed |= _remove_stale(target, earlier, logs, write)
    if changed and write:
        # These records are new: what was signed before (manifest.py) is no longer theirs.
        (target / "manifest.json").unlink(missing_ok=True)
    changed |= write_json(target / "plan.json", _plan(tree.name, logs, unread, name, overrides), write)
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
    tree: _Tree, name: str, workload: Workload, overrides: Mapping[str, Any]
) -> tuple[list[Found], list[UnreadFile]]:
    """Return the logs of a tree in the order of their cases, and what else lies there and why not."""
    search = _Search(tree, name, workload, overrides)
    try:
        search.directory(tree.root, tree.name, 0)
    except OSError as exc:
        raise TreeError(f"{tree.path}: {exc.strerror}") from None
    return [item for _, item in sorted(search.found, key=lambda pair: pair[0])], search.unread


class _Search:
    """Looks through a tree for logs; `found` has them with their order, `unread` what is none."""

    def __init__(self, tree: _Tree, name: str, workload: Workload, overrides: Mapping[str, Any]) -> None:
        self.found: list[tuple[tuple[Any, ...], Found]] = []
        self.unread = list(tree.unread)
        self._root = tree.root
        self._same = {
            "workload": name,
            "xla": False,
            "device": None,
            "warmup": workload.warmup,
            "window": workload.window,
            "settings": {},
            **overrides,
        }
        self._count = 0
        self._taken: dict[tuple[str, int], str] = {}
        self._originals: dict[tuple[int, int], str] = {}

    def directory(self, path: str | os.PathLike[str], place: str, depth: int) -> bool:
        """Look for directories <N>n<G>g in this one and below; return whether there are any."""
        entries = _entries(path, place, self._count)
        self._count += len(entries)
        others = []
        folders = 0
        for entry in entries:
            match = _FOLDER.fullmatch(entry.name)
            inner = f"{place}/{entry.name}"
            if not match:
                others.append((entry, inner))
            elif _leads_out(entry, self._root):
                self._skip(inner, message("import.leads-out"))
            else:
                self._folder(entry, inner, int(match[1]), int(match[2]))
            folders += bool(match)
        for entry, inner in others:
            # No links: a tree that holds itself has no end.
            if depth < DEEPEST and entry.is_dir(follow_symlinks=False):
                count = len(self.unread)
                try:
                    if self.directory(entry.path, inner, depth + 1):
                        folders += 1
                        continue
                except OSError as exc:
                    self._skip(inner, message("import.unreadable", why=str(exc.strerror)))
                    continue
                del self.unread[count:]
            self._skip(inner, message("import.no-folder"))
        return folders > 0

    def _skip(self, path: str, reason: Message) -> None:
        self.unread.append({"path": _readable(path), "reason": reason})

    def _folder(self, folder: os.DirEntry[str], place: str, nodes: int, gpus: int) -> None:
        """Take the logs of one case's nodes and GPUs, with the readings of telemetry beside them."""
        try:
            files = _entries(folder.path, place, self._count)
        except OSError as exc:
            self._skip(place, message("import.unreadable", why=str(exc.strerror)))
            return
        self._count += len(files)
        named_so = [(file, _READINGS.fullmatch(file.name)) for file in files]
        readings: dict[str, dict[str, str]] = {}
        for file, beside in named_so:
            reason = _no_log(file, self._root) if beside else None
            if reason:
                self._skip(f"{place}/{file.name}", reason)
            elif beside:
                # In the order of names .csv.xz comes after .csv, whose place it takes.
                readings.setdefault(beside["log"] or "", {})[beside["node"]] = file.path
        for file in [file for file, beside in named_so if not beside]:
            reason = self._log(file, f"{place}/{file.name}", nodes, gpus, readings)
            if reason:
                self._skip(f"{place}/{file.name}", reason)

    def _log(
        self,
        file: os.DirEntry[str],
        source: str,
        nodes: int,
        gpus: int,
        readings: Mapping[str, Mapping[str, str]],
    ) -> Message | None:
        """Take one log; return why it is none."""
        match = _FILE.fullmatch(file.name)
        if not match or ".." in match[1]:
            return message("import.no-log")
        reason = _no_log(file, self._root)
        if reason:
            return reason
        status = file.stat()
        # A link within the tree is not a second measurement.
        original = self._originals.setdefault((status.st_dev, status.st_ino), source)
        if original != source:
            return message("import.same-file", file=original)
        model, bsz, dtype, repeat = match[1], int(match[2]), match[3], int(match[4])
        case = make_case(
            {
                **self._same,
                "model": model,
                "dtype": dtype,
                "bsz": bsz,
                "nodes": nodes,
                "gpus": gpus,
            }
        )
        twin = self._taken.setdefault((case["name"], repeat), source)
        if twin != source:
            return message("import.same-run", file=twin)
        mine = {
            **readings.get("", {}),
            **readings.get(file.name.removesuffix(".gz").removesuffix(".log"), {}),
        }
        item = Found(file.path, source, case, repeat, status.st_size, mine)
        self.found.append(((nodes, gpus, model, dtype, bsz, repeat), item))
        return None


def _entries(path: str | os.PathLike[str], place: str, before: int) -> list[os.DirEntry[str]]:
    """Return what is in a directory by name; raises TreeError when there is too much, with `before`."""
    with os.scandir(path) as scan:
        entries = list(islice(scan, MOST_FILES + 1))
    if before + len(entries) > MOST_FILES:
        raise TreeError(
            f"{_readable(place)}: more than {MOST_FILES} files up to here; import a part of them at a time"
        )
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
    workloads: Workloads,
    out: Path,
    checksums: bool,
    twins: frozenset[int],
    write: bool,
    item: Found,
) -> dict[str, Any]:
    """Write the record of one log and return what the caller reports of it; `twins` are sizes of several."""
    try:
        with _plain_log(item) as path:
            checksum = checksums or item.size <= CHECKSUM_LIMIT or item.size in twins
            record = log_record(path, item.case, item.repeat, workload, item.source, checksum, item.readings)
            advice = hint(path, record, workload, workloads)
        if advice and record["reason"]:
            record["reason"] = together(record["reason"], advice)
    except Exception as exc:  # a log nobody has thought of must not end the import of the others
        why = str(exc) if isinstance(exc, UnpackError) else f"{type(exc).__name__}: {exc}"
        record = {
            "schema": RECORD_SCHEMA,
            "case": item.case,
            "repeat": item.repeat,
            "status": "refused",
            "reason": message("reason.unreadable", file=item.source, why=why),
            "notes": [],
            "unit": workload.unit,
            "nodes": [],
            "job": None,
            "source": item.source,
        }
    changed = write_json(_result(out, item.case["name"], item.repeat), record, write)
    return {key: record[key] for key in ("source", "status", "reason")} | {"changed": changed}


@contextmanager
def _plain_log(item: Found) -> Iterator[str]:
    """Give the path of a log, of one that is packed that of its text for as long as it is read."""
    if not item.path.endswith(".gz"):
        yield item.path
        return
    with tempfile.TemporaryDirectory(prefix="scalebook-log-") as directory:
        plain = Path(directory, "log")
        unpack_log(item.path, plain)
        yield str(plain)


def _each(write_record: partial[dict[str, Any]], logs: list[Found]) -> Iterable[dict[str, Any]]:
    count = processes()
    if count == 1 or sum(item.size for item in logs) < _PARALLEL:
        return map(write_record, logs)
    # fork: the modules of an Ansible task live in a zip of their own that a new interpreter lacks.
    with ProcessPoolExecutor(count, get_context("fork")) as pool:
        return list(pool.map(write_record, logs, chunksize=max(1, min(16, len(logs) // (4 * count)))))


def _plan(
    source: str,
    logs: list[Found],
    unread: list[UnreadFile],
    name: str,
    overrides: Mapping[str, Any],
) -> dict[str, Any]:
    cases = {item.case["name"]: item.case for item in logs}
    repeats = Counter(item.case["name"] for item in logs)
    campaign = source[: len(source) - len(suffix_of(source))]
    return {
        "schema": PLAN_SCHEMA,
        "campaign": re.sub(r"[^\w.-]", "_", campaign, flags=re.ASCII) or "import",
        "inventory": "",
        "parameters": {"workload": name, **overrides},
        "repeats": max(repeats.values()),
        "cases": list(cases.values()),
        "skipped": [],
        "runs": [{"case": item.case["name"], "repeat": item.repeat} for item in logs],
        "source": _readable(source),
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


def _remove_stale(out: Path, earlier: list[tuple[str, int]], logs: list[Found], write: bool) -> bool:
    """Take away the records of logs that are no longer in the tree; return whether there were any."""
    now = {(item.case["name"], item.repeat) for item in logs}
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
