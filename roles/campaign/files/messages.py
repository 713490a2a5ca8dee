#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What the programs on a node have to say, as data: the catalogues of scalebook/pages have the sentences.

Runs on the nodes' own Python, 3.6 or later, standard library only.
"""

TYPE_CHECKING = False  # module typing takes 2 MB
if TYPE_CHECKING:
    from typing import Any, Dict

    Message = Dict[str, Any]


def message(code: str, **values: "Any") -> "Message":
    """Return a message."""
    return {"code": code, "values": values}


class MessageError(Exception):
    """An error with a message."""

    def __init__(self, code: str, **values: "Any") -> None:
        super().__init__(code, values)
        self.message = message(code, **values)


def why(error: Exception) -> "Message":
    """Return what an error says: its message, or its text."""
    return error.message if isinstance(error, MessageError) else message("text", text=str(error))
