# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Find consecutive lines in a text by what they say, and put others in their place.

Modules that run on nodes import this file, so it keeps to Python 3.6.
"""

from typing import List


def positions(lines: List[str], block: List[str]) -> List[int]:
    """Return the indices at which the lines of `block` follow each other, whatever their indentation."""
    block = [line.strip() for line in block]
    lines = [line.strip() for line in lines]
    return [i for i in range(len(lines) - len(block) + 1) if lines[i : i + len(block)] == block]


def replaced(lines: List[str], start: int, count: int, new: List[str]) -> str:
    """Return the text of `lines`, with line ends, with the lines `new` in place of `count` from `start` on.

    The new lines, without line ends, get the indentation of the first one that they replace, plus their own,
    and its line end.
    """
    first = lines[start]
    indent = first[: len(first) - len(first.lstrip())]
    ending = "\r\n" if first.endswith("\r\n") else "\n"
    return "".join(lines[:start] + [indent + line + ending for line in new] + lines[start + count :])
