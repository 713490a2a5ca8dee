"""The test cluster keeps its promises: tests/cluster/up, down and link, run for real.

On a subnet of its own, so that a cluster that somebody works with is left alone.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from nets import free_net

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tests" / "cluster"
sys.path.insert(0, str(TOOLS))

from testcluster import ready  # noqa: E402

STATE = ROOT / ".scalebook" / "test-cluster"
NET = free_net("10.11.9", "10.12.9", "10.13.9", "10.14.9")
OTHER = free_net("10.11.10", "10.12.10", "10.13.10")
FILES = STATE / NET
NODES = ["NODE1", "NODE2", "NODE3", "NODE4"]

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="containers with networks of their own need root"),
]


def run(*argv, ok=True, timeout=600, **kwargs):
    words = [str(word) for word in argv]
    done = subprocess.run(words, capture_output=True, text=True, timeout=timeout, **kwargs)
    if ok:
        assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done


def up(*options, net=NET):
    started = time.monotonic()
    done = run(TOOLS / "up", "--net", net, *options)
    print(f"up {' '.join(options)}: {time.monotonic() - started:.1f} s (warm: 20 s at most)")
    return done.stdout


def engine(*argv, ok=True):
    return run(STATE / "engine", *argv, ok=ok).stdout.strip()


def container(node, net=NET):
    return f"{node}.{net}"


def ssh(node, command, ok=True):
    options = ["-F", FILES / "ssh_config", "-o", "BatchMode=yes", "-o", "ConnectTimeout=3"]
    return run("ssh", *options, node, command, ok=ok)


def ids():
    return [engine("inspect", "--format", "{{.Id}}", container(node)) for node in NODES]


@pytest.fixture(scope="module", autouse=True)
def cluster():
    up("--fresh")
    yield
    run(TOOLS / "down", "--net", NET)


def test_ansible_reaches_all_four_nodes_with_host_key_checking_on():
    assert "StrictHostKeyChecking=yes" in (FILES / "inventory" / "hosts.yml").read_text()
    argv = ["ansible", "-i", FILES / "inventory", "nodes", "-o", "-m", "ping"]
    done = run(*argv, cwd=ROOT, env={**os.environ, "ANSIBLE_HOST_KEY_CHECKING": "True"})
    assert sorted(re.findall(r"^(NODE\d) \| SUCCESS", done.stdout, re.MULTILINE)) == NODES


def test_a_second_up_leaves_the_nodes_as_they_are():
    before = ids()
    ssh("NODE1", "touch mine")
    started = time.monotonic()
    assert up().count(": kept") == 4
    assert time.monotonic() - started < 60
    assert ids() == before
    ssh("NODE1", "test -f mine")


def test_a_node_sees_its_own_name_processes_and_address_only():
    assert ssh("NODE3", "hostname").stdout == "NODE3\n"
    assert int(ssh("NODE3", "ps -e --no-headers | wc -l").stdout) < 12
    assert re.findall(r"inet (\S+) .*eth0", ssh("NODE3", "ip -4 -o addr show").stdout) == [f"{NET}.4/24"]


def test_every_node_has_host_keys_of_its_own():
    keys = [line.split()[2] for line in (FILES / "known_hosts").read_text().splitlines()]
    assert len(keys) == len(set(keys)) == 12


@pytest.mark.parametrize("tool", ["pip", "pip3", "mpirun", "gcc", "git"])
def test_a_node_is_bare(tool):
    assert ssh("NODE2", f"command -v {tool}", ok=False).returncode != 0


def test_the_nodes_cannot_log_in_to_each_other():
    refused = ssh("NODE1", f"ssh -o BatchMode=yes {NET}.3 true", ok=False)
    assert "Host key verification failed" in refused.stderr


def test_a_node_gets_packages_from_the_registries():
    ssh("NODE1", "apt-get -q update && apt-get -q install -y --no-install-recommends python3-pip")
    ssh("NODE1", "cd /tmp && pip download -q --no-deps six")
    assert "six-" in ssh("NODE1", "ls /tmp").stdout


def test_the_authorities_of_the_machine_survive_an_update_in_a_node():
    ask = "grep -c BEGIN /etc/ssl/certs/ca-certificates.crt"
    before = int(ssh("NODE2", ask).stdout)
    ssh("NODE2", "update-ca-certificates")
    assert int(ssh("NODE2", ask).stdout) == before


def test_a_changed_host_key_is_refused_until_up_has_read_the_new_one():
    renew = "rm /etc/ssh/ssh_host_*; ssh-keygen -A; kill -HUP $(cat /run/sshd.pid)"
    engine("exec", container("NODE4"), "sh", "-c", renew)
    time.sleep(1)
    refused = ssh("NODE4", "true", ok=False)
    assert refused.returncode == 255
    assert "REMOTE HOST IDENTIFICATION HAS CHANGED" in refused.stderr
    up()
    ssh("NODE4", "true")


def test_a_killed_node_comes_back_with_its_files():
    ssh("NODE2", "touch kept")
    engine("kill", container("NODE2"))
    assert ssh("NODE2", "true", ok=False).returncode == 255
    assert "10.11.9.3: started" in up()
    ssh("NODE2", "test -f kept")


def test_a_pulled_cable_is_silent_and_up_repairs_it():
    run(TOOLS / "link", "--net", NET, "NODE3", "down")
    assert "timed out" in ssh("NODE3", "true", ok=False).stderr
    assert "10.11.9.4: restarted" in up()


def test_a_plugged_in_cable_works_at_once():
    run(TOOLS / "link", "--net", NET, "NODE3", "down")
    run(TOOLS / "link", "--net", NET, "NODE3", "up")
    ssh("NODE3", f"timeout 5 bash -c '</dev/tcp/{NET}.2/22'")


def test_a_paused_node_is_resumed():
    engine("pause", container("NODE1"))
    assert "10.11.9.2: repaired" in up()


def test_a_node_out_of_memory_loses_its_largest_process():
    engine("update", "--memory", "100m", container("NODE3"))
    hungry = "python3 -c 'x = bytearray(300 << 20)'; echo $?"
    assert ssh("NODE3", hungry).stdout == "137\n"
    engine("update", "--memory", "1000g", container("NODE3"))
    assert ssh("NODE3", hungry).stdout == "0\n"


def test_a_small_disk_fills_up():
    pid = engine("inspect", "--format", "{{.State.Pid}}", container("NODE3"))
    run("nsenter", "-t", pid, "-m", "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", "/mnt")
    assert "No space left" in ssh("NODE3", "head -c 2000000 /dev/zero > /mnt/x", ok=False).stderr
    run("nsenter", "-t", pid, "-m", "umount", "/mnt")


def test_a_half_made_node_is_made_anew():
    engine("rm", "-f", "-t", "0", container("NODE4"))
    label = f"scalebook.test-cluster={FILES}"
    engine("create", "--name", container("NODE4"), "--label", label, "localhost/scalebook-node")
    assert f"{NET}.5: created" in up()
    assert ssh("NODE4", "hostname").stdout == "NODE4\n"


def test_fewer_nodes_on_demand():
    up("--nodes", "3")
    assert "NODE4" not in (FILES / "inventory" / "hosts.yml").read_text()
    assert engine("ps", "-a", "--quiet", "--filter", f"name={container('NODE4')}") == ""
    up()


def test_a_taken_subnet_is_refused():
    run("ip", "link", "add", "sbtaken", "type", "bridge")
    try:
        run("ip", "addr", "add", "10.11.8.77/24", "dev", "sbtaken")
        refused = run(TOOLS / "up", "--net", "10.11.8", ok=False)
    finally:
        run("ip", "link", "delete", "sbtaken")
    assert refused.returncode == 1
    assert "10.11.8.0/24 is taken: interface sbtaken" in refused.stderr


def test_a_ready_node_has_what_role_node_installs():
    up("--nodes", "1", "--ready", net=OTHER)
    form = "${Package} ${db:Status-Status}\\n"
    query = engine("exec", container("NODE1", OTHER), "dpkg-query", "-W", "-f", form, *ready.packages())
    assert query.splitlines() == [f"{name} installed" for name in sorted(ready.packages())]


def test_down_leaves_no_container_network_or_process():
    up("--nodes", "1", net=OTHER)
    number = engine("inspect", "--format", "{{.Id}}", container("NODE1", OTHER))
    monitored = [path for path in Path("/proc").glob("[0-9]*/cmdline") if number in _text(path)]
    assert monitored
    run(TOOLS / "down", "--net", OTHER)
    assert OTHER not in engine("ps", "-a") + engine("network", "ls")
    assert run("ip", "link", "show", f"sb{OTHER}", ok=False).returncode != 0
    assert [path for path in Path("/proc").glob("[0-9]*/cmdline") if number in _text(path)] == []
    assert not (STATE / OTHER / "inventory").exists()


def test_down_twice_is_no_error():
    assert "nothing was up" in run(TOOLS / "down", "--net", OTHER).stdout


def _text(path):
    try:
        return path.read_text()
    except OSError:
        return ""  # it ended meanwhile
