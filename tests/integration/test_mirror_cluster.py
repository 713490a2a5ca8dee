# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Two hosts are provisioned from a directory of gathered files, without internet."""

import json
import os
import shutil
from pathlib import Path

import pytest
from container_nodes import ROOT, Nodes, changes, said
from nets import free_net

NODES = Nodes(
    free_net("10.11.23", "10.12.23", "10.13.23", "10.14.23"),
    count=2,
    ANSIBLE_CONFIG=str(ROOT / "ansible.cfg"),
    ANSIBLE_ROLES_PATH=f"{ROOT}/roles:{ROOT}/tests/roles",
)
NAMES = ["NODE1", "NODE2"]
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="containers with networks of their own need root"),
]


def play(playbook, mirror, *options, ok=True, **variables):
    extra = {"workload": "scripted", "provision_cuda": True, "cuda_driver": "none", **variables}
    argv = ["-i", NODES.files / "inventory", playbook, "-e", json.dumps({**extra, "mirror": str(mirror)})]
    return NODES.run("ansible-playbook", *argv, *options, ok=ok)


def cut_off(node):
    """Let a node reach only the other nodes and this machine; forget what it knew of other networks."""
    drop = ["iptables", "-A", "OUTPUT", "!", "-o", "lo", "!", "-d", f"{NODES.net}.0/24", "-j", "DROP"]
    NODES.run("nsenter", "-t", NODES.pid(node), "-n", *drop)
    # Indexes that lie in a folder of the machine are the outside too.
    NODES.ssh(
        node, "rm -rf /srv/nvidia /etc/pip.conf; sed -i /^PIP_/d /etc/environment; : >/etc/apt/sources.list"
    )


@pytest.fixture(scope="module")
def mirror(tmp_path_factory):
    """Gather a mirror with NODE1, with NVIDIA's repository stood in for, then cut both nodes off."""
    folder = tmp_path_factory.mktemp("mirror")
    NODES.up()
    try:
        NODES.run(ROOT / "tests/apt/make", folder / "apt")
        NODES.run(
            "scp", "-F", NODES.files / "ssh_config", "-qr", folder / "apt/repository", "NODE1:/srv/nvidia"
        )
        # Without it no environment can be made there, so gathering would install it.
        NODES.ssh("NODE1", "apt-get -q update && apt-get -q install -y --no-install-recommends python3-venv")
        before = NODES.state("NODE1")
        (folder / "mirror.tar").write_text("the user's own")
        play(
            "playbooks/mirror.yml",
            folder / "mirror",
            cuda_repository_uris=["file:///srv/nvidia"],
            cuda_repository_suite="./",
            cuda_key=str(folder / "apt/key.asc"),
            cuda_key_fingerprint=json.loads((folder / "apt/facts.json").read_text())["key"],
        )
        assert NODES.state("NODE1") ^ before == set(), "gathering changed the host"
        for node in NAMES:
            cut_off(node)
        yield folder / "mirror"
    finally:
        NODES.down()


TAMPERED = ("apt/*/libnccl2_*.deb", "apt/*/InRelease")


@pytest.fixture(scope="module")
def refusals(mirror, tmp_path_factory):
    """Provision the bare hosts from mirrors with one changed byte.

    {pattern: (its file, the finished play, how NODE2 differs after it)}
    """
    made = {}
    for pattern in TAMPERED:
        tampered = Path(shutil.copytree(mirror, tmp_path_factory.mktemp("tampered") / "mirror"))
        (file,) = tampered.glob(pattern)
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
        before = NODES.state("NODE2")
        done = play("provision.yml", tampered, ok=False)
        made[pattern] = (file.relative_to(tampered), done, NODES.state("NODE2") ^ before)
    return made


@pytest.fixture(scope="module")
def checked(mirror, refusals):
    """Check provisioning on hosts that are still bare."""
    return play("provision.yml", mirror, "--check", "--diff", ok=False)


@pytest.fixture(scope="module")
def provisioned(mirror, checked):
    return play("provision.yml", mirror)


@pytest.mark.parametrize("pattern", TAMPERED)
def test_one_changed_byte_is_refused_before_any_host_changes(refusals, pattern):
    file, done, difference = refusals[pattern]
    assert done.returncode == 2
    assert f"no host was changed. changed: {file}." in said(done)
    assert difference == set()


def test_a_check_on_bare_hosts_does_not_fail(checked):
    assert checked.returncode == 0, said(checked)[-4000:]


def test_hosts_are_provisioned_with_the_outside_cut_off(provisioned):
    done = provisioned
    assert all(count > 0 for count in changes(done).values())
    query = "dpkg-query -W -f '${Package}=${Version} ${db:Status-Want}\\n' libcudnn7 libnccl2"
    for node in NAMES:
        held = NODES.ssh(node, query).stdout.splitlines()
        assert held == ["libcudnn7=7.6.5.32-1+cuda10.2 hold", "libnccl2=2.7.3-1+cuda10.2 hold"]


def test_copying_to_the_hosts_leaves_the_users_own_files(provisioned, mirror):
    assert {path.name for path in mirror.parent.iterdir()} == {"apt", "mirror", "mirror.tar"}
    assert mirror.with_suffix(".tar").read_text() == "the user's own"


def test_a_second_run_brings_again_what_a_host_lost_and_changes_nothing_else(provisioned, mirror):
    NODES.ssh("NODE2", "echo broken >/opt/scalebook/mirror/apt/fingerprint")
    assert changes(play("provision.yml", mirror)) == {"NODE1": 0, "NODE2": 1}


def test_a_run_that_finds_nothing_changed_passes_over_the_roles_and_proves_the_stack(provisioned, mirror):
    done = play("provision.yml", mirror, "-v")
    assert changes(done) == {"NODE1": 0, "NODE2": 0}
    assert "TASK [node :" not in done.stdout
    assert "Software stack of NODE1, NODE2" in said(done), done.stdout[-3000:]
