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
import lzma
import re
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from ansible.module_utils.scalebook.report import manifest
from ansible.module_utils.scalebook.report.source import SEAL, open_source

SCHEMA = 1
SECRETS = {
    "a private key": re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    "a password in a URL": re.compile(rb"[a-z][a-z0-9+.-]*://[^\s/@:'\"]+:(?!\*\*\*)[^\s/@'\"]+@"),
    "a token": re.compile(
        rb"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{30,}|glpat-[\w-]{20,}|hf_[A-Za-z0-9]{30,}"
        rb"|pypi-[\w-]{40,}|(?:AKIA|ASIA)[A-Z0-9]{16})\b"
    ),
    "an authorization header": re.compile(rb"(?i)authorization\W{1,4}(?:basic|bearer)\s+[\w+/=.-]{8,}"),
    "a password": re.compile(
        rb"(?i)(?:password|passwd|passphrase|api_?key|secret_?key|access_?token|auth_?token)"
        rb"[\"']?\s*[=:]\s*[\"']?(?!\*\*\*|none\b|null\b)[^\s\"',;<>{}$]{6,}"
    ),
}
"""What a secret looks like, by what it is called."""


class ArchiveError(ValueError):
    """A campaign that cannot be packed."""


def pack(top: Path) -> bytes:
    """Return the archive of the campaign in the directory `top`.

    Raises ArchiveError where a secret was found, with its file and line but not the secret itself, where the
    campaign has no report, or where its files differ from the manifest.
    """
    source = open_source(top)
    if source.sealed:
        raise ArchiveError(f"The campaign {top} is packed already. Fix: leave out archive=true")
    signed = manifest.read(source)
    if signed is None:
        fix = f"ansible-playbook report.yml -e campaign_dir={top}"
        raise ArchiveError(f"The campaign {top} has no report to pack. Fix: {fix}")
    wrong = manifest.differences(signed, manifest.files_of(source))
    if wrong:
        raise ArchiveError("; ".join(manifest.sentence(each) for each in wrong))
    reports = sorted(
        path.relative_to(top).as_posix() for path in (top / "report").iterdir() if path.is_file()
    )
    files = {name: source.read(name) for name in [*source.covered(), manifest.NAME, *reports]}
    found = [f"{name}, line {line}: {what}" for name in files for line, what in secrets(name, files[name])]
    if found:
        raise ArchiveError("not packed, what looks like a secret was found: " + "; ".join(found))
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    seal = json.dumps({"schema": SCHEMA, "files": sums}, indent=1) + "\n"
    return _tar({SEAL: seal.encode(), **files})


def secrets(name: str, content: bytes) -> Iterator[tuple[int, str]]:
    """Yield (line, what it is) of everything in a file that looks like a secret; .xz files are unpacked."""
    if name.endswith(".xz"):
        try:
            content = lzma.decompress(content)
        except lzma.LZMAError as exc:
            raise ArchiveError(f"{name}: cannot be searched for secrets: {exc}") from None
    for what, pattern in SECRETS.items():
        for match in pattern.finditer(content):
            yield content.count(b"\n", 0, match.start()) + 1, what


def _tar(files: Mapping[str, bytes]) -> bytes:
    """Return a .tar.xz of the files, without times, owners and permissions of this machine."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz", format=tarfile.PAX_FORMAT) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()
