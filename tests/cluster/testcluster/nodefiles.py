# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The files a node has beyond its image: what an administrator gives to a bare host."""

import io
import tarfile
import time

from .base import CHECKOUT
from .hostsettings import BUNDLE, PYTHON, HostSettings

_COMPILED = CHECKOUT / "tests/helpers/compiled_modules.py"


def contents(host: HostSettings, public_key: str, known_bundle: str) -> dict:
    """Return {path below /: text}: the way in, and the machine's own ways to package registries.

    public_key: who may log in as root. known_bundle: the CA bundle of the image.
    """
    # Where the Python of the image looks for packages that are not Debian's.
    packages = f"usr/local/lib/python{PYTHON[host.suite]}/dist-packages"
    files = {
        "root/.ssh/authorized_keys": public_key,
        "etc/environment": "".join(f'{key}="{value}"\n' for key, value in host.env.items()),
        "etc/apt/apt.conf.d/90host": "".join(f"{line}\n" for line in host.apt_settings),
        # Not an administrator's: it makes the modules of Ansible a third faster.
        f"{packages}/{_COMPILED.name}": _COMPILED.read_text(),
        f"{packages}/{_COMPILED.stem}.pth": f"import {_COMPILED.stem}; {_COMPILED.stem}.keep()\n",
    }
    if host.apt_sources:
        files["etc/apt/sources.list"] = "".join(f"{line}\n" for line in host.apt_sources)
    if host.pip:
        lines = ("{} = {}\n".format(key, value.replace("\n", "\n  ")) for key, value in host.pip.items())
        files["etc/pip.conf"] = "[global]\n" + "".join(lines)
    extra = host.extra_certificates(known_bundle)
    if extra:
        # Both places: the bundle at once, and the folder from which update-ca-certificates, which any
        # later package may run, makes the bundle again. (It would fail if the bundle were a mount.)
        files[BUNDLE.lstrip("/")] = known_bundle + "".join(extra.values())
        files.update({f"usr/local/share/ca-certificates/{name}": pem for name, pem in extra.items()})
    return files


def pack(files: dict) -> bytes:
    """Return a tar of the files, owned by root; those in its home are for it alone."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        folder = tarfile.TarInfo("root/.ssh")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o700
        tar.addfile(folder)
        for path, text in files.items():
            data = text.encode()
            entry = tarfile.TarInfo(path)
            entry.size, entry.mtime = len(data), int(time.time())
            entry.mode = 0o600 if path.startswith("root/") else 0o644
            tar.addfile(entry, io.BytesIO(data))
        end = tar.offset
    # Without tarfile's padding: Podman's reader leaves at the end mark, and `podman cp` then fails
    # now and then with "broken pipe" on what follows.
    return buffer.getvalue()[: end + 2 * tarfile.BLOCKSIZE]
