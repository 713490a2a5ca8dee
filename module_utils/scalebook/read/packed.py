# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Logs packed as people pass them on -> plain files in a directory of our own, within limits.

What is unpacked may have been made to harm: it holds at most so many bytes for its size, no more files than
a tree may have, and nothing of it lands outside of the directory, links included.
"""

from __future__ import annotations

import gzip
import lzma
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Protocol

from ansible.module_utils.scalebook.contracts import Message, message
from ansible.module_utils.scalebook.files import NotRegularError, open_regular, read_small
from ansible.module_utils.scalebook.unpack import TooLargeError, Unpacked, UnpackError

SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz")

EXPANSION, LARGEST = 64, 8 << 30
"""How many times its size packed text may hold, logs hold 5 to 30 times, and the most of all."""
FREE_ARCHIVE, FREE_LOG = 16 << 20, 1 << 20
"""Bytes that a small archive, and a small packed log, may hold however small it is."""
FREE_FILES, PER_FILE = 1000, 256
"""Files and directories that a small archive may hold, and bytes of a larger one for each further."""

DEEPEST = 8
"""Directories above a log, within an archive or a tree."""
_BLOCK = 1 << 18
_OF_MACOS = ("__MACOSX", ".DS_Store")
_BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,  # of gzip too
    ValueError,
    RuntimeError,  # a chain of headers without end
)

Skip = Callable[[str, Message], None]
"""Takes the path of what was not unpacked, and why."""


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Limited:
    """A stream of which at most `most` bytes are read, then TooLargeError."""

    def __init__(self, stream: _Readable, most: int) -> None:
        self._stream, self._most, self._left = stream, most, most

    def read(self, size: int) -> bytes:
        content = self._stream.read(size)
        self.count(len(content))
        return content

    def count(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise TooLargeError(f"it holds more than {self._most} bytes, the most for its size")


def suffix_of(name: str) -> str:
    """Return the suffix by which a name is that of an archive, "" for others."""
    return max((each for each in SUFFIXES if name.lower().endswith(each)), key=len, default="")


def unpack_log(path: str | os.PathLike[str], target: Path) -> None:
    """Write what a .gz file holds to `target`; raise UnpackError."""
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            with gzip.GzipFile(fileobj=file) as packed:
                _copy(packed, target, _Limited(packed, min(LARGEST, FREE_LOG + EXPANSION * size)))
    except _BROKEN as exc:
        raise _why(exc) from None


def unpack_archive(path: Path, into: Path, most_files: int, skip: Skip) -> None:
    """Write the regular files of an archive below the empty directory `into`; raise UnpackError."""
    suffix = suffix_of(path.name)
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            most = min(LARGEST, FREE_ARCHIVE + EXPANSION * size)
            place = _Place(into, min(most_files, FREE_FILES + size // PER_FILE), skip)
            if suffix == ".zip":
                _unzip(file, place, most)
            elif suffix in (".tar.gz", ".tgz"):
                with gzip.GzipFile(fileobj=file) as packed:
                    _untar(packed, place, most)
            elif suffix == ".tar":
                _untar(file, place, most)
            else:
                _untar(Unpacked(read_small(path), most), place, most)
    except _BROKEN as exc:
        raise _why(exc) from None


def _why(error: BaseException) -> UnpackError:
    if isinstance(error, (UnpackError, NotRegularError)):
        return error if isinstance(error, UnpackError) else UnpackError(str(error))
    if isinstance(error, RecursionError):
        return UnpackError("its headers go on without end")
    return UnpackError(str(error) or type(error).__name__)


class _Place:
    """Where the files of an archive go."""

    def __init__(self, into: Path, most_files: int, skip: Skip) -> None:
        self._into, self._most, self._skip = into, most_files, skip
        self._count, self._directories = 0, {into}

    def put(
        self, name: str, stream: _Readable | None, limit: _Limited, refusal: Message | None = None
    ) -> None:
        """Write one member; a directory has no stream, and `refusal` says why one is left out."""
        self._add(1)
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if not parts or parts[0] in _OF_MACOS or parts[-1] in _OF_MACOS or parts[-1].startswith("._"):
            return
        if name.startswith("/") or ".." in parts or "\\" in name or not name.isprintable():
            refusal = message("import.path-leads-out")
        elif len(parts) > DEEPEST + 1:
            refusal = message("import.too-deep", most=DEEPEST)
        if refusal:
            self._skip(name, refusal)
        elif stream:
            self._write(parts, stream, limit)

    def _add(self, count: int) -> None:
        self._count += count
        if self._count > self._most:
            raise UnpackError(f"it holds more than {self._most} files and directories, the most for its size")

    def _write(self, parts: list[str], stream: _Readable, limit: _Limited) -> None:
        target = self._into.joinpath(*parts)
        above = target.parent
        while above not in self._directories:
            self._add(1)
            self._directories.add(above)
            above = above.parent
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.name.endswith(".log.gz"):
                # It counts for the archive: one of such files could hold any number of bytes.
                with gzip.GzipFile(fileobj=stream, mode="rb") as packed:  # type: ignore[call-overload]
                    _copy(packed, target.with_suffix(""), limit)
            else:
                _copy(stream, target, limit)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            self._skip("/".join(parts), message("import.twice"))


def _copy(stream: _Readable, target: Path, limit: _Limited) -> None:
    with target.open("xb") as out:
        while content := stream.read(_BLOCK):
            limit.count(len(content))
            out.write(content)


def _untar(stream: _Readable, place: _Place, most: int) -> None:
    limited = _Limited(stream, most)
    # What a tar holds counts twice: as it is read, headers and all, and as it is written, once unpacked.
    limited_stream = _Limited(stream, most)
    with tarfile.open(fileobj=limited, mode="r|") as tar:  # type: ignore[call-overload]
        for member in tar:
            tar.members = []  # else it keeps them all
            content = tar.extractfile(member) if member.isreg() else None
            refusal = None if member.isreg() or member.isdir() else message("import.link-or-not-regular")
            place.put(member.name, content, limited_stream, refusal)


def _unzip(file: IO[bytes], place: _Place, most: int) -> None:
    limited = _Limited(file, most)
    with zipfile.ZipFile(file) as packed:
        for member in packed.infolist():
            if member.is_dir():
                place.put(member.filename, None, limited)
            elif member.flag_bits & 1:
                place.put(member.filename, None, limited, message("import.encrypted"))
            # The others let a file ask for gigabytes of memory.
            elif member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                place.put(member.filename, None, limited, message("import.not-deflate"))
            else:
                with packed.open(member) as content:
                    place.put(member.filename, content, limited)
