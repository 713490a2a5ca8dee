# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A running campaign holds its machines whoever asks: another user, another container, a hidden /proc."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TASKS = ROOT / "roles/campaign/tasks"
# The group too: /proc mounted with hidepid hides nothing from group 0.
AS_NOBODY = "setpriv --reuid=65534 --regid=65534 --clear-groups"

HEAD = f"""
import json, os, sys, time
import ansible.module_utils
ansible.module_utils.__path__.append({str(ROOT / "module_utils")!r})
from ansible.module_utils.scalebook.launch import lock_file, lock_holder
lock_file.PLACES = [sys.argv[1]]
def take():
    holder = lock_holder.identity()
    return lock_file.turn(lock_file.machine_path(), holder, None, "present", True)
"""
HOLD = HEAD + "print(take()[1], flush=True)\ntime.sleep(60)\n"
# As roles/campaign/tasks/claim.yml: what is held by somebody who is not gone is not taken.
ASK = HEAD + "held, other = take()[1:]\nprint(json.dumps([held, lock_holder.gone(other), other]))\n"

# As bench.yml, provision.yml and microbench.yml claim a machine.
CLAIM = """
- hosts: nodes
  gather_facts: false
  tasks:
    - ansible.builtin.include_role: {name: campaign, tasks_from: claim}
"""
# Containers that share GPUs have a directory for their locks; without one, all users have the same.
DIRECTORIES = {"same host": "", "another container": "{shared}"}
HOMES = {"the same home": "/opt/scalebook", "another home": "/opt/other"}
VARIANTS = {
    f"{where}, {home}": {"campaign_lock_directory": directory, "scalebook_home": HOMES[home]}
    for where, directory in DIRECTORIES.items()
    for home in HOMES
}

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare"), reason="another user and another /proc need root"
)


@contextlib.contextmanager
def run_lock():
    """A directory like /run/lock."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o1777)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def run():
    with run_lock() as path:
        yield path


@contextlib.contextmanager
def campaign(run, container):
    """Hold the lock as a running control node does, in another container or not."""
    argv = [sys.executable, "-c", HOLD, run]
    if container:
        argv = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *argv]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "True\n"
            yield
        finally:
            process.kill()


def ask(run, hidepid):
    """Return (held, gone, other holder) as another user learns it, with /proc mounted so."""
    script = f'mount -t proc -o "hidepid=$1" proc /proc; shift; exec {AS_NOBODY} "$@"'
    argv = ["unshare", "--mount", "sh", "-ec", script, "sh", hidepid, sys.executable, "-c", ASK, run]
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, timeout=30, cwd="/")
    if "mount:" in done.stderr:
        pytest.skip(f"this machine cannot mount /proc so: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("hidepid", [0, 1, 2])
@pytest.mark.parametrize("container", [False, True], ids=["same host", "another container"])
def test_a_running_campaign_is_never_gone(run, hidepid, container):
    with campaign(run, container):
        began = time.monotonic()
        held, gone, other = ask(run, hidepid)
        assert (held, gone, other["user"]) == (False, False, "root")
        assert time.monotonic() - began < 2 * (1 + os.getloadavg()[0])


def claim(run, shared, hidepid):
    """Return what ansible-playbook of another user says, who claims this machine in each of VARIANTS."""
    hosts = {
        name: {
            **variables,
            "campaign_lock_directory": variables["campaign_lock_directory"].format(shared=shared),
        }
        for name, variables in VARIANTS.items()
    }
    inventory = {"nodes": {"hosts": hosts, "vars": {"ansible_connection": "local"}}}
    with run_lock() as folder:
        (folder / "hosts.json").write_text(json.dumps({"all": {"children": inventory}}))
        (folder / "play.yml").write_text(CLAIM)
        script = f"""
            mount --bind "$1" /run/lock; mount -t proc -o "hidepid=$2" proc /proc; shift 2
            exec {AS_NOBODY} "$@"
        """
        playbook = [Path(sys.executable).with_name("ansible-playbook"), "-i", "hosts.json", "play.yml"]
        argv = ["unshare", "--mount", "sh", "-ec", script, "sh", run, hidepid, *playbook]
        own = {
            "ANSIBLE_HOME": f"{folder}/home",
            "ANSIBLE_REMOTE_TEMP": f"{folder}/remote",
            "HOME": str(folder),
        }
        config = {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "SCALEBOOK_LOCK_DIRECTORY": "", **own}
        return subprocess.run(
            [str(word) for word in argv],
            capture_output=True, text=True, timeout=120, cwd=folder, env={**os.environ, **config},
        )  # fmt: skip


@pytest.fixture(scope="module", params=[0, 1, 2], ids=lambda hidepid: f"hidepid={hidepid}")
def claimed(request):
    """What a second control node says while a campaign of root runs on this host, and one in a container."""
    with run_lock() as run, run_lock() as shared, campaign(run, False), campaign(shared, True):
        done = claim(run, shared, request.param)
    if "mount:" in done.stderr:
        pytest.skip(f"this machine cannot mount so: {done.stderr.strip()}")
    return done.stdout


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_second_control_node_is_refused_with_the_name_of_the_first(claimed, variant):
    assert f"{variant} is in use by root@{socket.gethostname()}, process " in claimed


@pytest.mark.parametrize("hidepid", [0, 1, 2])
def test_a_campaign_that_ended_is_gone_for_every_user(run, hidepid):
    with campaign(run, container=False):
        pass
    assert ask(run, hidepid)[1] is True


@pytest.mark.parametrize("name", ["claim.yml", "refuse_locked.yml", "release.yml"])
def test_no_home_changes_the_lock_of_a_machine(name):
    text = (TASKS / name).read_text()
    assert "campaign_work }}/lock" not in text
    assert "scalebook_home" not in text
