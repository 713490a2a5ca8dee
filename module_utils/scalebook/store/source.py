# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The files of a campaign, in its directory or in an archive of it.

The archive is runs.tar.xz: plan.json, provenance.json, manifest.json and runs/ of one campaign, or a
directory with these for each of several campaigns, and for micro-benchmarks.  A directory that has it instead
of runs/ is read as if it were unpacked there.  <campaign>.tar.xz, which archive.py packs, has the report and
archive.json too, the checksum of each file.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import tarfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, TypedDict

from ansible.module_utils.scalebook import shapes
from ansible.module_utils.scalebook.contracts import KINDS, FileSum
from ansible.module_utils.scalebook.files import LARGEST, NotRegularError, open_regular, read_small, sha256_of
from ansible.module_utils.scalebook.json_file import decode
from ansible.module_utils.scalebook.text import clean
from ansible.module_utils.scalebook.unpack import Unpacked, UnpackError, room

ARCHIVE = "runs.tar.xz"
SEAL = "archive.json"
PLANS = ("plan.json", "provenance.json")  # every bench.yml of the campaign writes them again
FOLDERS = ("runs", "search")  # the runs that count, and those that search for the largest batch
MICROBENCH = "microbench.json"
MEASURED = (
    *("about.json", "hardware.json"),
    *(f"{kind}.{end}" for kind in KINDS for end in ("json", "log")),
    "collectives.nccl.xz",
)
"""The files that microbench.json is made from, and the logs of the programs."""
COVERED = ("*.log", "*.telemetry.csv*", "exit.json", "result.json")
OF_RUNS = tuple(f"{folder}/*/*/{pattern}" for folder, pattern in itertools.product(FOLDERS, COVERED))

LARGEST_ARCHIVE = 1024**3
"""Bytes of an archive's files, unpacked; a small archive may hold less, see unpack.room."""
LARGEST_HEAD = 128 * 1024
"""Bytes that tell the name and size of one file of an archive, before its content."""


class SourceError(ValueError):
    """A path that holds no campaign, or an archive that cannot be read."""


class Seal(TypedDict):
    """archive.json: the sha256 of each other file of an archive."""

    schema: int
    files: dict[str, str]


class Source(ABC):
    """The files of one campaign by their names below its top, such as `runs/<case>/1/result.json`."""

    def __init__(self, top: Path, name: str, sealed: bool) -> None:
        """Keep `top` (where the report goes), the name of the campaign, and whether it is an archive."""
        self.top, self.name, self.sealed = top, name, sealed
        self.packed = 0  # bytes of the archive

    @abstractmethod
    def kept_paths(self, out: Path) -> list[str]:
        """Return the paths of what the campaign keeps, seen from `out`."""

    @abstractmethod
    def exists(self, file: str) -> bool:
        """Return whether there is such a file."""

    @abstractmethod
    def read(self, file: str) -> bytes:
        """Return the content of a regular file; raise FileNotFoundError, OSError or ValueError."""

    def decode(self, file: str) -> dict[str, Any]:
        """Return the object in a JSON file; raise as `read`, and ValueError for what is none."""
        return decode(self.read(file), self.packed)

    @abstractmethod
    def records(self) -> list[str]:
        """Return the names of all records, in no order."""

    @abstractmethod
    def covered(self) -> list[str]:
        """Return the names of all files that the campaign's numbers come from, sorted."""

    @abstractmethod
    def checksum(self, file: str) -> FileSum:
        """Return the checksum of a file."""


class DirectorySource(Source):
    """A campaign as bench.yml or an import writes it."""

    def __init__(self, top: Path) -> None:
        super().__init__(top, top.resolve().name, sealed=False)

    def kept_paths(self, out: Path) -> list[str]:
        """See Source."""
        paths = [self.top / name for name in (*PLANS, *FOLDERS)]
        return [_seen_from(out, path) for path in paths if path.exists()]

    def exists(self, file: str) -> bool:
        """See Source."""
        return (self.top / file).exists()

    def read(self, file: str) -> bytes:
        """See Source."""
        return read_small(self.top / file)

    def records(self) -> list[str]:
        """See Source."""
        return [path.relative_to(self.top).as_posix() for path in self.top.glob("runs/*/*/result.json")]

    def covered(self) -> list[str]:
        """See Source."""
        paths = [self.top / name for name in PLANS if (self.top / name).exists()]
        for pattern in OF_RUNS:
            paths += self.top.glob(pattern)
        return [path.relative_to(self.top).as_posix() for path in sorted(paths)]

    def checksum(self, file: str) -> FileSum:
        """See Source."""
        path = self.top / file
        try:
            return {"sha256": sha256_of(path), "bytes": path.stat().st_size}
        except (OSError, NotRegularError):
            return {"sha256": None, "bytes": None}


class MicrobenchSource(DirectorySource):
    """The results of microbench.yml, in their directory."""

    def covered(self) -> list[str]:
        """See Source."""
        return [name for name in MEASURED if (self.top / name).exists()]


class ArchiveSource(Source):
    """A campaign or micro-benchmarks in an archive, which is read once and never written.

    `folder` is their directory in an archive of several, "" where it holds nothing else.
    """

    def __init__(self, archive: Path, folder: str = "") -> None:
        stem = folder or archive.name.removesuffix(".tar.xz")
        own = archive.name == ARCHIVE and not folder
        name = archive.resolve().parent.name if own else stem
        super().__init__(archive.parent if own else archive.parent / stem, name, sealed=True)
        self.archive, self.folder = archive, folder
        self._files = _unpacked(archive, folder)
        self.packed = archive.stat().st_size
        if SEAL in self._files:
            _check_seal(archive, self._files, self.packed)

    def kept_paths(self, out: Path) -> list[str]:
        """See Source."""
        return [_seen_from(out, self.archive)] if self.archive.name == ARCHIVE else []

    def exists(self, file: str) -> bool:
        """See Source."""
        return file in self._files

    def read(self, file: str) -> bytes:
        """See Source."""
        try:
            return self._files[file]
        except KeyError:
            raise FileNotFoundError(f"{file} is not in {ARCHIVE}") from None

    def records(self) -> list[str]:
        """See Source."""
        return [file for file in self._files if _fits(file, "runs/*/*/result.json")]

    def covered(self) -> list[str]:
        """See Source."""
        names = (*PLANS, *MEASURED)
        return sorted(
            (
                file
                for file in self._files
                if file in names or any(_fits(file, pattern) for pattern in OF_RUNS)
            ),
            key=PurePosixPath,
        )

    def checksum(self, file: str) -> FileSum:
        """See Source."""
        content = self._files[file]
        return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


def open_results(path: Path) -> Source:
    """Return the files of the campaign or of the micro-benchmarks at `path`; see open_source."""
    return open_microbench(path) if (path / MICROBENCH).is_file() else open_source(path)


def open_microbench(path: Path) -> Source:
    """Return the files of the micro-benchmarks at `path`, a directory or one in an archive beside it."""
    measured = any((path / name).is_file() for name in MEASURED)
    return (None if measured else open_archive(path)) or MicrobenchSource(path)


def open_source(path: Path) -> Source:
    """Return the files of the campaign at `path`, a directory or a .tar.xz, or raise SourceError."""
    if (path / "runs").is_dir():
        return DirectorySource(path)
    if source := open_archive(path):
        return source
    for archive in (*([path] if path.suffix == ".xz" else []), path / ARCHIVE, path.parent / ARCHIVE):
        if archive.is_file() and (names := packed_campaigns(archive)):
            raise SourceError(
                f"campaign_dir={path}: is none of the campaigns in {archive}. Fix: name "
                f"{archive.parent}/NAME with one of {', '.join(map(clean, names))}"
            )
    raise SourceError(
        f"campaign_dir={path}: is not a campaign or an import, "
        f"it contains neither a directory runs nor {ARCHIVE}"
    )


def open_archive(path: Path) -> ArchiveSource | None:
    """Return what an archive holds of `path`; None where no archive has it, or raise SourceError.

    It may be that archive, have a runs.tar.xz, or be a directory in the runs.tar.xz beside it.
    """
    if path.name.endswith(".tar.xz") and path.is_file():
        places = [(path, "")]
    else:
        places = [(path / ARCHIVE, ""), (path.parent / ARCHIVE, path.name)]
    for archive, folder in places:
        if archive.is_file():
            source = ArchiveSource(archive, folder)
            if source.covered() or not folder and not packed_campaigns(archive):
                return source
    return None


def packed_campaigns(archive: Path) -> list[str]:
    """Return the names of the campaigns in an archive of several; none for the archive of one."""
    parts = [PurePosixPath(file).parts for file in _unpacked(archive)]
    return sorted({first for first, *rest in parts if rest and rest[0] in ("runs", *PLANS)})


def check_place(source: Source) -> None:
    """Raise SourceError where the report on an archive would replace that of another campaign beside it."""
    place = source.top
    if not isinstance(source, ArchiveSource):
        return
    packed = None if (place / "runs").is_dir() else open_archive(place)
    there = packed or DirectorySource(place)
    mine, other = ({file: each.checksum(file) for file in each.covered()} for each in (source, there))
    differ = sorted(file for file in {*mine, *other} if mine.get(file) != other.get(file))
    if other and differ:
        more = f" and {len(differ) - 1} more files differ" if len(differ) > 1 else " differs"
        raise SourceError(
            f"{source.archive}: its report goes into {place}, which holds another campaign: {differ[0]}{more}"
            ". Fix: move the archive into a directory of its own"
        )


def _fits(file: str, pattern: str) -> bool:
    """Return whether the whole path of a file in an archive has the pattern."""
    return PurePosixPath("/", file).match(f"/{pattern}")


def _seen_from(out: Path, path: Path) -> str:
    """Return the path of a file as a link of a page in the directory `out`."""
    return Path(os.path.relpath(path, out)).as_posix()


def _check_seal(archive: Path, files: dict[str, bytes], packed: int) -> None:
    """Raise SourceError naming the files that differ from archive.json."""
    try:
        seal = decode(files[SEAL], packed)
        shapes.check(Seal, seal)
    except ValueError as exc:
        raise SourceError(f"{archive}: {SEAL} cannot be read: {exc}") from None
    sums = seal["files"]
    now = {name: hashlib.sha256(content).hexdigest() for name, content in files.items() if name != SEAL}
    wrong = sorted(name for name in {*sums, *now} if sums.get(name) != now.get(name))
    if wrong:
        names = ", ".join(map(clean, wrong))
        raise SourceError(f"{archive}: has been changed since it was packed: {names}")


class _Tape:
    """What an archive holds, of which no more is read at once than the next file of it has a right to."""

    def __init__(self, packed: bytes) -> None:
        self._unpacked = Unpacked(packed, room(len(packed), LARGEST_ARCHIVE))
        self.allowed = LARGEST_HEAD

    def read(self, size: int) -> bytes:
        self.allowed -= size
        if self.allowed < 0:
            raise UnpackError("one of its files has a head without end")
        return self._unpacked.read(size)

    def drain(self) -> None:
        """Read what is left, so that a missing end is noticed."""
        while self._unpacked.read(1 << 20):
            pass


def _unpacked(archive: Path, folder: str = "") -> dict[str, bytes]:
    """Return the content of each file of an archive, or of a directory in it, by its name there."""
    try:
        if archive.stat().st_size > LARGEST_ARCHIVE:
            raise SourceError(f"{archive}: has more than {LARGEST_ARCHIVE} bytes")
        with open_regular(archive) as opened:
            tape = _Tape(opened.read())
        # As a stream: nothing is unpacked before it is known to be small enough.
        with tarfile.open(fileobj=tape, mode="r|") as members:  # type: ignore[call-overload]
            files = dict(_members(archive, tape, members, folder))
        tape.drain()
    except (tarfile.TarError, UnpackError, OSError, EOFError) as exc:
        raise SourceError(f"{archive} cannot be read: {exc}") from None
    return files


def _members(
    archive: Path, tape: _Tape, members: tarfile.TarFile, folder: str
) -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of each file below `folder`; raise SourceError for what a campaign has not."""
    below = f"{folder}/" if folder else ""
    names: set[str] = set()
    while (member := members.next()) is not None:
        members.members.clear()  # type: ignore[attr-defined]  # it would keep the head of each file
        if members.pax_headers:
            raise SourceError(f"{archive}: has a head for all files, which the archive of a campaign has not")
        tape.allowed = LARGEST_HEAD
        if not member.isdir():
            name = _name(archive, member)
            if name in names:
                raise SourceError(f"{archive}: {clean(name)} is in it twice")
            names.add(name)
            tape.allowed += member.size  # which tarfile reads, too, to come to the next file
            file = members.extractfile(member) if name.startswith(below) else None
            if file:
                yield name.removeprefix(below), file.read()
                tape.allowed = LARGEST_HEAD


def _name(archive: Path, member: tarfile.TarInfo) -> str:
    """Return the name of a file in an archive; raise SourceError unless it is a regular file in it."""
    name = PurePosixPath(member.name)
    strange = name.is_absolute() or ".." in name.parts or not member.name.isprintable()
    if not member.isreg() or member.issparse() or strange:
        raise SourceError(f"{archive}: {clean(member.name)} is not a regular file of a campaign")
    if member.size > LARGEST:
        raise SourceError(f"{archive}: {clean(member.name)} has {member.size} bytes, {LARGEST} are the most")
    return str(name)
