# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Make a directory of gathered files a mirror: sign its apt repositories, write its manifest.

    python3 seal.py DIR      prints {"sha256": of the manifest, "files": number, "bytes": number}

DIR/apt/<system>/ are flat repositories; an index that was just gathered (Packages.new) is joined with that of
an earlier gathering. The key that signs them is made here and forgotten: apt asks for a signature, and the
manifest vouches for the key as for every other file. Runs on the controller; packages need gpg there.
"""

import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

MANIFEST = "sha256sums"


class SealError(Exception):
    """The mirror cannot be made; the message says why, and the cure."""


def write(path, data):
    """Write a file whole or not at all."""
    with open(path + ".part", "wb") as stream:
        stream.write(data)
    os.replace(path + ".part", path)


def sha256(path):
    """Return the hex digest of a file."""
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def stanzas(path):
    """Return {file name: paragraph} of an index; empty where there is none."""
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as stream:
        paragraphs = [part.strip("\n") for part in stream.read().split("\n\n") if part.strip()]
    return {part.split("\nFilename: ./")[1].split("\n")[0]: part for part in paragraphs}


def join_index(folder):
    """Write the index of a repository: what was gathered last, and before if the file is still there."""
    old, new = stanzas(folder + "/Packages"), stanzas(folder + "/Packages.new")
    kept = {name: text for name, text in dict(old, **new).items() if os.path.exists(folder + "/" + name)}
    text = "".join(kept[name] + "\n\n" for name in sorted(kept))
    write(folder + "/Packages", text.encode("utf-8"))
    if new:
        os.remove(folder + "/Packages.new")


def gpg(home, *words):
    """Run a gpg that knows nothing but the key made here."""
    command = ["gpg", "--homedir", home, "--batch", "--yes", "--quiet", "--pinentry-mode", "loopback"]
    try:
        done = subprocess.run(
            command + ["--passphrase", ""] + list(words), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    except FileNotFoundError:
        raise SealError(
            "gpg is not there, and apt takes no unsigned packages: apt-get install gnupg"
        ) from None
    if done.returncode:
        raise SealError("gpg: " + done.stderr.decode("utf-8", "replace").strip())
    return done.stdout


def sign(top, folders):
    """Sign the repositories with a key of their own."""
    home = tempfile.mkdtemp(prefix="gpg")  # a short path: gpg makes sockets in it
    try:
        gpg(home, "--quick-generate-key", "scalebook mirror", "rsa3072", "sign", "never")
        listed = gpg(home, "--with-colons", "--list-keys").decode("ascii").splitlines()
        write(top + "/apt/key.gpg", gpg(home, "--export"))
        fingerprint = next(line.split(":")[9] for line in listed if line.startswith("fpr:"))
        write(top + "/apt/fingerprint", fingerprint.encode("ascii"))
        for folder in folders:
            index = folder + "/Packages"
            date = time.strftime("%a, %d %b %Y %H:%M:%S UTC", time.gmtime())
            release = "Origin: scalebook mirror\nSuite: mirror\nDate: %s\nSHA256:\n %s %d Packages\n"
            text = release % (date, sha256(index), os.path.getsize(index))
            write(folder + "/Release", text.encode("ascii"))
            gpg(home, "--clearsign", "--output", folder + "/InRelease", folder + "/Release")
    finally:
        shutil.rmtree(home, ignore_errors=True)  # its agent ends when it is gone


def seal(top):
    """Make `top` a mirror; return what is told of it."""
    folders = sorted(glob.glob(glob.escape(top) + "/apt/*/"))
    folders = [folder.rstrip("/") for folder in folders]
    for folder in folders:
        join_index(folder)
    if folders:
        sign(top, folders)
    paths = [os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names]
    names = sorted(os.path.relpath(path, top) for path in paths)
    lines = ["%s  %s\n" % (sha256(os.path.join(top, name)), name) for name in names if name != MANIFEST]
    text = "".join(lines).encode("utf-8")
    write(os.path.join(top, MANIFEST), text)
    size = sum(os.path.getsize(path) for path in paths)
    return {"sha256": hashlib.sha256(text).hexdigest(), "files": len(lines), "bytes": size}


def main():
    """Seal the directory of the first argument."""
    try:
        print(json.dumps(seal(sys.argv[1])))
    except (SealError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
