# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What role node writes for logins between the nodes: every name of a node, with its port."""

import re
from pathlib import Path

import jinja2
import pytest
import yaml
from ansible.plugins.filter.core import extract, flatten, regex_replace

ROLE = Path(__file__).resolve().parents[3] / "roles/node"
KEYS = {"ssh_host_key_ed25519_public": "AAAA", "ssh_host_key_ed25519_public_keytype": "ssh-ed25519"}
HOSTVARS = {"gpu_01": {"ansible_facts": KEYS}, "gpu_02": {"ansible_facts": KEYS}}
VARIABLES = {
    "hostvars": HOSTVARS,
    "__node_all": list(HOSTVARS),
    "__node_ports": {"gpu_01": "22", "gpu_02": "2222"},
    "__node_host_keys": ["ed25519"],
    "__node_names": {"gpu_01": ["gpu_01", "10.0.0.1"], "gpu_02": ["gpu_02", "10.0.0.2", "two.example.org"]},
    "node_user": "me",
    "__node_key": "/k",
    "__node_known_hosts": "/h",
}


def rendered(template):
    """Return a template as Ansible writes it."""
    environment = jinja2.Environment(trim_blocks=True, undefined=jinja2.StrictUndefined)  # noqa: S701 - no HTML
    plain = jinja2.pass_environment(extract)
    environment.filters.update(regex_replace=regex_replace, flatten=flatten, extract=plain)
    return environment.from_string(template).render(VARIABLES)


@pytest.fixture(scope="module")
def config():
    tasks = yaml.safe_load((ROLE / "tasks/mesh.yml").read_text())
    [block] = [
        each["ansible.builtin.blockinfile"]["block"]
        for each in tasks
        if each["name"] == "Write the configuration of ssh"
    ]
    return rendered(block)


def test_known_hosts_has_every_name_and_another_port_in_brackets():
    lines = rendered((ROLE / "templates/known_hosts.j2").read_text()).splitlines()
    assert [line for line in lines if "AAAA" in line] == [
        "gpu_01,10.0.0.1 ssh-ed25519 AAAA",
        "[gpu_02]:2222,[10.0.0.2]:2222,[two.example.org]:2222 ssh-ed25519 AAAA",
    ]


def test_ssh_is_told_another_port_for_every_name_of_the_node(config):
    assert re.findall(r"Host (.*)\n  Port (.*)\n", config) == [("gpu_02 10.0.0.2 two.example.org", "2222")]


def test_every_name_of_every_node_is_logged_in_to_with_the_key_of_the_mesh(config):
    [names] = re.findall(r"Host (.*)\n  User me\n", config)
    assert names.split() == ["gpu_01", "10.0.0.1", "gpu_02", "10.0.0.2", "two.example.org"]
