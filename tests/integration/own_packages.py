# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""apt and dpkg with packages, lists and repositories of their own; what this machine has is left alone."""

APART = """
cd "$1"; shift
mkdir -p etc/apt.conf.d etc/preferences.d etc/sources.list.d etc/trusted.gpg.d
mkdir -p lists/partial cache/archives/partial dpkg/info dpkg/updates log/apt; : >>dpkg/status
mount --bind etc /etc/apt; mount --bind lists /var/lib/apt/lists; mount --bind cache /var/cache/apt
mount --bind dpkg /var/lib/dpkg; mount --bind log /var/log
exec "$@"
"""


def apart(folder, *argv):
    """Return the command that runs `argv` with etc, lists, cache, dpkg and log of `folder`; it needs root."""
    return [str(word) for word in ("unshare", "--mount", "sh", "-euc", APART, "sh", folder, *argv)]
