# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Print the index (`Packages`) of the .deb files in a directory, as apt wants it of a flat repository.

    python3 index_debs.py DIR > DIR/Packages

Needs dpkg-deb, which every Debian and Ubuntu has; dpkg-scanpackages, a developer's tool, is not needed.
Standard library only, Python 3.6 or newer.
"""

import glob
import hashlib
import os
import subprocess
import sys


def stanza(path):
    """Return what the index says of one package."""
    fields = subprocess.run(
        ["dpkg-deb", "--field", path], stdout=subprocess.PIPE, check=True, universal_newlines=True
    ).stdout
    with open(path, "rb") as stream:
        data = stream.read()
    return "%s\nFilename: ./%s\nSize: %d\nSHA256: %s\n" % (
        fields.strip("\n"),
        os.path.basename(path),
        len(data),
        hashlib.sha256(data).hexdigest(),
    )


def main():
    """Index the directory of the first argument."""
    print("\n".join(stanza(path) for path in sorted(glob.glob(os.path.join(sys.argv[1], "*.deb")))))


if __name__ == "__main__":
    main()
