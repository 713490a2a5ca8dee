# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's driver on two hosts with apt: installed at once, loaded by a reboot of one host after the other.

The packages are stand-ins with NVIDIA's names and versions, the GPUs are those of a recording of lspci, and
`shutdown` of the hosts loads the module that is installed, as a boot does.
"""

import json
import os
import re

import fake_bus
import pytest
from container_nodes import ROOT, Nodes, changes, said
from nets import free_net

NODES = Nodes(free_net("10.11.29", "10.12.29", "10.13.29", "10.14.29"), count=2)
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="containers with networks of their own need root"),
]
ssh = NODES.ssh
TAGS = ("--tags", "nvidia_driver_install,nvidia_driver_verify")
KERNEL = "6.8.0-64-generic"
# A boot: another id of it, and the module of the installed driver.
SHUTDOWN = """#!/bin/sh
date +%s.%N >/run/boot
hostname >>/sys/module/reboots
mkdir -p /sys/module/nvidia
sed -n 's/.* of driver \\(.*\\): .*/\\1/p' /usr/bin/nvidia-smi >/sys/module/nvidia/version
"""
CAT = """#!/bin/sh
if [ "$*" = /proc/sys/kernel/random/boot_id ] && [ -e /run/boot ]; then set -- /run/boot; fi
exec /bin/cat "$@"
"""
UNAME = f"""#!/bin/sh
if [ "$*" = -r ]; then echo {KERNEL}; else exec /bin/uname "$@"; fi
"""
PROGRAMS = {"/sbin/shutdown": SHUTDOWN, "/usr/local/bin/cat": CAT, "/usr/local/bin/uname": UNAME}
# As NVIDIA's package cuda-keyring describes the repository.
KEYRING = "deb [signed-by=/usr/share/keyrings/cuda-archive-keyring.asc] file:///srv/nvidia/repository ./\n"


def provision(*options, ok=True, **variables):
    """Run provision.yml for the driver alone."""
    given = {"provision_driver": True, **variables}
    inventory = NODES.files / "inventory"
    return NODES.run(
        "ansible-playbook", "-i", inventory, "provision.yml", *TAGS, *options, "-e", json.dumps(given), ok=ok
    )


def packages(node):
    """Return what a node has of the driver, {name: [version, what apt is to do with it]}."""
    form = "${Package} ${Version} ${db:Status-Want}\\n"
    done = ssh(node, f"dpkg-query -W -f '{form}' '*nvidia*' 'linux-headers-*'", ok=False)
    return {name: rest for name, *rest in map(str.split, done.stdout.splitlines()) if len(rest) == 2}


@pytest.fixture(scope="module", autouse=True)
def hosts(request, tmp_path_factory):
    """Start two hosts with a GPU and NVSwitches on the bus, and what the package cuda-keyring writes."""
    request.addfinalizer(NODES.down)
    NODES.up(*fake_bus.make(tmp_path_factory.mktemp("sys"), "H100"))
    inventory = NODES.files / "inventory"
    NODES.run("ansible-playbook", "-i", inventory, ROOT / "molecule/nccl/prepare.yml")
    made = ROOT / ".scalebook/test-apt"
    variables = {
        "nvidia_driver_repository_uris": ["file:///srv/nvidia/repository"],
        "nvidia_driver_repository_suite": "./",
        "nvidia_driver_key": str(made / "key.asc"),
        "nvidia_driver_key_fingerprint": json.loads((made / "facts.json").read_text())["key"],
    }
    (inventory / "group_vars").mkdir(exist_ok=True)
    (inventory / "group_vars/nodes.json").write_text(json.dumps(variables))
    key = (made / "key.asc").read_text()
    for node in ("NODE1", "NODE2"):
        files = {
            **PROGRAMS,
            "/usr/share/keyrings/cuda-archive-keyring.asc": key,
            "/etc/apt/sources.list.d/cuda-debian12-x86_64.list": KEYRING,
        }
        for path, text in files.items():
            mode = "755" if path in PROGRAMS else "644"
            ssh(node, f"cat >{path} && chmod {mode} {path}", stdin=text)


@pytest.fixture(scope="module")
def checked(hosts):
    before = NODES.state("NODE1")
    return provision("--check"), NODES.state("NODE1") ^ before


@pytest.fixture(scope="module")
def installed(checked):
    return provision(driver_reboot=True)


def test_a_check_says_what_would_be_installed_and_changes_nothing(checked):
    done, changed = checked
    assert "apt would install nvidia-open nvidia-fabricmanager-580 libnvidia-nscq-580 of branch 580" in said(
        done
    )
    assert changed == set()


def test_all_packages_are_of_one_version_of_the_branch_and_held(installed):
    driver = packages("NODE2")
    assert driver.pop(f"linux-headers-{KERNEL}")
    assert {name: rest[1] for name, rest in driver.items()} == dict.fromkeys(
        ["nvidia-open", "libnvidia-compute-580", "nvidia-fabricmanager-580", "libnvidia-nscq-580"], "hold"
    )
    assert {rest[0].split("-")[0] for rest in driver.values()} == {"580.126.09"}


def test_nouveau_is_denied(installed):
    assert "blacklist nouveau" in ssh("NODE1", "cat /etc/modprobe.d/scalebook-nvidia_driver.conf").stdout


def test_beside_cuda_keyring_apt_goes_on(installed):
    """With both descriptions every command of apt ends with "Conflicting values set for option Signed-By"."""
    assert ssh("NODE1", "apt-get update").stderr == ""
    assert "NODE1 described NVIDIA's repository, too: disabled there" in said(installed)


def test_an_upgrade_leaves_the_branch_though_a_newer_one_is_there(installed):
    assert "590.48.01" in ssh("NODE1", "apt-cache madison nvidia-open").stdout
    assert not re.search("Inst .*nvidia", ssh("NODE1", "apt-get --simulate dist-upgrade").stdout)


def test_hosts_reboot_one_after_another_and_run_the_driver(installed):
    for node in ("NODE1", "NODE2"):
        assert ssh(node, "cat /sys/module/reboots").stdout == f"{node}\n"
        assert ssh(node, "nvidia-smi --query-gpu=driver_version").stdout == "580.126.09\n"
    first, second = (float(ssh(node, "cat /run/boot").stdout) for node in ("NODE1", "NODE2"))
    assert first < second


def test_again_nothing_changes_and_no_host_reboots(installed):
    assert changes(provision(driver_reboot=True)) == {"NODE1": 0, "NODE2": 0}
    assert ssh("NODE1", "cat /sys/module/reboots").stdout == "NODE1\n"


def test_an_older_version_replaces_all_packages_and_without_permission_a_reboot_is_asked_for(installed):
    done = provision(ok=False, nvidia_driver_version="580.95.05")
    driver = packages("NODE1")
    driver.pop(f"linux-headers-{KERNEL}")
    assert {rest[0].split("-")[0] for rest in driver.values()} == {"580.95.05"}, said(done)
    assert "its kernel still has the module of 580.126.09. Fix: reboot it" in said(done)
    assert "install one" not in said(done)
    assert ssh("NODE1", "cat /sys/module/reboots").stdout == "NODE1\n"
