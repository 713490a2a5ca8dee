# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Whether a node is as it was when it was provisioned."""

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional

from ansible.module_utils.scalebook.files import sha256_of, write_whole

PACKAGES = "/var/lib/dpkg"
DRIVER = "/proc/driver/nvidia/version"
CHRONY = ("/run/chrony/chronyd.pid", "/run/chronyd.pid")


def entry(path: str) -> Optional[List[Any]]:
    """Return the compared properties of a file or directory, without the times of a directory."""
    try:
        about = os.lstat(path)
        link = os.readlink(path) if stat.S_ISLNK(about.st_mode) else None  # noqa: PTH115 - tens of thousands
    except OSError:
        return None
    properties = [about.st_mode, about.st_uid, about.st_gid]
    if stat.S_ISDIR(about.st_mode):
        return properties
    return [*properties, about.st_size, about.st_mtime_ns if link is None else link]


def digest(value: Any) -> str:
    """Return a short digest of a value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def contents(path: str) -> str:
    """Return the sha256 of a file, "" where it cannot be read."""
    try:
        return sha256_of(path)
    except (OSError, ValueError):
        return ""


def look(roots: Iterable[str], ignored: Iterable[str]) -> Dict[str, str]:
    """Return {name: digest} of the node: each directory below the roots, packages, kernel, driver, chrony."""
    ignored = set(ignored)
    state = {
        "packages": digest([contents(PACKAGES + "/status"), sorted(names(PACKAGES + "/updates"))]),
        "kernel": os.uname().release,
        "driver": contents(DRIVER),
        "chrony": str(any(Path(path).exists() for path in CHRONY)),
    }
    for root in roots:
        state[root] = digest(entry(root))
        if os.path.islink(root):  # noqa: PTH114
            continue
        for folder, folders, files in os.walk(root):
            folders[:] = [name for name in folders if name not in ignored]
            all_names = sorted(name for name in folders + files if name not in ignored)
            state[folder] = digest([(name, entry(folder + "/" + name)) for name in all_names])
    return state


def names(folder: str) -> List[str]:
    """Return the names in a directory, none where it does not exist."""
    try:
        return [path.name for path in Path(folder).iterdir()]
    except OSError:
        return []


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> List[str]:
    """Return the names under which two answers of `look` and what was required differ."""
    names = [name for name in set(before) | set(now) if before.get(name) != now.get(name)]
    # What is required of the node comes first: only the first names are reported.
    return sorted(names, key=lambda name: (name != "wanted", name))


def read(path: Path) -> Dict[str, Any]:
    """Return the record, {} where it cannot be read."""
    try:
        record = json.loads(path.read_bytes().decode())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def write(path: Path, content: Mapping[str, Any]) -> None:
    """Write the record, for its owner only."""
    write_whole(path, json.dumps(content, sort_keys=True).encode(), mode=0o600)


def run(options: Mapping[str, Any], check: bool) -> Dict[str, Any]:
    """Compare the node with its record, or write it; module provisioned describes options and result."""
    path = Path(options["path"])
    ignored = [*options["without"], path.name]
    before = read(path)
    if options["state"] == "asked" and before.get("wanted") != options["wanted"]:
        # The roles will run in any case: what else differs costs seconds and tells nothing.
        return {"changed": False, "unchanged": False, "differs": ["wanted"]}
    record = dict(look(options["roots"], ignored), wanted=options["wanted"])
    changes = differences(before, record)
    if options["state"] == "kept" and not check:
        try:
            write(path, record)
        except OSError as error:
            raise OSError("cannot write the record %s: %s" % (path, error)) from error
    # The record is not a change of the node; other tasks report those.
    return {"changed": False, "unchanged": not changes, "differs": changes[:10]}
