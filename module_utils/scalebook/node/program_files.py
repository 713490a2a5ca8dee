# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The files of a program, as required."""

from pathlib import Path
from typing import Any, Dict, Mapping, Optional

from ansible.module_utils.scalebook.files import write_whole

MODE = 0o644


def content(path: Path) -> Optional[bytes]:
    """Return the bytes of a regular file with the right mode, None for anything else."""
    if path.is_symlink() or not path.is_file() or path.stat().st_mode & 0o777 != MODE:
        return None
    return path.read_bytes()


def make(folder: Path) -> None:
    """Make a folder and those above it that are missing, for all to read whatever the umask."""
    if not folder.is_dir():
        make(folder.parent)
        folder.mkdir(exist_ok=True)  # nodes that share a home make it at the same time
        folder.chmod(0o755)


def put(folder: Path, files: Mapping[str, str], write: bool = True) -> Dict[str, Optional[bytes]]:
    """Write the files that differ of `files` ({name: text}) into `folder`; only compare when not `write`.

    Return {name: old content or None} of those.  Raises ValueError for a name with a directory, OSError
    where the folder cannot be written.
    """
    for name in files:
        if name in ("", "..") or Path(name).name != name:
            raise ValueError("files: %r is not the name of a file without a directory" % name)
    before = {name: content(folder / name) for name in sorted(files)}
    differs = {name: old for name, old in before.items() if old != files[name].encode()}
    if write:
        make(folder)
    for name in differs if write else ():
        if (folder / name).is_symlink():
            (folder / name).unlink()  # write_whole compares with the file that a link points to
        write_whole(folder / name, files[name].encode(), mode=MODE)
        (folder / name).chmod(MODE)  # where only the mode differs nothing is written
    return differs


def run(options: Mapping[str, Any], check: bool, diff: bool) -> Dict[str, Any]:
    """Write the files; module program_files describes options and result, in which `diff` is asked for."""
    folder, files = Path(options["path"]), options["files"]
    try:
        differs = put(folder, files, write=not check)
    except (OSError, ValueError) as error:
        raise ValueError("cannot write the program into %s: %s" % (folder, error)) from error
    result: Dict[str, Any] = {"changed": bool(differs), "written": list(differs)}
    if diff:
        result["diff"] = [
            {
                "before_header": str(folder / name),
                "after_header": str(folder / name),
                "before": (old or b"").decode(errors="replace"),
                "after": files[name],
            }
            for name, old in differs.items()
        ]
    return result
