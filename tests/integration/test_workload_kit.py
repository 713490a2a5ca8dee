# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The tasks of role workload, from a role that includes them: what they set, and what they refuse."""

import json
import os
import subprocess
import sys

import pytest
from local_nodes import ROOT

pytestmark = pytest.mark.slow

TASKS = """
- ansible.builtin.include_role: {name: workload, tasks_from: device}
  vars: {workload_device: "{{ my_device }}"}
- ansible.builtin.include_role: {name: workload, tasks_from: install_record}
  vars:
    workload_name: my
    workload_home: "{{ my_home }}"
- ansible.builtin.include_role: {name: workload, tasks_from: wanted}
  vars: {workload_name: my, workload_wanted: {commit: new, lock: "{{ my_lock }}"}}
- ansible.builtin.include_role: {name: workload, tasks_from: same_on_all}
  vars:
    workload_name: my
    workload_same: "{{ {'torch': workload_install.torch} }}"
- ansible.builtin.debug:
    msg: "RESULT {{ workload_detected_device }} {{ workload_gpu_count }} {{ workload_install.torch }}"
"""


@pytest.fixture(scope="module")
def role(tmp_path_factory):
    """Write a role that uses the kit, and a play of it on two hosts."""
    folder = tmp_path_factory.mktemp("kit")
    for name, text in {
        "roles/my/tasks/main.yml": TASKS,
        "roles/my/defaults/main.yml": "{my_device: auto, my_lock: new}",
        "play.yml": "[{hosts: all, gather_facts: false, roles: [my]}]",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def play(role, home, records, **variables):
    hosts = {}
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    for node, record in records.items():
        (home / node).mkdir(exist_ok=True)
        if record is not None:
            (home / node / "install.json").write_text(json.dumps(record))
        hosts[node] = {"my_home": str(home / node)}
    inventory = home / "hosts.yml"
    inventory.write_text(json.dumps({"all": {"hosts": hosts, "vars": local}}))
    env = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
    env["ANSIBLE_ROLES_PATH"] = f"{role}/roles:{ROOT}/roles"
    done = subprocess.run(
        ["ansible-playbook", "-i", inventory, role / "play.yml", "-e", json.dumps(variables)],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=ROOT, env=env, timeout=300,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


CLAIM = [
    {
        "hosts": "localhost", "connection": "local", "gather_facts": False,
        "tasks": [{"ansible.builtin.include_tasks": str(ROOT / "playbooks/tasks/claim_directory.yml")}],
    }
]  # fmt: skip


def claim(folder, directory):
    """Claim a directory as provision.yml does where the user names one; return status and output."""
    (folder / "claim.yml").write_text(json.dumps(CLAIM))
    variables = {"__workload": "my", "__directory": str(directory)}
    variables["ansible_python_interpreter"] = sys.executable
    done = subprocess.run(
        ["ansible-playbook", "-i", "localhost,", folder / "claim.yml", "-e", json.dumps(variables)],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=ROOT, timeout=300,
    )  # fmt: skip
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def test_a_directory_with_files_of_the_users_is_no_place_for_an_installation(tmp_path):
    (tmp_path / "home/models").mkdir(parents=True)
    status, shown = claim(tmp_path, tmp_path / "home")
    assert status == 2 and f"my_home={tmp_path}/home on localhost is not an installation of" in shown
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["models"]


def test_an_installation_that_was_interrupted_goes_on(tmp_path):
    assert claim(tmp_path, tmp_path / "new/home")[0] == 0
    (tmp_path / "new/home/models").mkdir()
    assert claim(tmp_path, tmp_path / "new/home")[0] == 0


def record(**other):
    return {"schema": 3, "python": "/x", "torch": "2.13.0", "commit": "new", "lock": "new", **other}


def test_a_role_detects_its_device_and_reads_its_record(role, tmp_path):
    # B has an environment of the user's own, which has no lock.
    status, shown = play(role, tmp_path, {"A": record(), "B": record(lock="")}, my_device="cpu")
    assert status == 0, shown
    assert "RESULT cpu 0 2.13.0" in shown


@pytest.mark.parametrize(
    ("records", "variables", "message"),
    [
        ({"A": record(), "B": None}, {}, "B has no finished installation in"),
        ({"A": record(), "B": record(schema=1)}, {}, "of B is from another version of scalebook"),
        ({"A": record(), "B": {"schema": 2}}, {}, "of B is from another version of scalebook"),
        (
            # Only the lock may be empty.
            {"A": record(commit="", lock="old")},
            {},
            "A has another installation of my than is required: commit is , required is new; lock is old,",
        ),
        (
            {"A": {key: value for key, value in record().items() if key != "commit"}},
            {},
            "another installation of my than is required: commit is none, required is new. Fix",
        ),
        (
            {"A": record(), "B": record(torch="2.12.0")},
            {},
            "The nodes differ in torch: A has 2.13.0, B has 2.12.0.",
        ),
    ],
)
def test_what_a_node_lacks_is_refused_with_the_reason(role, tmp_path, records, variables, message):
    status, shown = play(role, tmp_path, records, **variables)
    assert status == 2, shown
    assert message in " ".join(shown.split())
