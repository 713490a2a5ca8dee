# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What role node writes for logins between the nodes, read by ssh itself: names, ports, users, host keys."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from rendering import rendered

ROLE = Path(__file__).resolve().parents[3] / "roles/node"
VARIABLES = yaml.safe_load((ROLE / "vars/main.yml").read_text())
KEYS = {"ssh_host_key_ed25519_public": "AAAA", "ssh_host_key_ed25519_public_keytype": "ssh-ed25519"}
# One with the usual port, two behind one address with ports of their own, and one that logs in with IPv6.
INVENTORY = {
    "gpu_01": {"ansible_host": "10.0.0.1"},
    "gpu_02": {"ansible_host": "203.0.113.7", "ansible_port": 2202, "node_address": "10.0.0.2"},
    "gpu_03": {"ansible_ssh_host": "203.0.113.7", "ansible_ssh_port": 2203, "node_address": "10.0.0.3"},
    "gpu_04": {"ansible_host": "2001:db8::4", "node_address": "10.0.0.4"},
}
# What each node has found: its address, the port of its ssh server, the user of its logins.
FOUND = {
    "gpu_01": ("10.0.0.1", 22, "root"),
    "gpu_02": ("10.0.0.2", 22, "root"),
    "gpu_03": ("10.0.0.3", 2222, "ubuntu"),
    "gpu_04": ("10.0.0.4", 22, "root"),
}
# Of the user of the runs, below the lines of the role.
OWN_CONFIG = "Host *\n  Port 12345\n  User somebody\n  ProxyJump bastion\n  ForwardAgent yes\n"


def tasks(file):
    return {task["name"]: task for task in yaml.safe_load((ROLE / "tasks" / file).read_text())}


def facts(playing):
    """Return the variables of the role after facts.yml, in a run with the nodes `playing`."""
    hostvars = {name: {**INVENTORY[name], "ansible_facts": KEYS} for name in INVENTORY}
    for name in playing:
        own = zip(("address", "port", "user"), FOUND[name], strict=True)
        hostvars[name] |= {f"__node_own_{what}": value for what, value in own}
    values = {
        **VARIABLES,
        "hostvars": hostvars,
        "ansible_play_hosts": list(playing),
        "__node_all": list(INVENTORY),
        "__node_key": "/k",
        "__node_known_hosts": "/h",
    }
    for name in ("Store the addresses, ports and users of the nodes", "Store what the nodes are called"):
        task = tasks("facts.yml")[name]
        inner = dict(values)
        for key, template in task["vars"].items():
            inner[key] = rendered(template, inner)
        stored = task["ansible.builtin.set_fact"].items()
        values |= {key: rendered(template, inner) for key, template in stored}
    return values


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """Return what ssh makes of a name on a node, with the configuration of the role before the user's own."""
    block = tasks("mesh.yml")["Write the configuration of ssh"]["ansible.builtin.blockinfile"]["block"]
    config = tmp_path_factory.mktemp("ssh") / "config"
    config.write_text(rendered(block, facts(INVENTORY)) + "\n" + OWN_CONFIG)

    def answer(name):
        done = subprocess.run(["ssh", "-G", "-F", config, name], capture_output=True, text=True, check=True)
        return dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)

    return answer


@pytest.fixture(scope="module")
def known_hosts(tmp_path_factory):
    file = tmp_path_factory.mktemp("known") / "known_hosts"
    file.write_text(rendered((ROLE / "templates/known_hosts.j2").read_text(), facts(INVENTORY)))
    return file


@pytest.mark.parametrize(
    ("name", "port", "user"),
    [
        ("gpu_01", "22", "root"),
        ("10.0.0.2", "22", "root"),
        ("gpu_03", "2222", "ubuntu"),
        ("10.0.0.3", "2222", "ubuntu"),
        ("10.0.0.4", "22", "root"),
    ],
)
def test_ssh_reaches_a_node_by_each_name_at_its_own_port_as_its_own_user(asked, name, port, user):
    found = asked(name)
    assert (found["port"], found["user"], found["identityfile"]) == (port, user, "/k")


def test_nodes_reach_each_other_directly_and_check_host_keys_whatever_the_user_has_configured(asked):
    found = asked("gpu_02")
    assert {"proxyjump", "proxycommand"}.isdisjoint(found)
    assert found["stricthostkeychecking"] in ("true", "yes")
    assert found["userknownhostsfile"] == "/h"


def test_other_hosts_keep_the_configuration_of_the_user(asked):
    found = asked("elsewhere")
    assert (found["port"], found["user"], found["proxyjump"]) == ("12345", "somebody", "bastion")


@pytest.mark.parametrize("name", ["gpu_01", "10.0.0.2", "[gpu_03]:2222", "[10.0.0.3]:2222", "10.0.0.4"])
def test_the_host_key_of_a_node_is_known_by_each_name(known_hosts, name):
    done = subprocess.run(["ssh-keygen", "-F", name, "-f", known_hosts], capture_output=True, text=True)
    assert "ssh-ed25519 AAAA" in done.stdout


@pytest.mark.parametrize("name", ["[203.0.113.7]:2202", "203.0.113.7", "2001:db8::4"])
def test_where_ansible_logs_in_is_no_name_between_the_nodes(known_hosts, name):
    assert name not in re.split(r"[, \n]", known_hosts.read_text())


def test_a_run_on_some_nodes_knows_the_addresses_that_the_others_have_for_each_other():
    """Not where Ansible logs in: /etc/hosts would lead to the address that forwards ports."""
    addresses = facts(["gpu_01"])["__node_addresses"]
    assert addresses == {
        "gpu_01": "10.0.0.1",
        "gpu_02": "10.0.0.2",
        "gpu_03": "10.0.0.3",
        "gpu_04": "10.0.0.4",
    }


@pytest.mark.parametrize(
    "name",
    ["Write the authorized keys", "Write the host keys of the nodes", "Write the configuration of ssh"],
)
def test_logins_are_written_where_all_nodes_have_said_their_ports_and_keys(name):
    assert tasks("mesh.yml")[name]["when"] == "__node_complete | bool"
