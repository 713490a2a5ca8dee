# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The versions that nodes recorded of their software, as text or messages."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.scalebook.contracts import Statement, message

OWN = " of the framework's own"
"""What earlier versions wrote behind the version of a library that a framework brings along."""


def version_of(recorded: Any) -> Statement:
    """Return a version; of a framework's own library it is a message, also where text was written."""
    if isinstance(recorded, dict) and recorded.keys() == {"code", "values"}:
        return message(recorded["code"], **recorded["values"])
    text = str(recorded)
    if not text.endswith(OWN):
        return text
    of_system, _, own = text.removesuffix(OWN).rpartition(", ")
    if of_system:
        return message("report.system-and-own", version=of_system, own=own)
    return message("report.own", version=own)
