# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The files of this repository."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Beside the files of an unpacked archive: what tests and campaigns leave there.
LEFT = {".venv", ".scalebook", "results", "artifacts", "env"}


def project_files():
    """Return the files git knows or would take, but no links, as paths relative to the root."""
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
    )
    if listed.returncode == 0:
        names = [name for name in listed.stdout.split("\0") if name]
    else:  # an unpacked archive
        paths = (path.relative_to(ROOT) for path in ROOT.rglob("*"))
        names = [str(path) for path in paths if path.parts[0] not in LEFT]
    return sorted(name for name in names if (ROOT / name).is_file() and not (ROOT / name).is_symlink())
