# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Hold the files of a directory against the manifest that is given on standard input.

    python3 check_files.py DIR < sha256sums      prints {"missing": [...], "changed": [...], "other": [...]}

The manifest has the form of sha256sum(1): 64 digits, two spaces, a path below DIR. `other` are files that it
does not name. Exit status 1 and a sentence where it is no manifest. Standard library, Python 3.6 or newer.
"""

import hashlib
import json
import os
import re
import sys

NAME = "sha256sums"
LINE = re.compile(r"([0-9a-f]{64})  ([\w.+~%=:@-]+(?:/[\w.+~%=:@-]+)*)\Z", re.ASCII)


def read(text):
    """Return {path: sha256} of a manifest; raise ValueError for a line that is none of it."""
    wanted = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = LINE.match(line)
        if not match or ".." in match.group(2).split("/"):
            raise ValueError("line %d of the manifest is none: %r" % (number, line[:200]))
        wanted[match.group(2)] = match.group(1)
    if not wanted:
        raise ValueError("the manifest is empty")
    return wanted


def sha256(path):
    """Return the hex digest of a file, or an empty text where it cannot be read."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as stream:
            for block in iter(lambda: stream.read(1 << 20), b""):
                digest.update(block)
    except OSError:
        return ""
    return digest.hexdigest()


def listed(top):
    """Return the paths of all files below a directory, relative to it."""
    return [
        os.path.relpath(os.path.join(folder, name), top)
        for folder, _, names in os.walk(top)
        for name in names
    ]


def check(top, text):
    """Return {"missing", "changed", "other"}: sorted paths below `top` that are not as `text` wants them."""
    wanted = read(text)
    missing = [path for path in wanted if not os.path.isfile(os.path.join(top, path))]
    changed = [p for p in wanted if p not in missing and sha256(os.path.join(top, p)) != wanted[p]]
    other = [path for path in listed(top) if path not in wanted and path != NAME]
    return {"missing": sorted(missing), "changed": sorted(changed), "other": sorted(other)}


def main():
    """Check the directory of the first argument."""
    try:
        print(json.dumps(check(sys.argv[1], sys.stdin.read())))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
