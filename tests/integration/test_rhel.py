# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The roles that install packages, on a host like Rocky Linux 9: dnf, rpm, and packages that are stand-ins.

A host with Rocky Linux itself was not there.
"""

import json
import os
import re

import fake_bus
import pytest
from container_nodes import Nodes, changes, said
from nets import free_net

NODES = Nodes(free_net("10.11.28", "10.12.28", "10.13.28", "10.14.28"), count=1)
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="containers with networks of their own need root"),
]
NCCL = ("--tags", "nccl_install")
# What a refusal must leave as it was.
STATE = "rpm --query --all | grep -v gpg-pubkey | sort; find /etc/yum.repos.d /etc/pki /etc/dnf -type f"


def ssh(command):
    return NODES.ssh("NODE1", command).stdout


def play(*options, ok=True, **variables):
    return NODES.play("rhel", *options, ok=ok, **variables)


@pytest.fixture(scope="module")
def wrong(request, tmp_path_factory):
    """Play the scenario on a host that was bare, with GPUs of a recording; return what is wrong, or None."""
    request.addfinalizer(NODES.down)
    NODES.up("--rpm", *fake_bus.make(tmp_path_factory.mktemp("sys"), "H100"))
    try:
        NODES.molecule("rhel")
    except AssertionError as error:
        return str(error)
    return None


def test_the_roles_pass_the_scenario_of_the_family(wrong):
    assert wrong is None


def test_an_upgrade_keeps_what_is_locked_though_newer_ones_are_there(wrong):
    held = "cuda-toolkit-10-2-10.2.89-1.x86_64\nlibnccl-2.7.3-1+cuda10.2.x86_64\n"
    ssh("dnf --assumeyes --quiet upgrade")
    assert ssh("rpm --query cuda-toolkit-10-2 libnccl") == held


def test_the_driver_is_of_one_version_of_its_branch_and_stays_so_in_an_upgrade(wrong):
    asked = "nvidia-open nvidia-driver-cuda nvidia-fabricmanager libnvidia-nscq kernel-devel"
    driver = [f"{name}-580.126.09-1.el9.x86_64" for name in asked.split()[:4]]
    assert "nvidia-open-590.48.01" in ssh(
        "dnf --quiet --disableplugin=versionlock repoquery nvidia-open"
    ).replace("3:", "")
    assert ssh(f"dnf --assumeyes --quiet upgrade; rpm --query {asked}").split() == [
        *driver,
        "kernel-devel-5.14.0-427.el9.x86_64",
    ]
    assert "blacklist nouveau" in ssh("cat /etc/modprobe.d/scalebook-nvidia_driver.conf")


def test_nccl_goes_to_another_version_and_back_by_a_variable(wrong):
    for version in ("2.7.8-1+cuda10.2", "2.7.3-1+cuda10.2"):
        play(*NCCL, nccl_version=version)
        assert ssh("rpm --query libnccl libnccl-devel").split() == [
            f"libnccl-{version}.x86_64",
            f"libnccl-devel-{version}.x86_64",
        ]


def test_a_killed_dnf_is_repaired_and_the_scripts_of_its_packages_run(wrong):
    ssh(
        "dnf --assumeyes --quiet install slow >/dev/null 2>&1 & pid=$!; "
        "until [ -e /run/slow ]; do sleep 0.1; done; kill -9 $pid"
    )
    assert ssh("rpm --query slow; cat /run/slow") == "slow-1-1.el9.x86_64\nbegun\n"
    given = {"node_packages": ["slow"]}
    assert changes(play("--tags", "node_install", **given)) == {"NODE1": 1}
    assert ssh("cat /run/slow") == "begun\ndone\n"
    assert changes(play("--tags", "node_install", **given)) == {"NODE1": 0}


def test_a_package_that_no_repository_has_is_named_with_the_fix(wrong):
    done = play("--tags", "node_install", ok=False, node_packages=["no-such-package"])
    assert done.returncode == 2
    assert re.search(
        "NODE1 has not installed no-such-package. dnf says: .*Fix: enable the repository", said(done)
    )


def without_epel():
    ssh("rpm --query --all --queryformat '%{NAME}\\n' | grep -E '^(slurm|pdsh)' | xargs -r rpm --erase")
    ssh("rm -f /etc/yum.repos.d/scalebook-epel.repo /etc/pki/rpm-gpg/RPM-GPG-KEY-scalebook-epel")


def test_epel_is_set_up_for_what_no_repository_has_and_only_with_its_key(wrong):
    without_epel()
    before = ssh(STATE)
    given = {"node_packages": ["pdsh", "rsync"]}
    done = play("--tags", "node_install", ok=False, **given, node_epel_key="file:///srv/rpm/key.asc")
    assert done.returncode == 2 and "expected is exactly" in said(done)
    assert ssh(STATE) == before
    play("--tags", "node_install", **given)
    assert ssh("rpm --query pdsh-rcmd-ssh rsync").split() == [
        "pdsh-rcmd-ssh-2.34-7.el9.x86_64", "rsync-3.2.3-19.el9.x86_64",
    ]  # fmt: skip
    assert "baseurl=file:///srv/rpm/epel" in ssh("cat /etc/yum.repos.d/scalebook-epel.repo")


def test_epel_is_not_set_up_where_a_repository_of_the_site_has_the_packages(wrong):
    without_epel()
    site = "[site]\nname=site\nbaseurl=file:///srv/rpm/epel\ngpgcheck=1\ngpgkey=file:///srv/rpm/other.asc\n"
    ssh(f"printf '{site}' >/etc/yum.repos.d/site.repo")
    play("--tags", "node_install", node_packages=["pdsh"])
    assert ssh("rpm --query pdsh") == "pdsh-2.34-7.el9.x86_64\n"
    assert "scalebook-epel" not in ssh("ls /etc/yum.repos.d")
    ssh("rm /etc/yum.repos.d/site.repo")


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("unsigned", "is not signed .*Fix: take the package from a repository that signs"),
        ("other", "Public key for .* is not installed.*Fix: let gpgkey"),
        ("flipped", "incorrect checksum.*Fix: the package differs"),
    ],
)
def test_a_package_that_is_not_the_one_of_the_key_is_refused(wrong, fault, reason):
    ssh(f"python3 /usr/lib/make-stand-ins /srv/{fault} --fault {fault}")
    given = {
        "cuda_repository_uris": [f"file:///srv/{fault}/nvidia"],
        "cuda_key": f"file:///srv/{fault}/key.asc",
        "cuda_key_fingerprint": json.loads(ssh(f"cat /srv/{fault}/facts.json"))["key"],
    }
    ssh("rpm --erase libnccl libnccl-devel 2>/dev/null; rm -f /etc/yum.repos.d/scalebook-*")
    before = ssh(STATE)
    done = play(*NCCL, ok=False, **given)
    assert done.returncode == 2
    assert re.search(f"NODE1 has not installed libnccl-.*{reason}", said(done))
    assert ssh(STATE) == before


def test_another_key_is_refused(wrong):
    done = play(*NCCL, ok=False, cuda_key="file:///srv/rpm/other.asc")
    assert done.returncode == 2
    assert "expected is exactly" in said(done)
