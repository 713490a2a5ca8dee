# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The lock of a directory of results: one campaign at a time writes there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook.launch import lock_file, lock_holder


def claim(lock: Path, holder: Mapping[str, Any] | None, takeover: bool) -> str:
    """Take the lock of a directory of results, if somebody shall hold it, and return its path.

    Raise ValueError if another control node uses it, OSError.
    """
    if not holder:
        return ""
    lock.parent.mkdir(parents=True, exist_ok=True)
    _, held, other = lock_file.turn(str(lock), holder, None, "present", True)
    if not held and (takeover or lock_holder.gone(other)):
        _, held, other = lock_file.turn(str(lock), holder, other["id"], "present", True)
    if not held:
        raise ValueError(lock_holder.taken_by({str(lock.parent): other}))
    return str(lock)
