# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The nodes' names in /etc/hosts where that file is a mount, as Docker gives it to its containers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The real /etc/hosts is never seen by the play: its mount covers it, in a mount namespace of its own.
PLAY = """
- hosts: NODE1
  connection: local
  gather_facts: false
  vars:
    ansible_python_interpreter: "{{ ansible_playbook_python }}"
    ansible_facts: {fqdn: NODE1}
    node_group: nodes
    __node_all: [NODE1, NODE2]
    __node_own_name: NODE1
    __node_addresses: {NODE1: 10.11.0.2, NODE2: 10.11.0.3}
    __node_names: {NODE1: [NODE1, 10.11.0.2], NODE2: [NODE2, 10.11.0.3]}
    __node_is_address: '^[0-9.]+$'
  tasks:
    - ansible.builtin.import_tasks: TASKS
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a mount needs root")


def test_a_mounted_hosts_file_is_written_in_place(tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost\n127.0.1.1 NODE1\n10.11.0.2 NODE1\n")
    play = tmp_path / "play.yml"
    play.write_text(PLAY.replace("TASKS", str(ROOT / "roles/node/tasks/hosts.yml")))
    ansible = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "NODE1,", str(play)]
    covered = 'mount --bind "$0" /etc/hosts && exec "$@"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", covered, str(hosts), *ansible],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_NOCOLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert hosts.read_text() == (
        "127.0.0.1 localhost\n10.11.0.2 NODE1\n"
        "# BEGIN scalebook nodes\n10.11.0.2 NODE1\n10.11.0.3 NODE2\n# END scalebook nodes\n"
    )
