# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Writing a report: its files, the manifest, and nothing left of an earlier one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ansible.module_utils.scalebook.files import write_json, write_whole
from ansible.module_utils.scalebook.json_file import decode
from ansible.module_utils.scalebook.judge.campaign import Manifest
from ansible.module_utils.scalebook.store.manifest import NAME


def write_report(out: Path, texts: Mapping[str, str | bytes], write: bool = True) -> bool:
    """Write `texts` (file name -> content) to `out` and return whether anything there differs.

    Removes the files of the report that was there before and that this one no longer has.
    """
    stale = _stale(out, texts)
    # What a file name or a log line held that is not UTF-8 becomes `?`.
    changed = [
        write_whole(out / name, text if isinstance(text, bytes) else text.encode("utf-8", "replace"), write)
        for name, text in texts.items()
    ]
    for path in stale if write else ():
        path.unlink()
    return any(changed) or bool(stale)


def write_manifest(top: Path, manifest: Manifest, write: bool = True) -> bool:
    """Write the manifest of the campaign in `top` and return whether it differs."""
    return write_json(top / NAME, manifest, write, sync=True)


def _stale(out: Path, texts: Mapping[str, str | bytes]) -> list[Path]:
    try:
        before = decode((out / "results.json").read_bytes()).get("files")
    except (OSError, ValueError, RecursionError):
        return []
    names = [name for name in before or [] if isinstance(name, str) and name == Path(name).name]
    return [out / name for name in names if name not in texts and (out / name).is_file()]
