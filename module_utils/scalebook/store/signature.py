# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The signature of an archive, `<archive>.sig`: who vouches for it, by the keys of SSH.

Checksums in an archive find accidents: who changes a file can compute them again.  A signature cannot be made
without the private key, so it also tells of people.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from ansible.module_utils.scalebook.contracts import Message, message

NAMESPACE = "scalebook"
"""A signature for another purpose, such as a commit, does not count for an archive."""
SECONDS = 60
"""A key in hardware waits for a touch; one with a passphrase has to be in ssh-agent."""


class SignatureError(ValueError):
    """An archive that cannot be signed, or a signature that does not hold."""


def beside(archive: Path) -> Path:
    """Return where the signature of an archive is."""
    return archive.with_name(f"{archive.name}.sig")


def sign(archive: Path, key: str) -> bytes:
    """Return the signature of an archive by the private key in the file `key`."""
    process = _ssh_keygen(archive, "sign", "-f", key, "-n", NAMESPACE)
    if process.returncode:
        fix = "name a private key without a passphrase, or the .pub of one that ssh-agent holds"
        raise SignatureError(f"sign_key={key}: {_last(process)}. Fix: {fix}")
    return process.stdout


def signer(archive: Path, allowed: str = "") -> Message:
    """Return who signed an archive; raise SignatureError where the signature does not hold.

    `allowed` is the file that lists whose keys count, as ssh-keygen describes it: with it an archive that
    none of them signed is refused too.
    """
    own = beside(archive)
    if not own.exists():
        if allowed:
            raise SignatureError(
                f"allowed_signers={allowed}: nobody signed {archive}, there is no {own.name}"
            )
        return message("signature.none", file=own.name)
    options = ("-n", NAMESPACE, "-s", str(own))
    if not allowed:
        process = _ssh_keygen(archive, "check-novalidate", *options)
        _check(process, archive, own)
        return message("signature.of-a-key", said=_first(process))
    principals = _ssh_keygen(archive, "find-principals", "-s", str(own), "-f", allowed)
    if principals.returncode:
        raise SignatureError(f"allowed_signers={allowed}: none of them signed {archive}: {_last(principals)}")
    process = _ssh_keygen(archive, "verify", *options, "-f", allowed, "-I", _first(principals))
    _check(process, archive, own)
    return message("signature.of-a-signer", said=_first(process))


def _check(process: subprocess.CompletedProcess[bytes], archive: Path, own: Path) -> None:
    if process.returncode:
        raise SignatureError(f"{own} is not a signature of {archive}: {_last(process)}")


def _ssh_keygen(archive: Path, action: str, *options: str) -> subprocess.CompletedProcess[bytes]:
    """Return what ssh-keygen says of an archive; it has no terminal to ask on."""
    try:
        with archive.open("rb") as content:
            return subprocess.run(
                ["ssh-keygen", "-Y", action, *options],
                stdin=content,
                capture_output=True,
                check=False,
                timeout=SECONDS,
                start_new_session=True,
                env={**os.environ, "SSH_ASKPASS_REQUIRE": "never", "LC_ALL": "C"},
            )
    except FileNotFoundError as exc:
        raise SignatureError(
            f"{exc.filename} is not there; signatures need ssh-keygen of OpenSSH 8.1"
        ) from None
    except subprocess.TimeoutExpired:
        raise SignatureError(f"ssh-keygen -Y {action} did not end within {SECONDS} s") from None


def _first(process: subprocess.CompletedProcess[bytes]) -> str:
    return (process.stdout.decode(errors="replace").splitlines() or [""])[0].strip()


def _last(process: subprocess.CompletedProcess[bytes]) -> str:
    lines = (process.stderr + process.stdout).decode(errors="replace").split("\n")
    return " ".join([line.strip().rstrip(".") for line in lines if line.strip()][:2]) or "ssh-keygen failed"
