# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What makes a host look like Rocky Linux 9: dnf and rpm of Debian, and repositories of stand-ins; no apt.

Programs are Debian's.  The packages of the repositories have the names and versions of Rocky 9, EPEL and
NVIDIA, and nothing in them (see tests/rpm/make).
"""

from .base import CHECKOUT

# Also those of Debian whose names the stand-ins have, and what makes the stand-ins.
PACKAGES = (
    "dnf", "dnf-plugins-core", "rpm", "createrepo-c", "gcc", "gnupg", "libc6-dev", "python3-venv",
    "munge", "slurm-client", "slurmctld", "slurmd",
)  # fmt: skip
PLACE = "/srv/rpm"
_REPOSITORY = """\
[baseos]
name=Stand-ins for packages of Rocky Linux 9
baseurl=file:///srv/rpm/rocky
gpgcheck=1
gpgkey=file:///srv/rpm/key.asc
"""
_DNF = """\
[main]
gpgcheck=1
installonly_limit=3
clean_requirements_on_remove=True
best=True
skip_if_unavailable=False
"""
# As its documentation prints it.
_SYSTEM = """\
NAME="Rocky Linux"
VERSION="9.4 (Blue Onyx)"
ID="rocky"
ID_LIKE="rhel centos fedora"
VERSION_ID="9.4"
PLATFORM_ID="platform:el9"
PRETTY_NAME="Rocky Linux 9.4 (Blue Onyx)"
"""
_MAKE = "usr/lib/make-stand-ins"
FILES = {
    # Written to /etc/os-release at the end: apt asks for it.
    "usr/lib/os-release.rocky": _SYSTEM,
    "etc/rpm/macros": "%_dbpath /var/lib/rpm\n",
    "etc/dnf/dnf.conf": _DNF,
    "etc/dnf/vars/releasever": "9\n",
    "etc/yum.repos.d/rocky.repo": _REPOSITORY,
    # Debian's loader does not look there.
    "etc/ld.so.conf.d/lib64.conf": "/usr/lib64\n",
    _MAKE: (CHECKOUT / "tests/rpm/make").read_text(),
    "usr/lib/nvidia-smi.stand-in": (CHECKOUT / "tests/stand_ins/nvidia_driver/nvidia-smi").read_text(),
}
SCRIPT = f"""
for plugin in local leaves show_leaves copr playground; do
  rm -f /usr/lib/python3/dist-packages/dnf-plugins/$plugin.py /etc/dnf/plugins/$plugin.conf
done
python3 /{_MAKE} {PLACE}
cp --remove-destination /usr/lib/os-release.rocky /etc/os-release
mkdir -p /etc/pki/rpm-gpg /usr/lib/debian
for program in apt apt-cache apt-config apt-get apt-key apt-mark dpkg dpkg-deb dpkg-query; do
  mv /usr/bin/$program /usr/lib/debian/
done
"""
