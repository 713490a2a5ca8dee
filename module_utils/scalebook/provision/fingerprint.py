# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Fingerprint of a host's desired state; an equal fingerprint means that nothing has to be done."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

# Of Ansible's own variables those that a user sets and roles read. The others change by themselves, as do
# facts that tasks have set, which begin with an underscore.
KEPT = ("ansible_host", "ansible_port", "ansible_user", "ansible_connection", "ansible_become_user")
MAGIC = {
    "environment", "groups", "hostvars", "inventory_dir", "inventory_file", "omit", "play_hosts",
    "playbook_dir", "provision_force", "role_name", "role_names", "role_path", "vars",
}  # fmt: skip
IGNORED = {"__pycache__", ".git"}


def fingerprint_of(
    variables: Mapping[str, Any], hosts: Iterable[tuple[str, Any]], folders: Iterable[str]
) -> str:
    """Return the fingerprint of a host's variables, the nodes (name, address) and the code in `folders`.

    It includes size and time of the files that variables name, and of the directory of a `mirror`.
    Must be called before any role has run: later, there are facts among the variables.
    """
    values = {
        name: _plain(value)
        for name, value in variables.items()
        if name in KEPT or (name not in MAGIC and not name.startswith(("_", "ansible_")))
    }
    # Path.is_file() raises where a value is longer than a name may be.
    places = {value for value in values.values() if isinstance(value, str) and os.path.isfile(value)}  # noqa: PTH113
    about = {
        "variables": values,
        "hosts": _plain(list(hosts)),
        "places": {place: _stamp(Path(place)) for place in sorted(places)},
        "mirror": [(str(path), *_stamp(path)) for path in files(Path(values.get("mirror") or os.devnull))],
        "code": [contents(Path(folder)) for folder in folders],
    }
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: Ansible's containers fill themselves only while they are read."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)


def contents(folder: Path) -> list[Any]:
    """Return (path in it, sha256) of all files below a directory."""
    return [
        (str(path.relative_to(folder)), hashlib.sha256(path.read_bytes()).hexdigest())
        for path in files(folder)
        if path.is_file()
    ]


def files(folder: Path) -> list[Path]:
    """Return all files below a directory."""
    paths = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in IGNORED]
        paths += [Path(place, name) for name in names]
    return sorted(paths)


def _stamp(path: Path) -> tuple[int, int]:
    about = path.lstat()
    return about.st_size, about.st_mtime_ns
