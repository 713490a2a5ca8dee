# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The content of a .xz file -> what it holds, within limits: 1 kB of .xz can hold gigabytes."""

from __future__ import annotations

import lzma

MEMORY = 128 << 20
"""Bytes that a decompressor may take: xz -9 needs 65 MiB, and a file may ask for 4 GiB."""

FREE, PACKED, EXPANSION = 12 << 20, 1 << 20, 64
"""A file of up to PACKED bytes may hold FREE bytes, and EXPANSION more for each further byte.

Campaigns and readings of telemetry hold 3 to 11 times what they are packed to, and zeros 7,000 times.
"""
BLOCK = 1 << 18


class UnpackError(ValueError):
    """Content that is not one whole .xz file; the message says why."""


class TooLargeError(UnpackError):
    """Content that holds more than it may."""


def room(packed: int, largest: int) -> int:
    """Return how many bytes a file of `packed` bytes may hold, no more than `largest`."""
    return min(largest, FREE + EXPANSION * max(0, packed - PACKED))


class Unpacked:
    """What a .xz file holds, to be read once from its begin to its end; it has at most `most` bytes."""

    def __init__(self, content: bytes, most: int) -> None:
        self._decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY)
        self._input = content
        self._most = self._left = most
        self._rest = bytearray()

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes, fewer at the end; raise UnpackError."""
        while len(self._rest) < size and not self._decompressor.eof:
            self._rest += self._block()
        if len(self._rest) < size and self._decompressor.unused_data:
            raise UnpackError("it goes on behind its end")
        piece = bytes(self._rest[:size])
        del self._rest[:size]
        return piece

    def _block(self) -> bytes:
        try:
            block = self._decompressor.decompress(self._input, BLOCK)
        except lzma.LZMAError as exc:
            raise UnpackError(str(exc)) from None
        self._input = b""
        if self._decompressor.needs_input and not self._decompressor.eof:
            raise UnpackError("it ends before its end-of-stream marker")
        self._left -= len(block)
        if self._left < 0:
            raise TooLargeError(f"it holds more than {self._most} bytes, the most for its size")
        return block


def unpacked(content: bytes, largest: int) -> bytes:
    """Return what a .xz file holds, at most `largest` bytes; raise UnpackError."""
    most = room(len(content), largest)
    return Unpacked(content, most).read(most + 1)
