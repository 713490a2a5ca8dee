# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What of a workload can be removed from a node, and what stays."""

import errno
import os
import re
import stat
from fnmatch import fnmatch
from glob import escape, glob
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Set, Tuple

MOUNTS = "/proc/self/mounts"
FRAMEWORK = "*/*/venv/lib/python*/site-packages/scalebook-framework.pth"
MARK = re.compile(r"install\.json$|scalebook\.")
"""What provision.yml leaves in a directory that the user has named for a workload."""
FILLED = (errno.EEXIST, errno.ENOTEMPTY)
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW

KEPT = (
    "%s_home=%s: nothing was removed, since %s. "
    "Fix: move away what you need, or remove the directory yourself"
)


class KeptError(ValueError):
    """The directory of a workload cannot be removed; the message says why, and the fix."""


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is `folder` or below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def mounts() -> List[str]:
    """Return the directories on which something is mounted."""
    with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
        places = [line.split()[1] for line in file]
    return [re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), place) for place in places]


class Home:
    """The directory below which everything is installed. It may be a link, what is below it may not.

    A path below it is opened part by part: other users can replace what is in their own directories.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.normpath(path)
        self.real = os.path.realpath(path)
        self.mounts = mounts()

    def why_not(self, path: str) -> str:
        """Return why nothing at `path` may be removed, "" where it may."""
        parts = self._parts(path)
        if not parts:
            return "it is not below %s" % self.path
        for count in range(1, len(parts) + 1):
            part = os.path.join(self.path, *parts[:count])
            if os.path.islink(part):
                return "%s is a link to %s" % (part, os.readlink(part))
        place = os.path.join(self.real, *parts)
        mounted = [mount for mount in self.mounts if is_below(mount, place)]
        return "a file system is mounted on %s" % mounted[0] if mounted else ""

    def _parts(self, path: str) -> List[str]:
        if not is_below(path, self.path):
            return []
        return [part for part in path[len(self.path.rstrip("/")) :].split("/") if part]

    def open(self, path: str) -> Tuple[int, str]:
        """Return a descriptor of the directory that a path is in, and its name there.  Raises OSError."""
        parts = self._parts(path)
        folder = os.open(self.real, FOLDER)
        for part in parts[:-1]:
            try:
                below = os.open(part, FOLDER, dir_fd=folder)
            finally:
                os.close(folder)
            folder = below
        return folder, parts[-1]

    def size(self, path: str) -> int:
        """Return the bytes on the disk below a path, of a file with several names once."""
        folder, name = self.open(path)
        try:
            return size_of(folder, name, set())
        finally:
            os.close(folder)

    def remove(self, path: str) -> None:
        """Remove a path with all below it."""
        folder, name = self.open(path)
        try:
            remove_from(folder, name)
        finally:
            os.close(folder)

    def remove_empty(self, path: str) -> None:
        """Remove a directory if it is empty."""
        folder, name = self.open(path)
        try:
            os.rmdir(name, dir_fd=folder)
        except OSError as error:
            if error.errno not in FILLED:
                raise
        finally:
            os.close(folder)


def size_of(folder: int, name: str, counted_inodes: Set[Tuple[int, int]]) -> int:
    """Return the bytes on the disk of `name` in a directory, with all below it, without `counted_inodes`."""
    about = os.lstat(name, dir_fd=folder)
    if (about.st_dev, about.st_ino) in counted_inodes:
        return 0
    counted_inodes.add((about.st_dev, about.st_ino))
    size = about.st_blocks * 512
    if stat.S_ISDIR(about.st_mode):
        below = os.open(name, FOLDER, dir_fd=folder)
        try:
            size += sum(size_of(below, each, counted_inodes) for each in os.listdir(below))
        finally:
            os.close(below)
    return size


def remove_from(folder: int, name: str) -> None:
    """Remove `name` from a directory with all below it; of a link the link."""
    if not stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
        os.unlink(name, dir_fd=folder)
        return
    below = os.open(name, FOLDER, dir_fd=folder)
    try:
        for each in os.listdir(below):
            remove_from(below, each)
    finally:
        os.close(below)
    os.rmdir(name, dir_fd=folder)


def of_runs(home: Home, runs: str, workload: str) -> Iterator[str]:
    """Yield what runs of a workload have left: their jobs, what they compiled, the stack check."""
    yield os.path.join(runs, "compiled", workload)
    yield os.path.join(runs, "stack_check_%s.json" % workload)
    for node in _folders(runs):
        for campaign in _folders(node) if not home.why_not(node) else ():
            yield from (path for path in _folders(campaign) if fnmatch(path, "*/%s-*" % workload))


def _folders(path: str) -> List[str]:
    """Return the directories in a directory, without links."""
    try:
        paths = [os.path.join(path, name) for name in sorted(os.listdir(path))]
    except OSError:
        return []
    return [each for each in paths if os.path.isdir(each) and not os.path.islink(each)]


def used_by(home: Home, installed: Dict[str, Any], workloads: Sequence[str]) -> Dict[str, List[str]]:
    """Return {name: paths} that what is installed needs, without `workloads`."""
    uses = {
        name: [each["home"], *each["uses"], *each["names"]]
        for name, each in installed.items()
        if name not in workloads and os.path.lexists(each["home"])
    }
    for file in sorted(glob(os.path.join(escape(home.path), FRAMEWORK))):
        name = file[len(home.path.rstrip("/")) :].split("/")[1]
        if name not in workloads:
            with open(file, encoding="utf-8") as lines:
                uses.setdefault(name, []).extend(line.strip() for line in lines if line.startswith("/"))
    return uses


def why_kept(home: Home, path: str, uses: Dict[str, List[str]], named: Sequence[str]) -> str:
    """Return why a path stays, "" where it can be removed; `named` are paths that variables name."""
    users = [
        name
        for name, paths in uses.items()
        if any(is_below(path, each) or is_below(each, path) for each in paths)
    ]
    if users:
        return "%s use%s it" % (", ".join(users), "" if users[1:] else "s")
    below = [each for each in named if each != path and is_below(each, path)]
    if below:
        return "a variable names %s" % below[0]
    if path in named and os.path.isdir(path) and not any(MARK.match(name) for name in os.listdir(path)):
        return "it has no install.json, so it may be something else"
    return home.why_not(path)


def plan(home: Home, options: Mapping[str, Any]) -> Tuple[List[str], List[Dict[str, str]]]:
    """Return the paths to remove, and what stays with the reason.  Raises KeptError."""
    workloads, installed = options["workloads"], options["installed"]
    homes = {installed[name]["home"]: name for name in workloads}
    others = [path for name in workloads for path in installed[name]["uses"]]
    others += [path for name in workloads for path in of_runs(home, options["work"], name)]
    others = [path for path in others if not any(is_below(path, each) for each in homes)]
    paths = [path for path in dict.fromkeys([*homes, *others]) if os.path.lexists(path)]
    uses = used_by(home, installed, workloads)
    named = [path for name in workloads for path in installed[name]["names"]]
    reasons = {path: why_kept(home, path, uses, named) for path in paths}
    for path, name in homes.items():
        if reasons.get(path):
            raise KeptError(KEPT % (name, path, reasons[path]))
    staying = [{"path": path, "why": why} for path, why in reasons.items() if why]
    return [path for path in paths if not reasons[path]], staying


def normal(options: Any) -> Any:
    """Return the options with each path in its shortest form, which names stay as they are in."""
    if isinstance(options, dict):
        return {name: normal(value) for name, value in options.items()}
    if isinstance(options, list):
        return [normal(value) for value in options]
    return os.path.normpath(options)


def run(options: Mapping[str, Any], check: bool) -> Dict[str, Any]:
    """Remove workloads; module remove_workload describes options and result."""
    options = normal(options)
    home = Home(options["path"])
    paths, staying = plan(home, options)
    removed = [{"path": path, "bytes": home.size(path)} for path in paths]
    for path in paths if not check else ():
        home.remove(path)
        if os.path.dirname(path) not in (home.path, options["work"]):
            home.remove_empty(os.path.dirname(path))
    lines = ["%s: %s bytes to remove" % (each["path"], format(each["bytes"], ",")) for each in removed]
    lines += ["%s stays: %s" % (each["path"], each["why"]) for each in staying]
    return {"changed": bool(removed), "removed": removed, "kept": staying, "display": lines}
