# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Blocks of whole lines: the same lines whatever the size of a block."""

import io

from ansible.module_utils.scalebook.read.blocks import LINE, Blocks
from hypothesis import example, given, settings
from hypothesis import strategies as st


def lines(data, size=1 << 16):
    blocks = Blocks(io.BytesIO(data), size)
    return b"".join(blocks), [note["code"] for note in blocks.notes]


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=400), st.integers(1, 50))
@example(b"\x80\n\x00", 1)
def test_lines_do_not_depend_on_where_blocks_end(data, size):
    assert lines(data, size) == lines(data)


@settings(max_examples=20, deadline=None)
@given(st.integers(LINE - 2, LINE + 2), st.integers(1000, 3 * LINE), st.binary(max_size=20))
def test_long_lines_do_not_depend_on_where_blocks_end(length, size, after):
    data = b"before\n" + b"x" * length + b"\n" + after
    assert lines(data, size) == lines(data)


def test_a_line_that_is_too_long_keeps_its_head():
    data, notes = lines(b"a\n" + b"x" * (3 * LINE) + b"tail\nb\n", 1000)
    assert data == b"a\n" + b"x" * LINE + b"\nb\n"
    assert notes == ["run.bytes-long-line"]


def test_colours_and_nul_bytes_are_taken_out():
    data, notes = lines(b"\x1b[1;32mI1120\x1b[0m ok\0\0\n\x1b]x\n")
    assert data == b"I1120 ok\nx\n"
    assert notes == ["run.bytes-nul"]


def test_bytes_that_are_not_utf_8_are_noted_once():
    assert lines(b"\xff\n" * 9, 4) == (b"\xff\n" * 9, ["run.bytes-not-utf8"])


def test_the_offset_is_where_the_next_line_begins():
    blocks = Blocks(io.BytesIO(b"one\ntwo\0\nthree\n"), 6)
    places = [(block, blocks.offset) for block in blocks]
    assert places == [(b"one\n", 4), (b"two\n", 9), (b"three\n", 15)]
