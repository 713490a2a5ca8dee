# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""acceptance.yml on simulated nodes whose interpreter prints what a node of a given speed would."""

import json
import subprocess

import pytest
from local_nodes import ROOT

pytestmark = pytest.mark.slow

INTERPRETER = """#!/usr/bin/python3
import json, random, sys
rate = {rate} * random.gauss(100, 0.2)
link = {{"forward": rate, "backward": rate}}
rates = {{"alone": {{"CPU": {{"copy": rate}}}}, "pair": link, "all": {{"all_reduce": rate}}}}[sys.argv[2]]
first = sys.argv[sys.argv.index("--rank") + 1] == "0" if "--rank" in sys.argv else True
print(json.dumps({{"name": "CPU", "rates": rates if first else {{}}, "traces": {{}}, "problems": {{}}}}))
"""


def play(playbook, inventory):
    """Run a playbook on an inventory."""
    return subprocess.run(
        ["ansible-playbook", "-i", inventory, playbook],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=ROOT, timeout=600,
    )  # fmt: skip


@pytest.fixture
def accepted(tmp_path):
    def start(**rates):
        hosts = {}
        for index in range(1, 5):
            node = f"NODE{index}"
            program = tmp_path / node
            program.write_text(INTERPRETER.format(rate=rates.get(node, 1)))
            program.chmod(0o755)
            hosts[node] = {"microbench_python": str(program)}
        common = {
            "ansible_connection": "local",
            "ansible_python_interpreter": "{{ ansible_playbook_python }}",
            "scalebook_home": str(tmp_path / "home"),
            "acceptance_out": str(tmp_path / "out"),
        }
        inventory = tmp_path / "hosts.yml"
        inventory.write_text(json.dumps({"nodes": {"hosts": hosts, "vars": common}}))
        done = play("acceptance.yml", inventory)
        return done, json.loads((tmp_path / "out/acceptance.json").read_text())

    return start


def test_a_healthy_cluster_is_accepted_with_status_0(accepted):
    done, verdicts = accepted()
    assert (done.returncode, verdicts["accepted"]) == (0, True), done.stdout + done.stderr
    assert "4 nodes; parts: 16 good, 1 no reference" in done.stdout
    assert "no reference all nodes: all_reduce " in done.stdout
    assert "acceptance.yml" in verdicts["command"]


def test_a_slow_node_is_named_with_status_2_and_left_out_of_the_inventory(accepted, tmp_path):
    done, verdicts = accepted(NODE3=0.9)
    assert (done.returncode, verdicts["bad"]) == (2, ["NODE3"]), done.stdout + done.stderr
    assert "scontrol update nodename=NODE3 state=drain" in done.stdout
    assert "NODE3: bad; repair these nodes, or leave them out" in done.stderr + done.stdout
    assert list(json.loads((tmp_path / "out/good.yml").read_text())["nodes"]["hosts"]) == [
        "NODE1",
        "NODE2",
        "NODE4",
    ]
    preflight = play("playbooks/preflight.yml", tmp_path / "hosts.yml")
    assert preflight.returncode == 2
    assert "acceptance.yml condemned it on" in preflight.stdout
    assert "Preflight failed: NODE3" in preflight.stdout + preflight.stderr
