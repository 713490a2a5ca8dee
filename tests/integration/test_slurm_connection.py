# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Nodes that are reached by steps of Slurm, without ssh, on a Slurm of four nodes on this machine."""

import json
import os
import re
import signal
import subprocess
import time

import pytest
from local_nodes import HOME, ROOT, WORK, turn
from one_host_slurm import NODES, free_ports, one_host_slurm

# They have one address here, which the nodes of a cluster may not have.
ADDRESSES = {name: {"node_address": name} for name in NODES}


@pytest.fixture(scope="module")
def slurm():
    with one_host_slurm() as cluster:
        cluster.env["SLURM_JOB_ID"] = cluster.allocate("--time=30")
        cluster.env["ANSIBLE_ROLES_PATH"] = "roles:tests/roles"
        inventory = {"nodes": {"hosts": ADDRESSES, "vars": {"ansible_srun_passed_on": ["LD_LIBRARY_PATH"]}}}
        (cluster.place / "here.yml").write_text(json.dumps(inventory))
        yield cluster


def start(slurm, program, *options):
    """Start Ansible on the nodes of the allocation."""
    return subprocess.Popen(
        [program, "-i", "inventory/slurm", "-i", slurm.place / "here.yml", *options],
        env=slurm.env, cwd=ROOT, text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def output(slurm, program, *options, code=0):
    """Return what Ansible prints."""
    process = start(slurm, program, *options)
    shown = process.communicate(timeout=600)[0]
    assert process.returncode == code, shown[-6000:]
    return shown


def test_each_node_of_the_allocation_answers_by_its_name_as_after_a_login(slurm):
    script = "env >/dev/fd/2; grep -z ^SLURM_STEP_NODELIST= /proc/$PPID/environ; exit 3"
    shown = output(slurm, "ansible", "nodes", "-m", "raw", "-a", script, code=2)
    for node in NODES:
        assert re.search(rf"{node} \| FAILED \| rc=3 >>\nSLURM_STEP_NODELIST={node}\0", shown)
    assert "\nHOME=" in shown and "\nSLURM_JOB_ID=" not in shown and "srun:" not in shown


def test_files_arrive_as_they_are_there_and_back(slurm, tmp_path):
    content = bytes(range(256)) * 1000
    (tmp_path / "file").write_bytes(content)
    for module in (
        f"copy src={tmp_path}/file dest={tmp_path}/there",
        f"fetch src={tmp_path}/there dest={tmp_path}/back flat=true",
    ):
        name, _, words = module.partition(" ")
        output(slurm, "ansible", "NODE2", "-m", name, "-a", words)
    assert (tmp_path / "back").read_bytes() == content


def test_missing_packages_are_named_and_not_installed(slurm):
    words = ["-m", "include_role", "-a", "name=node tasks_from=packages"]
    needs = json.dumps({"node_needs": ["bash", "no-such-package"]})
    shown = output(slurm, "ansible", "NODE1", *words, "-e", needs, code=2)
    assert "NODE1 has no no-such-package, and on a node of Slurm no packages are installed. Fix: ask" in shown
    assert "NODE1 has no bash" not in shown


def test_a_node_that_leaves_slurm_is_unreachable_with_slurm_s_reason(slurm):
    pid = int((slurm.place / "run/slurmd.NODE4.pid").read_text())
    os.kill(pid, signal.SIGKILL)
    try:
        shown = output(slurm, "ansible", "NODE4", "-m", "ping", code=4)
        assert re.search(r"a step of Slurm on NODE4 did not start: srun: error: .*NODE4", shown)
    finally:
        slurm.start_node("NODE4")


@pytest.mark.parametrize("killed", [False, True])
def test_what_runs_on_a_node_is_asked_to_end_when_ansible_ends(slurm, tmp_path, killed):
    script = f"trap 'echo >{tmp_path}/asked; exit' USR1; echo >{tmp_path}/began; while :; do sleep 0.1; done"
    process = start(slurm, "ansible", "NODE1", "-m", "raw", "-a", script)
    await_that((tmp_path / "began").exists)
    if killed:
        workers = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, check=True).stdout
        for pid in (process.pid, *map(int, workers.split())):
            os.kill(pid, signal.SIGKILL)
    else:
        process.send_signal(signal.SIGINT)
    await_that((tmp_path / "asked").exists)
    await_that(lambda: slurm.steps() == [])
    process.communicate(timeout=30)


def await_that(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_without_an_allocation_the_inventory_says_how_to_get_one(slurm):
    env = {**slurm.env, "SLURM_JOB_ID": ""}
    done = subprocess.run(
        ["ansible-inventory", "-i", "inventory/slurm", "--list"],
        env=env,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "SLURM_JOB_ID is not set. Fix: start Ansible in an allocation" in done.stderr


@pytest.mark.slow
def test_a_campaign_is_provisioned_once_and_measured_over_steps(slurm, tmp_path):
    given = {
        "workload": "scripted",
        "scalebook_home": str(HOME),
        "campaign_work": f"{WORK}/{{{{ inventory_hostname }}}}",
    }
    with turn():
        shown = output(slurm, "ansible-playbook", "provision.yml", "-e", json.dumps(given))
    assert re.findall(r"^(NODE\d) +: ok", shown, re.MULTILINE) == ["NODE1"]
    given |= {
        "preflight": False,
        "nodes": 1,
        "gpus": 1,
        "device": "cpu",
        "repeats": 1,
        "campaign": "by_steps",
    }
    given["campaign_port"] = free_ports(1)[0]
    shown = output(
        slurm, "ansible-playbook", "bench.yml", "-e", json.dumps({**given, "campaign_results": str(tmp_path)})
    )
    assert re.search(r"Slurm's job \d+, in which the runs are steps, ends at .*, in \d+ min\.", shown)
    (record,) = [json.loads(path.read_text()) for path in tmp_path.glob("by_steps/runs/*/1/result.json")]
    assert (record["status"], record["job"]["launcher"]) == ("ok", "srun")
    assert (WORK / "NODE1/bin/run_job.py").exists()
