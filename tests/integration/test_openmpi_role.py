# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Role openmpi on container nodes: its scenario, a built release, whom mpirun cannot reach, ports of ssh."""

import contextlib
import hashlib
import json
import os
import tarfile
import time

import pytest
from container_nodes import Nodes, changes, said
from nets import free_net

NODES = Nodes(free_net("10.11.14", "10.12.14", "10.13.14", "10.14.14"), count=3)

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="containers with networks of their own need root"),
]


@pytest.fixture(scope="module", autouse=True)
def scenario():
    """Run the role's scenario on bare nodes; what is wrong, or None. The other tests need what it leaves."""
    NODES.up()
    wrong = None
    try:
        NODES.molecule("openmpi")
    except AssertionError as error:
        wrong = str(error)
    yield wrong
    NODES.down()


def verify(**variables):
    """Run the verification alone; return its output."""
    done = NODES.play("openmpi", "--tags", "openmpi_verify", ok=False, **variables)
    assert done.returncode == 2, done.stdout[-2000:]
    return said(done)


@contextlib.contextmanager
def mpirun_says(node, version):
    """Let the mpirun of a node call itself another version."""
    NODES.ssh(node, "mv /usr/bin/mpirun /usr/bin/mpirun.moved")
    script = f'#!/bin/sh\\n[ "$1" != --version ] || {{ echo "mpirun (Open MPI) {version}"; exit; }}\\n'
    NODES.ssh(
        node,
        f"printf '{script}exec /usr/bin/mpirun.moved \"$@\"\\n' >/usr/bin/mpirun; chmod 755 /usr/bin/mpirun",
    )
    try:
        yield
    finally:
        NODES.ssh(node, "mv /usr/bin/mpirun.moved /usr/bin/mpirun")


# -- the distribution's --------------------------------------------------------------------------------------


def test_the_role_passes_its_scenario_on_bare_nodes(scenario):
    assert scenario is None


def test_a_node_that_lets_nobody_in_is_named_with_the_fix():
    NODES.ssh("NODE3", "sed -i.aside '/scalebook NODE1$/s/^/#/' ~/.ssh/authorized_keys")
    try:
        heard = verify()
    finally:
        NODES.ssh("NODE3", "mv ~/.ssh/authorized_keys.aside ~/.ssh/authorized_keys")
    assert f"mpirun on NODE1 cannot start a process on NODE3 ({NODES.net}.4): " in heard, heard
    assert "Permission denied" in heard, heard
    assert "Fix: run ansible-playbook provision.yml --tags node_configure" in heard, heard
    assert "process on NODE2" not in heard, heard


def test_a_node_with_another_host_key_is_named_with_the_fix():
    known = "~/.ssh/known_hosts_scalebook"
    NODES.ssh("NODE1", f"sed -i.aside '/^NODE2/d' {known}")
    try:
        heard = verify()
    finally:
        NODES.ssh("NODE1", f"mv {known}.aside {known}")
    assert f"cannot start a process on NODE2 ({NODES.net}.3): " in heard, heard
    assert "Host key verification failed" in heard, heard
    assert "Fix: run ansible-playbook provision.yml --tags node_configure" in heard, heard


@contextlib.contextmanager
def firewall(node, *rule):
    """Drop in silence what the iptables rule matches on a node."""
    inside = ["nsenter", "-t", str(NODES.pid(node)), "-n", "iptables"]
    NODES.run(*inside, "-A", *rule, "-j", "DROP")
    try:
        yield
    finally:
        NODES.run(*inside, "-D", *rule, "-j", "DROP")


def test_a_node_behind_a_firewall_is_named_with_the_fix():
    with firewall("NODE2", "INPUT", "-s", f"{NODES.net}.2"):
        heard = verify()
    assert f"cannot start a process on NODE2 ({NODES.net}.3): " in heard, heard
    assert "Connection timed out" in heard, heard
    assert "make sure that sshd runs there" in heard, heard


def test_a_node_that_cannot_call_back_is_named_in_bounded_time():
    with firewall("NODE2", "OUTPUT", "-p", "tcp", "--syn", "-d", f"{NODES.net}.2"):
        started = time.monotonic()
        heard = verify(openmpi_start_seconds=8)
        seconds = time.monotonic() - started
    assert f"cannot start a process on NODE2 ({NODES.net}.3): no answer in time" in heard, heard
    assert "allow TCP between the nodes" in heard, heard
    assert seconds < 60


def test_different_versions_are_named_with_their_hosts():
    with mpirun_says("NODE2", "4.0.0"):
        heard = verify()
    assert "NODE1 has 4.1.4, NODE2 has 4.0.0, NODE3 has 4.1.4" in heard, heard


def test_the_version_that_hangs_is_refused_wherever_it_comes_from():
    with mpirun_says("NODE1", "3.1.3"):
        heard = verify(openmpi_source="system")
    assert "Open MPI 3.1.3, which is refused: it hangs at the first broadcast" in heard, heard
    assert "it hangs at the first broadcast" in verify(openmpi_source="build", openmpi_version="3.1.3")
    assert "openmpi_version=5.0.7 is refused" in verify(openmpi_source="build", openmpi_version="5.0.7")


def test_another_version_than_the_one_asked_for_is_refused():
    assert "is Open MPI 4.1.4, expected is openmpi_version=4.1.6" in verify(openmpi_version="4.1.6")


def test_an_interface_that_is_not_there_is_refused():
    done = NODES.play("openmpi", "--tags", "openmpi_configure", ok=False, openmpi_subnet="192.0.2.0/24")
    assert done.returncode == 2
    assert "NODE2 has no interface with an address in 192.0.2.0/24" in said(done)


# -- a release that is built ---------------------------------------------------------------------------------

# What a release's configure and make do, without the compiler's work.
RELEASE = {
    "configure": """\
#!/bin/sh
for word; do case $word in --prefix=*) prefix=${word#*=} ;; esac; done
echo "$@" >options
sed "s,@prefix@,$prefix," Makefile.in >Makefile
""",
    "Makefile.in": """\
all:
\tcp mpirun.in mpirun
install:
\tmkdir -p @prefix@/bin
\tcp options @prefix@/
\tinstall -m 755 mpirun @prefix@/bin/
""",
    "mpirun.in": """\
#!/bin/sh
[ "$1" != --version ] || { echo "mpirun (Open MPI) 4.0.0"; exit; }
uname -n; uname -n
""",
}
PREFIX = "/opt/scalebook/openmpi-4.0.0"


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    """Return a function that gives the role's variables for a stand-in of release 4.0.0."""
    folder = tmp_path_factory.mktemp("release")
    (folder / "openmpi-4.0.0").mkdir()
    for name, text in RELEASE.items():
        (folder / "openmpi-4.0.0" / name).write_text(text)
    (folder / "openmpi-4.0.0/configure").chmod(0o755)
    tarball = folder / "openmpi-4.0.0.tar.bz2"
    with tarfile.open(tarball, "w:bz2") as tar:
        tar.add(folder / "openmpi-4.0.0", "openmpi-4.0.0")
    # Compilers take a minute to install, and have nothing to do here.
    NODES.ssh("NODE1", "for tool in g++ gcc perl; do ln -sf /bin/true /usr/local/bin/$tool; done")
    return {
        "openmpi_source": "build",
        "openmpi_version": "4.0.0",
        "openmpi_tarball": str(tarball),
        "openmpi_tarball_sha256": hashlib.sha256(tarball.read_bytes()).hexdigest(),
    }


def test_another_tarball_than_the_known_one_is_refused(release):
    unknown = {key: value for key, value in release.items() if key != "openmpi_tarball_sha256"}
    done = NODES.play("openmpi", ok=False, node="NODE1", **unknown)
    assert done.returncode == 2
    assert "expected is 2f0b8a36cfeb7354b45dda3c5425ef8393c9b04115570b615213faaa3f97366b" in said(done)
    assert NODES.ssh("NODE1", f"ls {PREFIX}", ok=False).returncode == 2


def test_a_release_is_built_once_into_a_prefix_of_its_own(release):
    done = NODES.play("openmpi", node="NODE1", **release)
    assert changes(done)["NODE1"] > 0
    options = NODES.ssh("NODE1", f"cat {PREFIX}/options").stdout.split()
    assert options == [f"--prefix={PREFIX}", "--enable-orterun-prefix-by-default"]
    assert changes(NODES.play("openmpi", node="NODE1", **release)) == {"NODE1": 0}


def test_an_interrupted_build_is_made_anew(release):
    NODES.ssh("NODE1", f"rm {PREFIX}/scalebook.built; touch {PREFIX}/bin/left-over")
    assert changes(NODES.play("openmpi", node="NODE1", **release))["NODE1"] > 0
    assert NODES.ssh("NODE1", f"ls {PREFIX}/bin").stdout.split() == ["mpirun"]


def test_a_prefix_with_another_installation_is_left_alone(release):
    NODES.ssh("NODE1", "mkdir -p /opt/theirs/bin && touch /opt/theirs/bin/mpirun")
    done = NODES.play("openmpi", ok=False, node="NODE1", **release, openmpi_prefix="/opt/theirs")
    assert "openmpi_prefix=/opt/theirs on NODE1 is not an installation of scalebook" in said(done)
    assert NODES.ssh("NODE1", "find /opt/theirs").stdout.split()[-1] == "/opt/theirs/bin/mpirun"


def test_a_release_without_a_checksum_is_refused(release):
    unknown = {**release, "openmpi_version": "4.0.7", "openmpi_tarball_sha256": ""}
    done = NODES.play("openmpi", ok=False, node="NODE1", **unknown)
    assert done.returncode == 2
    assert "known are the checksums of 3.1.2, 4.0.0" in said(done)


# -- ports of ssh, and a jump host: last, as sshd listens elsewhere from then on -----------------------------


class Site:
    """The nodes as a site has them.

    gpu_01 and gpu_03 are behind one address with a port each: NODE3 forwards port 2201 to NODE1, whose sshd
    listens at 2222. gpu_02 is NODE2, whose sshd listens at 12345, and is reached through the sshd of NODE3.
    """

    def __init__(self, folder):
        self.addresses = [f"{NODES.net}.{number}" for number in (2, 3, 4)]
        self.config, self.inventory, self.playbook = (
            folder / name for name in ("ssh_config", "hosts.json", "play.json")
        )
        first, second, third = self.addresses
        for node, port in (("NODE1", 2222), ("NODE2", 12345)):
            listen = f"echo Port {port} >/etc/ssh/sshd_config.d/port.conf; kill -HUP $(cat /run/sshd.pid)"
            NODES.ssh(node, listen)
        forward = ["iptables", "-t", "nat", "-A"]
        self.inside("NODE3", "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
        to_first = ["-j", "DNAT", "--to-destination", f"{first}:2222"]
        self.inside("NODE3", *forward, "PREROUTING", "-p", "tcp", "--dport", "2201", *to_first)
        self.inside("NODE3", *forward, "POSTROUTING", "-p", "tcp", "-d", first, "-j", "MASQUERADE")
        names = {"NODE1": f"[{third}]:2201", "NODE2": f"[{second}]:12345", "NODE3": third}
        lines = (NODES.files / "known_hosts").read_text().splitlines()
        known = [f"{names[line.split(',')[0]]} {line.split(' ', 1)[1]}\n" for line in lines]
        (folder / "known_hosts").write_text("".join(known))
        options = {
            "User": "root", "IdentityFile": NODES.files / "id_ed25519", "IdentitiesOnly": "yes",
            "UserKnownHostsFile": folder / "known_hosts", "StrictHostKeyChecking": "yes",
        }  # fmt: skip
        self.config.write_text("".join(f"{name} {value}\n" for name, value in options.items()))
        hosts = {
            "gpu_01": {"ansible_host": third, "ansible_port": 2201, "node_address": first},
            "gpu_02": {
                "ansible_host": second,
                "ansible_port": 12345,
                "ansible_ssh_common_args": f"-F {self.config} -o ProxyJump={third}",
            },
            "gpu_03": {"ansible_host": third},
        }
        common = {
            "ansible_user": "root",
            "ansible_ssh_common_args": f"-F {self.config}",
            "scalebook_home": "/opt/scalebook",
        }
        self.inventory.write_text(json.dumps({"nodes": {"hosts": hosts, "vars": common}}))
        play = {"hosts": "nodes", "gather_facts": False, "tasks": [{"import_role": {"name": "node"}}]}
        self.playbook.write_text(json.dumps([play]))

    def inside(self, node, *argv):
        NODES.run("nsenter", "-t", NODES.pid(node), "-n", *argv)

    def provision(self, tags, ok=True):
        return NODES.run("ansible-playbook", "-i", self.inventory, self.playbook, "--tags", tags, ok=ok)

    def on_first(self, command):
        login = ["ssh", "-F", self.config, "-p", "2201", self.addresses[2]]
        return NODES.run(*login, command).stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    made = Site(tmp_path_factory.mktemp("site"))
    made.provision("node_configure,node_verify")
    return made


def test_mpirun_starts_a_job_over_nodes_with_ports_of_their_own_behind_one_address(site):
    hosts = ",".join(f"{address}:1" for address in site.addresses)
    mpirun = "mpirun --allow-run-as-root --bind-to none --map-by ppr:1:node"
    assert sorted(site.on_first(f"{mpirun} --host {hosts} -np 3 uname -n").split()) == [
        "NODE1", "NODE2", "NODE3",
    ]  # fmt: skip


def test_the_nodes_know_each_other_by_name_address_and_port(site):
    known = site.on_first("grep -v '^#' ~/.ssh/known_hosts_scalebook | cut -d ' ' -f 1").split()
    first, second, third = site.addresses
    assert set(known) == {
        f"[gpu_01]:2222,[{first}]:2222", f"[gpu_02]:12345,[{second}]:12345", f"gpu_03,{third}",
    }  # fmt: skip


def test_a_login_from_node_to_node_that_fails_names_both_the_port_and_the_fix(site):
    refuse = ["-p", "tcp", "--dport", "12345", "-j", "REJECT", "--reject-with", "tcp-reset"]
    site.inside("NODE2", "iptables", "-A", "INPUT", "-s", site.addresses[0], *refuse)
    heard = said(site.provision("node_verify", ok=False))
    refused = "gpu_01 cannot log in to gpu_02: ssh: connect to host gpu_02 port 12345: Connection refused"
    assert f"{refused}. Fix: make sure that sshd answers the other nodes there" in heard, heard
