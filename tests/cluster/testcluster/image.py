# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The image of a bare host: Debian as an installer leaves it, with sshd and Python, and no more."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from . import kept
from .base import LABEL, STATE, ClusterError, run, say
from .engine import Engine
from .hostsettings import BUNDLE, SUITE, HostSettings

NAME = "localhost/scalebook-node"
# minbase and what every Debian server has beside it. python3-apt is what Ansible's apt module asks for.
PACKAGES = ("ca-certificates", "iproute2", "openssh-server", "procps", "python3", "python3-apt")
# Made by the node itself at its first start: host keys in an image would be the same on all nodes.
COMMAND = "ssh-keygen -A >/dev/null && mkdir -p /run/sshd && exec /usr/sbin/sshd -D -e"
# Removed from the image: keys, lists and logs that a fresh host would not have.
_RESIDUE = (
    "etc/ssh/ssh_host_*", "etc/machine-id", "var/lib/dbus/machine-id", "var/cache/apt/archives/*.deb",
    "var/cache/apt/*.bin", "var/lib/apt/lists/*", "var/log/*.log", "etc/resolv.conf", "etc/hostname",
)  # fmt: skip


def name(suite: str) -> str:
    """Return the name of the image with this suite of Debian."""
    return NAME if suite == SUITE else f"{NAME}-{suite}"


def known_bundle(suite: str) -> Path:
    """Return where the authorities in the image itself are, to know which of the machine's are new to it."""
    return STATE / ("image-ca.crt" if suite == SUITE else f"image-ca-{suite}.crt")


def ensure(engine: Engine, host: HostSettings) -> None:
    """Build the image unless this recipe's image is there. Two minutes, most of them dpkg's."""
    recipe = hashlib.sha256(repr((host.suite, PACKAGES, COMMAND, _RESIDUE)).encode()).hexdigest()[:16]
    own, known = name(host.suite), known_bundle(host.suite)
    image = engine.inspect("image", own) or {}
    labels = image.get("Config", {}).get("Labels") or {}
    if labels.get(LABEL) == recipe and known.exists():
        return
    archive = kept.archive(own, recipe)
    bundle = archive and archive.with_suffix(".crt")
    if bundle and bundle.exists() and kept.load(engine, own, recipe):
        shutil.copyfile(bundle, known)
        return
    build = STATE / "build"
    discard(build)
    build.mkdir(parents=True)
    try:
        _bootstrap(build, host)
        shutil.copyfile(f"{build}{BUNDLE}", known)
        _import(engine, build, own, recipe)
        kept.save(engine, own, recipe)
        if bundle:
            shutil.copyfile(known, bundle)
    finally:
        discard(build)
    if engine.name == "podman":  # a Docker engine's unused images are not ours to remove
        engine("image", "prune", "-f", check=False)


def _bootstrap(root: Path, host: HostSettings) -> None:
    say(f"building the image: debootstrap {host.suite} (once; about two minutes)")
    cache = STATE / "debs"
    cache.mkdir(exist_ok=True)
    log = STATE / "debootstrap.log"
    mirror = [host.mirror] if host.mirror else []
    argv = ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", f"--cache-dir={cache}"]
    # Without forced keyring debootstrap on other distributions goes on without checking signatures.
    argv += ["--force-check-gpg", "--keyring=/usr/share/keyrings/debian-archive-keyring.gpg"]
    argv += [host.suite, str(root), *mirror]
    done = run(argv, check=False, timeout=900, env={"DEBIAN_FRONTEND": "noninteractive"})
    log.write_text(done.stdout + done.stderr)
    if done.returncode != 0:
        # debootstrap's own log has the reason when a package's script failed.
        inner = root / "debootstrap" / "debootstrap.log"
        lines = (inner if inner.exists() else log).read_text(errors="replace").strip().splitlines()[-5:]
        raise ClusterError(
            "debootstrap failed (is the mirror of /etc/apt reachable? see "
            f"{log.relative_to(STATE.parent.parent)}):\n  " + "\n  ".join(lines)
        )
    for pattern in _RESIDUE:
        for path in root.glob(pattern):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


def _import(engine: Engine, root: Path, own: str, recipe: str) -> None:
    say("importing the image")
    changes = [f'CMD ["/bin/sh", "-c", "{COMMAND}"]', f"LABEL {LABEL}={recipe}"]
    argv = ["import", *[part for change in changes for part in ("--change", change)], "-", f"{own}:latest"]
    pack = ["tar", "-C", str(root), "--numeric-owner", "-c", "."]
    with subprocess.Popen(pack, stdout=subprocess.PIPE) as tar:
        loading = engine.popen(*argv, stdin=tar.stdout, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        tar.stdout.close()
        output = loading.communicate(timeout=300)[0].decode(errors="replace")
    if tar.returncode != 0 or loading.returncode != 0:
        raise ClusterError(f"the image could not be imported:\n  {output.strip()[-500:]}")


def mounts_below(folder: Path) -> list:
    """Return the mount points below a folder, innermost first."""
    with Path("/proc/self/mounts").open() as table:
        points = [line.split()[1].encode().decode("unicode_escape") for line in table]
    return sorted((point for point in points if point.startswith(f"{folder}/")), reverse=True)


def discard(folder: Path) -> None:
    """Remove a folder with all that is mounted below it (an interrupted debootstrap leaves /proc)."""
    for point in mounts_below(folder):
        run(["umount", "-l", point], check=False)
    if mounts_below(folder):
        raise ClusterError(f"{folder} has mounts that cannot be undone: {' '.join(mounts_below(folder))}")
    if os.path.lexists(folder):
        shutil.rmtree(folder)
