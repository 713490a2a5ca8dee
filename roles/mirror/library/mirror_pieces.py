#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0

DOCUMENTATION = r"""
module: mirror_pieces
short_description: Split a mirror into pieces of a given size, and put them together
description:
  - With O(size), writes the tar archive of O(mirror) as the files C(mirror.tar.0000), C(mirror.tar.0001), …
    of O(path) and their checksums as C(pieces.sha256), the file that is written last. Pieces of an earlier
    run are removed.
  - Without, compares the pieces in O(path) with their checksums and unpacks them to its directory C(mirror).
    A missing or changed piece is refused by its name, and nothing is unpacked. Pieces that were put together
    before are not unpacked again.
  - Runs on the control node.
options:
  path:
    description: The directory of the pieces.
    type: path
    required: true
  mirror:
    description: The directory to split; required with O(size).
    type: path
  size:
    description: Size of a piece in bytes, at least 1048576.
    type: int
attributes:
  check_mode: {support: none, description: Skipped in check mode.}
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Split the mirror into pieces of 60 MiB
  mirror_pieces:
    path: /srv/mirror.pieces
    mirror: /srv/mirror
    size: 62914560
  delegate_to: localhost

- name: Join the pieces
  mirror_pieces:
    path: /srv/mirror.pieces
  delegate_to: localhost
"""

RETURN = r"""
pieces:
  description: Number of pieces.
  returned: success
  type: int
mirror:
  description: The directory of the mirror.
  returned: success
  type: str
"""

import hashlib
import io
import os
import re
import shutil
import tarfile
import tempfile
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.scalebook.files import sha256_of, write_whole

LIST = "pieces.sha256"
NAME = "mirror.tar.%04d"
PIECE = re.compile(r"mirror\.tar\.\d{4,}\Z", re.ASCII)
LINE = re.compile(r"([0-9a-f]{64})  (%s)" % PIECE.pattern, re.ASCII)
LEAST = 1 << 20


class PieceError(ValueError):
    """The pieces cannot be used; the message names them and the fix."""


def argument_spec() -> Dict[str, Any]:
    return {
        "path": {"type": "path", "required": True},
        "mirror": {"type": "path"},
        "size": {"type": "int"},
    }


class Pieces(io.RawIOBase):
    """A stream that is written as files of `size` bytes; `sums` are their (name, sha256)."""

    def __init__(self, folder: str, size: int) -> None:
        self.folder, self.size = folder, size
        self.sums: Dict[str, str] = {}
        self.piece = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.piece += data
        while len(self.piece) >= self.size:
            self._end(self.size)
        return len(data)

    def _end(self, length: int) -> None:
        name, data = NAME % len(self.sums), bytes(self.piece[:length])
        del self.piece[:length]
        with open(os.path.join(self.folder, name), "wb") as stream:
            stream.write(data)
        self.sums[name] = hashlib.sha256(data).hexdigest()

    def finish(self) -> None:
        """Write what is left as the last piece."""
        if self.piece:
            self._end(len(self.piece))


def split(top: str, folder: str, size: int) -> int:
    """Write the pieces of the directory `top` to `folder`; return their number."""
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(folder):
        if name == LIST or PIECE.match(name):
            os.remove(os.path.join(folder, name))
    pieces = Pieces(folder, size)
    with tarfile.open(fileobj=pieces, mode="w|", format=tarfile.GNU_FORMAT) as tar:
        for name in sorted(os.listdir(top)):
            tar.add(os.path.join(top, name), arcname=name)
    pieces.finish()
    lines = ["%s  %s\n" % (sha256, name) for name, sha256 in pieces.sums.items()]
    write_whole(os.path.join(folder, LIST), "".join(lines).encode("ascii"))
    return len(lines)


class Joined(io.RawIOBase):
    """The bytes of several files, one after the other."""

    def __init__(self, paths: List[str]) -> None:
        self.paths = list(paths)
        self.stream: Optional[Any] = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            if self.stream is None:
                if not self.paths:
                    return 0
                self.stream = open(self.paths.pop(0), "rb")  # noqa: SIM115 - closed at its end
            count = int(self.stream.readinto(buffer))
            if count:
                return count
            self.stream.close()
            self.stream = None


def checked(folder: str, text: str) -> List[str]:
    """Return the paths of the pieces in their order; raise PieceError where one is not as `text` lists it."""
    entries = [LINE.match(line) for line in text.splitlines()]
    checksums = [(match.group(2), match.group(1)) for match in entries if match]
    if not checksums or len(checksums) < len(entries):
        raise PieceError("%s/%s is not a list of pieces" % (folder, LIST))
    paths = {name: os.path.join(folder, name) for name, _ in checksums}
    missing = [name for name, path in paths.items() if not os.path.isfile(path)]
    changed = [name for name, sha256 in checksums if name not in missing and sha256_of(paths[name]) != sha256]
    wrong = [("missing", missing), ("changed", changed)]
    if missing or changed:
        named = "; ".join("%s: %s" % (what, ", ".join(names)) for what, names in wrong if names)
        raise PieceError("%s is refused; %s. Fix: copy these pieces again" % (folder, named))
    return list(paths.values())


def files_of(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yield the members of a mirror; raise PieceError for any but files and directories below it.

    tarfile has filters for this only from Python 3.11.4 on.
    """
    for member in tar:
        outside = member.name.startswith("/") or ".." in member.name.split("/")
        if outside or not (member.isfile() or member.isdir()):
            raise PieceError("%s is neither a file nor a directory of a mirror" % member.name)
        member.mode &= 0o755
        yield member


def unpack(paths: List[str], top: str) -> None:
    """Unpack the pieces to the new directory `top`, whole or not at all."""
    new = tempfile.mkdtemp(prefix=".scalebook-mirror.", dir=os.path.dirname(top))
    try:
        with tarfile.open(fileobj=io.BufferedReader(Joined(paths), 1 << 20), mode="r|") as tar:
            tar.extractall(new, members=files_of(tar))  # noqa: S202 (files_of refuses what leads elsewhere)
        os.chmod(new, 0o755)  # noqa: S103 - mkdtemp makes it private
        os.rename(new, top)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def join(folder: str) -> Tuple[bool, int]:
    """Unpack the pieces in `folder` to its directory `mirror`, unless they were before.

    Returns whether it did, and the number of pieces.  Raises PieceError for a directory of somebody else's.
    """
    with open(os.path.join(folder, LIST), "rb") as stream:
        listed = stream.read()
    top, record = os.path.join(folder, "mirror"), os.path.join(folder, "joined.sha256")
    identity = hashlib.sha256(listed).hexdigest().encode("ascii")
    recorded = b""
    if os.path.isfile(record):
        with open(record, "rb") as stream:
            recorded = stream.read()
    if os.path.lexists(top) and not recorded:
        raise PieceError("%s exists already, and not from pieces. Fix: move it elsewhere" % top)
    if os.path.isdir(top) and recorded == identity:
        return False, len(listed.splitlines())
    paths = checked(folder, listed.decode("ascii", "replace"))
    # The record comes first: it says that the directory of this name is from pieces.
    if os.path.isdir(top):
        shutil.rmtree(top)
    write_whole(record, identity)
    unpack(paths, top)
    return True, len(paths)


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), required_together=[("mirror", "size")])
    folder, mirror, size = (module.params[name] for name in ("path", "mirror", "size"))
    if size is not None and size < LEAST:
        module.fail_json(msg="a piece of %d bytes is too small: at least %d are needed" % (size, LEAST))
    try:
        changed, number = (True, split(mirror, folder, size)) if size else join(folder)
    except PieceError as error:
        module.fail_json(msg=str(error))
    except (OSError, tarfile.TarError) as error:
        module.fail_json(msg="cannot use %s for the pieces of a mirror: %s" % (folder, error))
    module.exit_json(changed=changed, pieces=number, mirror=mirror or os.path.join(folder, "mirror"))


if __name__ == "__main__":
    main()
