# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A campaign -> one file, <campaign>.tar.xz, that another scalebook verifies and reports on.

It holds plan, provenance, manifest, the record and logs of every run, the report, and archive.json: the
sha256 of each of these files.  The same files always make the same archive.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook.files import LARGEST, write_whole
from ansible.module_utils.scalebook.secrets import secrets
from ansible.module_utils.scalebook.store import manifest, signature
from ansible.module_utils.scalebook.store.source import SEAL, open_source
from ansible.module_utils.scalebook.text import clean
from ansible.module_utils.scalebook.unpack import UnpackError, unpacked

SCHEMA = 1


class ArchiveError(ValueError):
    """A campaign that cannot be packed."""


def write_archive(path: Path, sign_key: str | None, write: bool) -> dict[str, Any]:
    """Write the archive of a campaign beside it, and sign it with a key; return what was written."""
    top = path.resolve()
    content = pack(top)
    target = top.parent / f"{top.name}.tar.xz"
    own = signature.beside(target)
    changed = write_whole(target, content, write, sync=True)
    if changed and write:
        own.unlink(missing_ok=True)  # it was the signature of what was there before
    if sign_key and write:
        changed |= write_whole(own, signature.sign(target, sign_key), sync=True)
    return {
        "changed": changed,
        "archive": str(target),
        "bytes": len(content),
        "signature": str(own) if sign_key else "",
    }


def pack(top: Path) -> bytes:
    """Return the archive of the campaign in the directory `top`.

    Raises ArchiveError where a secret was found, with its file and line but not the secret itself, where the
    campaign has no report, or where its files differ from the manifest.
    """
    source = open_source(top)
    if source.sealed:
        raise ArchiveError(f"The campaign {top} is packed already. Fix: give its directory, or archive=false")
    signed = manifest.read(source)
    if signed is None:
        fix = f"ansible-playbook report.yml -e campaign_dir={top}"
        raise ArchiveError(f"The campaign {top} has no report to pack. Fix: {fix}")
    wrong = manifest.differences(signed, manifest.files_of(source))
    if wrong:
        changes = [f"{clean(each['file'])} is {each['what']} since it was reported" for each in wrong]
        raise ArchiveError("; ".join(changes))
    reports = sorted(
        path.relative_to(top).as_posix() for path in (top / "report").iterdir() if path.is_file()
    )
    files = {name: source.read(name) for name in [*source.covered(), manifest.NAME, *reports]}
    leaks = [f"{name}, line {line}: {what}" for name in files for line, what in secrets_of(name, files[name])]
    if leaks:
        raise ArchiveError("not packed, what looks like a secret was found: " + "; ".join(leaks))
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    seal = json.dumps({"schema": SCHEMA, "files": sums}, indent=1) + "\n"
    return _tar({SEAL: seal.encode(), **files})


def secrets_of(name: str, content: bytes) -> Iterator[tuple[int, str]]:
    """Return (line, what it is) of everything in a file that looks like a secret; .xz files are unpacked."""
    if name.endswith(".xz"):
        try:
            content = unpacked(content, LARGEST)
        except UnpackError as exc:
            raise ArchiveError(f"{name}: cannot be searched for secrets: {exc}") from None
    return secrets(content)


def _tar(files: Mapping[str, bytes]) -> bytes:
    """Return a .tar.xz of the files, without times, owners and permissions of this machine."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz", format=tarfile.PAX_FORMAT) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()
