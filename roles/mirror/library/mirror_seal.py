#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0

DOCUMENTATION = r"""
module: mirror_seal
short_description: Sign the repositories of a mirror and write its manifest
description:
  - C(apt/<system>/) of the directory are flat apt repositories. An index that was just gathered
    (C(Packages.new)) is merged with that of earlier gatherings, and each is signed. The signing key is
    created here and discarded; apt requires a signature, and the manifest vouches for the key as for every
    other file.
  - Runs on the control node. Packages need C(gpg) there.
options:
  path:
    description: The directory.
    type: path
    required: true
attributes:
  check_mode:
    support: full
    description: Says what would change, and changes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Sign the repositories and write the manifest
  mirror_seal:
    path: /srv/mirror
  delegate_to: localhost
"""

RETURN = r"""
sha256:
  description: Checksum of the manifest.
  returned: success, not in check mode
  type: str
files:
  description: Number of files in the manifest.
  returned: success, not in check mode
  type: int
bytes:
  description: Their size.
  returned: success, not in check mode
  type: int
"""

import glob
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from typing import Any, Dict, List

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.scalebook.files import sha256_of, write_whole

MANIFEST = "sha256sums"


class SealError(ValueError):
    """The mirror cannot be sealed; the message says why, and the fix."""


def argument_spec() -> Dict[str, Any]:
    return {"path": {"type": "path", "required": True}}


def paragraphs(path: str) -> Dict[str, str]:
    """Return {file name: paragraph} of an index; empty where it does not exist."""
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as stream:
        parts = [part.strip("\n") for part in stream.read().split("\n\n") if part.strip()]
    return {part.split("\nFilename: ./")[1].split("\n")[0]: part for part in parts}


def merge_index(folder: str) -> None:
    """Write the index of a repository: new paragraphs, and old ones whose file still exists."""
    old, new = paragraphs(folder + "/Packages"), paragraphs(folder + "/Packages.new")
    existing = {name: text for name, text in dict(old, **new).items() if os.path.exists(folder + "/" + name)}
    text = "".join(existing[name] + "\n\n" for name in sorted(existing))
    write_whole(folder + "/Packages", text.encode("utf-8"))
    if new:
        os.remove(folder + "/Packages.new")


def gpg(home: str, *words: str) -> bytes:
    """Run gpg with a directory of its own, which holds only the key created here."""
    command = ["gpg", "--homedir", home, "--batch", "--yes", "--quiet", "--pinentry-mode", "loopback"]
    try:
        process = subprocess.run(
            command + ["--passphrase", ""] + list(words), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    except FileNotFoundError:
        raise SealError(
            "gpg is not installed, and apt accepts only signed packages. Fix: apt-get install gnupg"
        ) from None
    if process.returncode:
        raise SealError("gpg: " + process.stderr.decode("utf-8", "replace").strip())
    return process.stdout


def sign(top: str, folders: List[str]) -> None:
    """Sign the repositories with a key of their own."""
    home = tempfile.mkdtemp(prefix="gpg")  # a short path: gpg creates sockets in it
    try:
        gpg(home, "--quick-generate-key", "scalebook mirror", "rsa3072", "sign", "never")
        listed = gpg(home, "--with-colons", "--list-keys").decode("ascii").splitlines()
        write_whole(top + "/apt/key.gpg", gpg(home, "--export"))
        fingerprint = next(line.split(":")[9] for line in listed if line.startswith("fpr:"))
        write_whole(top + "/apt/fingerprint", fingerprint.encode("ascii"))
        for folder in folders:
            index = folder + "/Packages"
            date = time.strftime("%a, %d %b %Y %H:%M:%S UTC", time.gmtime())
            release = "Origin: scalebook mirror\nSuite: mirror\nDate: %s\nSHA256:\n %s %d Packages\n"
            text = release % (date, sha256_of(index), os.path.getsize(index))
            write_whole(folder + "/Release", text.encode("ascii"))
            gpg(home, "--clearsign", "--output", folder + "/InRelease", folder + "/Release")
    finally:
        shutil.rmtree(home, ignore_errors=True)  # its agent ends when the directory is gone


def seal(top: str) -> Dict[str, Any]:
    """Seal the mirror `top`; return the checksum of its manifest, and number and size of its files."""
    folders = [folder.rstrip("/") for folder in sorted(glob.glob(glob.escape(top) + "/apt/*/"))]
    for folder in folders:
        merge_index(folder)
    if folders:
        sign(top, folders)
    paths = [os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names]
    names = sorted(os.path.relpath(path, top) for path in paths)
    lines = ["%s  %s\n" % (sha256_of(os.path.join(top, name)), name) for name in names if name != MANIFEST]
    text = "".join(lines).encode("utf-8")
    write_whole(os.path.join(top, MANIFEST), text)
    size = sum(os.path.getsize(path) for path in paths)
    return {"sha256": hashlib.sha256(text).hexdigest(), "files": len(lines), "bytes": size}


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    top = module.params["path"]
    if module.check_mode:
        module.exit_json(changed=True)
    try:
        result = seal(top)
    except (OSError, ValueError) as error:
        module.fail_json(msg="cannot seal the mirror %s: %s" % (top, error))
    module.exit_json(changed=True, **result)


if __name__ == "__main__":
    main()
