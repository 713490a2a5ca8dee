# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A log file -> blocks of whole lines, in bounded memory whatever the file holds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from ansible.module_utils.scalebook.contracts import Message, message

BLOCK = 1 << 16
"""What stays in the processor's second cache is searched twice as fast as what does not."""
LINE = 1 << 14
"""Longer lines keep only their head: a step line is short, and a hostile one must not cost memory or time."""

# Terminal colours and cursor movements (ECMA-48 control sequences).
ANSI = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-Z\\-_]")


class Blocks:
    """Iterate over an open file: each block is whole lines, NUL bytes and colours taken out.

    Only the file's last block may lack the closing newline.  `offset` is the place in the file up
    to which lines were handed out; `notes` says what was unusual about the bytes.
    """

    def __init__(self, file: BinaryIO, size: int = BLOCK) -> None:
        self._file = file
        self._size = size
        self._seen: dict[str, None] = {}
        self.offset = file.tell()

    @property
    def notes(self) -> list[Message]:
        """What was unusual about the bytes read so far, in a fixed order."""
        return [message(f"run.{code}") for code in sorted(self._seen)]

    def __iter__(self) -> Iterator[bytes]:
        start, carry, head = self.offset, b"", None
        while chunk := self._file.read(self._size):
            newline = chunk.rfind(b"\n")
            if newline >= 0:
                self.offset = start + newline + 1
            start += len(chunk)
            if b"\0" in chunk:
                self._seen["bytes-nul"] = None
                chunk = chunk.replace(b"\0", b"")
            if head is not None:  # inside a line that is too long: wait for its end
                newline = chunk.find(b"\n")
                if newline < 0:
                    continue
                chunk, head = head + chunk[newline:], None
            data = carry + chunk if carry else chunk
            cut = data.rfind(b"\n") + 1
            carry = data[cut:]
            if cut:
                yield self._clean(data[:cut] if carry else data)
            if len(carry) > LINE:
                carry, head = b"", carry[:LINE]
                self._seen["bytes-long-line"] = None
        self.offset = start
        if head or carry:
            yield self._clean(head or carry)

    def _clean(self, data: bytes) -> bytes:
        if has_long_line(data):
            self._seen["bytes-long-line"] = None
            data = b"\n".join(line[:LINE] for line in data.split(b"\n"))
        if not data.isascii() and "bytes-not-utf8" not in self._seen:
            try:
                data.decode()
            except UnicodeDecodeError:
                self._seen["bytes-not-utf8"] = None
        if b"\x1b" in data:
            data = ANSI.sub(b"", data)
        return data


def has_long_line(data: bytes) -> bool:
    """Say whether a line of `data` is longer than LINE, by jumping from newline to newline."""
    place, end = 0, len(data)
    while end - place > LINE:
        newline = data.rfind(b"\n", place, place + LINE + 1)
        if newline < 0:
            return True
        place = newline + 1
    return False
