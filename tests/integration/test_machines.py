# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Which hosts stand for machines, and in which order."""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# In no order of the alphabet, so that only the inventory's can come out.
MANY = [f"n{index * 37 % 40}" for index in range(40)]


@pytest.fixture
def machines(tmp_path):
    """The group `machines` as playbooks/machines.yml makes it of hosts and their variables; asks no host."""

    def grouped(hosts):
        inventory, play = tmp_path / "hosts.json", tmp_path / "play.yml"
        inventory.write_text(
            json.dumps({"nodes": {"hosts": hosts, "vars": {"scalebook_home": "/opt/scalebook"}}})
        )
        play.write_text(
            json.dumps(
                [
                    {
                        "import_playbook": str(ROOT / "playbooks/machines.yml"),
                        "vars": {"playbook": "bench"},
                    },
                    {
                        "hosts": "machines",
                        "gather_facts": False,
                        "tasks": [
                            {
                                "run_once": True,
                                "copy": {
                                    "content": "{{ ansible_play_hosts | to_json }}",
                                    "dest": str(tmp_path / "seen"),
                                },
                                "delegate_to": "localhost",
                                "vars": {"ansible_python_interpreter": "{{ ansible_playbook_python }}"},
                            }
                        ],
                    },
                ]
            )
        )
        done = subprocess.run(
            ["ansible-playbook", "-i", inventory, play], cwd=ROOT, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads((tmp_path / "seen").read_text())

    return grouped


def test_machines_keep_the_order_of_the_inventory(machines):
    assert machines({name: {} for name in MANY}) == MANY


def test_the_first_of_the_nodes_with_a_local_connection_stands_for_all_of_them(machines):
    local = {"ansible_connection": "local"}
    assert machines({"far": {}, "NODE1": local, "NODE2": local, "near": {}}) == ["far", "NODE1", "near"]


def test_a_password_that_sudo_asks_for_is_no_silence_of_the_gpus(tmp_path):
    sudo, inventory = tmp_path / "sudo", tmp_path / "hosts.json"
    sudo.write_text("#!/bin/sh\necho 'sudo: a password is required' >&2; exit 1\n")
    sudo.chmod(0o755)
    become = {"ansible_become": True, "ansible_become_user": "nobody", "ansible_become_exe": str(sudo)}
    variables = {**become, "ansible_connection": "local", "scalebook_home": str(tmp_path), "slots": 1}
    inventory.write_text(json.dumps({"nodes": {"hosts": {"NODE1": variables}}}))
    done = subprocess.run(
        ["ansible-playbook", "-i", inventory, "bench.yml", "-e", "plan_only=true"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode != 0
    assert "Fix: sudo asks for a password: add --ask-become-pass" in done.stdout


def test_a_host_of_another_processor_is_refused_by_name(tmp_path):
    uname, inventory = tmp_path / "uname", tmp_path / "hosts.json"
    uname.write_text("#!/bin/sh\necho aarch64\n")
    uname.chmod(0o755)
    variables = {"ansible_connection": "local", "scalebook_home": str(tmp_path), "slots": 1}
    inventory.write_text(json.dumps({"nodes": {"hosts": {"NODE1": variables}}}))
    done = subprocess.run(
        ["ansible-playbook", "-i", inventory, "bench.yml", "-e", "plan_only=true"],
        cwd=ROOT,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode != 0
    assert "NODE1 has aarch64 processors, and only x86-64 is supported. Missing: " in done.stdout
