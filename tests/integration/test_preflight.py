# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""playbooks/preflight.yml on four container nodes: what is wrong is named with its node, and nothing else is.

Several faults are made at once, each on a node of its own, so that one look finds them all.
"""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from ansible.module_utils.scalebook.pages.catalogue import sentence
from nets import free_net

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tests" / "cluster"
STATE = ROOT / ".scalebook" / "test-cluster"
DATA = ROOT / "tests" / "data" / "preflight"
NET = free_net("10.11.25", "10.12.25", "10.13.25")
FILES = STATE / NET
NODES = ["NODE1", "NODE2", "NODE3", "NODE4"]
PORT = 24321
# Four nodes on one machine that has other things to do, too.
PATIENCE = "preflight_seconds=40 preflight_login_seconds=2"

# Of role node what lets nodes know and reach each other; the rest takes minutes.
MESH = """
- hosts: nodes
  gather_facts: false
  tasks:
    - ansible.builtin.include_role: {name: node, tasks_from: "{{ item }}"}
      loop: [facts, hosts, mesh]
"""

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="containers with networks of their own need root"),
]


def run(*argv, ok=True, **kwargs):
    words = [str(word) for word in argv]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, **kwargs)
    if ok:
        assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done


def engine(*argv):
    return run(STATE / "engine", *argv).stdout.strip()


def on(node, command, *options):
    """Run a command in a node."""
    return engine("exec", *options, f"{node}.{NET}", "sh", "-c", command)


def inside(node, *argv):
    """Run a command of this machine in a node's network and mounts."""
    pid = engine("inspect", "--format", "{{.State.Pid}}", f"{node}.{NET}")
    run("nsenter", "-t", pid, "-n", "-m", *argv)


def firewall(node, change):
    """Refuse, as firewalld does, all connections to ports that programs choose, or end that."""
    pid = engine("inspect", "--format", "{{.State.Pid}}", f"{node}.{NET}")
    rule = ["INPUT", "-p", "tcp", "--dport", "32768:", "-m", "conntrack", "--ctstate", "NEW"]
    answer = ["-j", "REJECT", "--reject-with", "icmp-host-prohibited"]
    run("nsenter", "-t", pid, "-n", "iptables", change, *rule, *answer)


def play(playbook, *words, ok=True):
    return run("ansible-playbook", "-i", FILES / "inventory", playbook, *words, ok=ok, cwd=ROOT)


class Look:
    """What one preflight said."""

    def __init__(self, place, *words):
        out = place / "preflight.json"
        started = time.monotonic()
        done = play(
            "playbooks/preflight.yml",
            "-e",
            f"out={out} campaign_port={PORT} slots=1 {PATIENCE}",
            *words,
            ok=False,
        )
        self.took = time.monotonic() - started
        self.shown, self.rc = done.stdout + done.stderr, done.returncode
        document = json.loads(out.read_text())
        self.verdict = document["verdict"]
        self.bad = {
            (one["check"], one["level"], tuple(one["nodes"])): one
            for one in document["findings"]
            if one["level"] != "ok"
        }
        print(f"preflight took {self.took:.1f} s, of which the nodes {document['seconds']:.1f} s")

    def found(self, check, *nodes):
        """Return level and words of the finding of `check` on `nodes`."""
        [one] = [one for (name, _, where), one in self.bad.items() if (name, where) == (check, nodes)]
        return one["level"], sentence(one["message"])


@pytest.fixture(scope="module", autouse=True)
def cluster(tmp_path_factory):
    run(TOOLS / "up", "--net", NET, "--fresh")
    book = tmp_path_factory.mktemp("nodes") / "nodes.yml"
    book.write_text(MESH)
    play(book)
    yield
    run(TOOLS / "down", "--net", NET)


@pytest.fixture(scope="module")
def healthy(cluster, tmp_path_factory):
    return Look(tmp_path_factory.mktemp("healthy"))


@pytest.fixture(scope="module")
def faulty(healthy, tmp_path_factory):
    """A held port and a wrong name on NODE1, a slow shell on NODE2, a clock on NODE3, no room on NODE4.

    Besides, a firewall on NODE3.
    """
    serve = f"import socket,time; s=socket.create_server(('0.0.0.0', {PORT})); time.sleep(600)"
    engine("exec", "-d", "-u", "nobody", f"NODE1.{NET}", "python3", "-c", serve)
    on(
        "NODE1",
        "cp /etc/hosts /tmp/hosts; (echo 127.0.1.1 NODE4; grep -v NODE4 /tmp/hosts) > /etc/hosts",
    )
    on("NODE2", "cp ~/.bashrc ~/bashrc; sed -i '1i sleep 3' ~/.bashrc")
    fake = '#!/bin/sh\\nexec /bin/date -d "+90 seconds" "$@"\\n'
    on("NODE3", f"printf '{fake}' > /usr/local/bin/date; chmod +x /usr/local/bin/date")
    firewall("NODE3", "-A")
    on("NODE4", "mkdir -p /opt/scalebook/work")
    inside("NODE4", "mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", "/opt/scalebook/work")
    look = Look(tmp_path_factory.mktemp("faulty"))
    inside("NODE4", "umount", "/opt/scalebook/work")
    firewall("NODE3", "-D")
    on("NODE3", "rm /usr/local/bin/date")
    on("NODE2", "cp ~/bashrc ~/.bashrc")
    on("NODE1", "cat /tmp/hosts > /etc/hosts; kill $(pgrep -u nobody python3)")
    return look


@pytest.fixture(scope="module")
def cut_off(faulty, tmp_path_factory):
    """NODE2 is dead; NODE4 reaches NODE1 by another interface."""
    engine("kill", f"NODE2.{NET}")
    inside("NODE4", "ip", "link", "add", "sbwrong", "type", "veth", "peer", "sbnobody")
    inside("NODE4", "ip", "addr", "add", "10.99.99.5/24", "dev", "sbwrong")
    inside("NODE4", "ip", "link", "set", "sbwrong", "up")
    inside("NODE4", "ip", "link", "set", "sbnobody", "up")
    inside("NODE4", "ip", "route", "add", f"{NET}.2/32", "dev", "sbwrong", "src", "10.99.99.5")
    look = Look(tmp_path_factory.mktemp("cut_off"))
    inside("NODE4", "ip", "link", "delete", "sbwrong")
    engine("start", f"NODE2.{NET}")
    return look


@pytest.fixture(scope="module")
def with_gpus(cut_off, tmp_path_factory):
    """Every node has a recorded GPU; on NODE2 somebody computes."""
    place = tmp_path_factory.mktemp("gpus")
    pid = on("NODE2", "setsid sleep 600 > /dev/null & echo $!", "-u", "nobody").split()[-1]
    for node in NODES:
        report = (DATA / ("h100-busy.xml" if node == "NODE2" else "h100-idle.xml")).read_text()
        (place / "report.xml").write_text(report.replace("<pid>446<", f"<pid>{pid}<"))
        (place / "nvidia-smi").write_text('#!/bin/sh\n[ "$1" = -q ] && exec cat /tmp/report.xml\nexit 0\n')
        (place / "nvidia-smi").chmod(0o755)
        engine("cp", place / "report.xml", f"{node}.{NET}:/tmp/report.xml")
        engine("cp", place / "nvidia-smi", f"{node}.{NET}:/usr/local/bin/nvidia-smi")
        # A container may not read the log of its host's kernel.
        on(node, "printf '#!/bin/sh\n' > /usr/local/bin/dmesg; chmod +x /usr/local/bin/dmesg")
    look = Look(place)
    for node in NODES:
        on(node, "rm /usr/local/bin/nvidia-smi /usr/local/bin/dmesg")
    on("NODE2", f"kill {pid}")
    return look


def test_a_healthy_cluster_is_fit(healthy):
    assert (healthy.bad, healthy.rc, healthy.verdict) == ({}, 0, "ok"), healthy.shown


def test_the_table_says_which_checks_were_made(healthy):
    assert "Preflight of 4 nodes in" in healthy.shown
    assert (
        "ok      reach, login, firewall, selinux, shell, name, address, clock, run, port, disk"
        in healthy.shown
    )


def test_a_preflight_takes_little_time(healthy, faulty, cut_off):
    assert (
        max(look.took for look in (healthy, faulty, cut_off)) < 60
    )  # 30 s on a machine with nothing else to do


def test_a_port_that_is_held_names_its_user(faulty):
    """Not the process: root of a container may not look into those of others."""
    level, words = faulty.found("port", "NODE1")
    assert level == "refuse"
    assert f"port {PORT} is held by" in words and "user nobody" in words


def test_a_name_at_the_wrong_address_is_refused(faulty):
    assert faulty.found("name", "NODE1") == ("refuse", "NODE4 is 127.0.1.1 there")


def test_a_slow_login_names_its_host(faulty):
    level, words = faulty.found("shell", "NODE2")
    assert level == "warn" and "for /bin/bash" in words


def test_a_clock_that_is_off_names_its_host(faulty):
    level, words = faulty.found("clock", "NODE3")
    assert level == "refuse"
    assert any(f"at least {seconds} s ahead of" in words for seconds in ("90.0", "89.9"))


def test_ports_behind_a_firewall_are_refused_where_a_login_works(faulty):
    level, words = faulty.found("firewall", "NODE3")
    assert level == "refuse"
    assert words.startswith("no connection of NODE1, NODE2, NODE4 to port ")
    assert words.endswith(" of NODE3 gets there: No route to host")


def test_a_disk_without_room_is_refused(faulty):
    assert faulty.found("disk", "NODE4") == ("refuse", "/opt/scalebook/work has 8 MB left of 8")


def test_only_the_faults_that_were_made_are_found(faulty):
    assert {check for check, _, _ in faulty.bad} == {"port", "name", "shell", "clock", "firewall", "disk"}


def test_a_refusal_fails_the_playbook_with_its_fix(faulty):
    assert faulty.rc != 0
    assert "Preflight failed:" in faulty.shown and "Fix:" in faulty.shown


def test_a_dead_node_is_named_with_the_reason(cut_off):
    level, words = cut_off.found("reach", "NODE2")
    assert level == "refuse" and "No route to host" in words or "timed out" in words


def test_the_others_say_that_they_cannot_log_in_to_it(cut_off):
    assert cut_off.found("login", "NODE2")[0] == "refuse"


def test_traffic_over_the_wrong_interface_is_refused(cut_off):
    assert cut_off.found("address", "NODE4") == ("refuse", "traffic to NODE1 leaves from 10.99.99.5")


def test_a_process_of_others_on_a_gpu_is_named_with_its_user(with_gpus):
    level, words = with_gpus.found("process", "NODE2")
    assert level == "refuse"
    assert "sleep 600" in words and "user nobody" in words


def test_a_healthy_gpu_beside_raises_no_alarm(with_gpus):
    assert {where for _, _, where in with_gpus.bad} == {("NODE2",)}, with_gpus.shown


def test_a_run_without_a_controller_is_ended_on_demand_only(with_gpus, tmp_path):
    mark = "SCALEBOOK_JOB=/opt/scalebook/work/NODE1/night/1n1g/1"
    start = "setsid sleep 600 > /dev/null 2>&1 & echo $!"
    ours, other = [on("NODE3", f"{env} {start}").split()[-1] for env in (mark, "")]
    look = Look(tmp_path)
    assert look.found("run", "NODE3") == ("refuse", f"night/1n1g/1 has process {ours} of root: sleep 600")
    look = Look(tmp_path, "-e", "reap=true")
    assert (look.rc, look.bad) == (0, {}), look.shown
    assert on("NODE3", f"ps -o pid= -p {ours},{other}").split() == [other]
    on("NODE3", f"kill {other}")
