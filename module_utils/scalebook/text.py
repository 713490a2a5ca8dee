# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Text from logs and nodes on one line, and nouns that are counted."""

from __future__ import annotations

from typing import Any


def clean(text: Any) -> str:
    """Return `text` on one line without control characters: log lines reach terminals and tables."""
    line = str(text)
    # Most text is printable as a whole, which is asked faster than of each character.
    if not line.isprintable():
        line = "".join(c if c.isprintable() else " " for c in line)
    return " ".join(line.split())
