# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""acceptance.yml on simulated nodes whose interpreter prints what a node of a given speed would."""

import json
import os
import signal
import subprocess
import time

import pytest
from local_nodes import ROOT

pytestmark = pytest.mark.slow

INTERPRETER = """#!/usr/bin/python3
import json, random, sys
options = dict(word[2:].split("=", 1) for word in sys.argv[2:])
for step in json.loads(options["steps"]):
    rate, nodes = {rate} * random.gauss(100, 0.2), step.get("nodes", [])
    line = {{"at": step["at"], "name": "{name}", "rates": {{}}, "traces": {{}}, "problems": {{}}}}
    if not nodes:
        line["rates"] = {{"{part}": {{"copy": rate}}}}
    elif nodes[0] == options["node"]:
        several = ["all_reduce"] if "group" in step or len(nodes) > 2 else ["forward", "backward"]
        line["rates"] = dict.fromkeys(several, rate)
    print(json.dumps(line))
"""
XID = "[ 100.0] NVRM: Xid (PCI:0000:19:00): 48, pid=1, a double bit error"


def play(playbook, inventory, *options, **environment):
    """Start a playbook on an inventory."""
    return subprocess.Popen(
        ["ansible-playbook", "-i", inventory, playbook, *options],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL, cwd=ROOT,
        env={**os.environ, **environment}, start_new_session=True,
    )  # fmt: skip


def ended(process):
    """Return the status of a play and what it printed."""
    shown = process.communicate(timeout=600)[0]
    return process.returncode, shown


def site(folder, nodes, name="CPU", part="CPU"):
    """Write an inventory of nodes, each with its rate, whose results are in the folder `out`."""
    hosts = {}
    for node, rate in nodes.items():
        program = folder / node
        program.write_text(INTERPRETER.format(rate=rate, name=name, part=part))
        program.chmod(0o755)
        hosts[node] = {"microbench_python": str(program)}
    common = {
        "ansible_connection": "local",
        "ansible_python_interpreter": "{{ ansible_playbook_python }}",
        "scalebook_home": str(folder / "home"),
        "acceptance_out": str(folder / "out"),
    }
    inventory = folder / "hosts.yml"
    inventory.write_text(json.dumps({"nodes": {"hosts": hosts, "vars": common}}))
    return inventory


def written(folder, name):
    return json.loads((folder / "out" / name).read_text())


def test_a_healthy_cluster_is_accepted_with_status_0(tmp_path):
    inventory = site(tmp_path, dict.fromkeys(("NODE1", "NODE2", "NODE3", "NODE4"), 1))
    status, shown = ended(play("acceptance.yml", inventory))
    assert status == 0, shown
    verdicts = written(tmp_path, "acceptance.json")
    assert verdicts["accepted"], shown
    assert "4 nodes; parts: 19 good" in shown
    assert "good         all nodes: all_reduce " in shown
    assert "acceptance.yml" in verdicts["command"]


def test_a_slow_node_is_named_with_status_2_and_left_out_of_the_inventory(tmp_path):
    inventory = site(tmp_path, {"NODE1": 1, "NODE2": 1, "NODE3": 0.9, "NODE4": 1})
    status, shown = ended(play("acceptance.yml", inventory))
    assert (status, written(tmp_path, "acceptance.json")["bad"]) == (2, ["NODE3"]), shown
    assert "scontrol update nodename=NODE3 state=drain" in shown
    assert "NODE3: bad; repair these nodes, or leave them out" in shown
    assert list(written(tmp_path, "good.yml")["nodes"]["hosts"]) == ["NODE1", "NODE2", "NODE4"]
    status, shown = ended(play("playbooks/preflight.yml", inventory))
    assert status == 2
    assert "acceptance.yml condemned it on" in shown
    assert "Preflight failed: NODE3" in shown


def test_a_burn_in_that_was_stopped_goes_on_and_a_new_error_fails_it_with_status_2(tmp_path):
    """A node with a GPU whose driver and kernel say what they said on a real one, and then an Xid."""
    inventory = site(tmp_path, {"NODE1": 29}, "NVIDIA H100 80GB HBM3", "GPU0")
    gpu = ROOT / "tests/data/preflight/h100-idle.xml"
    driver = f'#!/bin/sh\ncase "$1" in -q) cat {gpu};; *list-gpus) echo "GPU 0: H100 (UUID: GPU-a)";; esac\n'
    for name, text in {"nvidia-smi": driver, "dmesg": f"#!/bin/sh\ncat {tmp_path}/kernel.log\n"}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "kernel.log").write_text("")
    burn_in = ("acceptance.yml", inventory, "-e", "hours=1")
    programs = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}

    first = play(*burn_in, **programs)
    state, end = tmp_path / "out/burnin.json", time.monotonic() + 300
    while not (state.exists() and json.loads(state.read_text())["rounds"]) and time.monotonic() < end:
        assert first.poll() is None, ended(first)
        time.sleep(0.05)
    # An interruption while a worker sends its result can leave ansible-playbook waiting: docs/reliability.md.
    time.sleep(0.5)
    os.killpg(first.pid, signal.SIGINT)
    ended(first)
    stopped = written(tmp_path, "burnin.json")
    # As if all but a second of the hour had passed: one more round ends it, however busy the machine is.
    state.write_text(json.dumps({**stopped, "seconds": 3599}))
    (tmp_path / "kernel.log").write_text(XID + "\n")

    status, shown = ended(play(*burn_in, **programs))
    verdicts = written(tmp_path, "acceptance.json")
    assert (status, verdicts["bad"]) == (2, ["NODE1"]), shown
    assert verdicts["burnin"]["rounds"] == stopped["rounds"] + 1
    assert "Xid 48 of 0000:19:00" in shown
    [problem] = verdicts["problems"]
    assert problem["reason"]["values"]["round"] == stopped["rounds"]
