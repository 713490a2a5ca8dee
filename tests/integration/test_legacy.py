# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Two environments take every playbook: ansible-core 2.16 drives Python 3.6, the current one refuses it."""

import json
import os
import re
import subprocess
import sys
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from guarded import Guarded
from legacy import environment, find_python
from nets import free_net

ROOT = Path(__file__).resolve().parents[2]
CURRENT = Path(sys.executable).parent
NET = free_net("10.11.18", "10.12.18", "10.13.18", "10.14.18")
FILES = ROOT / ".scalebook/test-cluster" / NET
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="containers with networks of their own need root")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def legacy():
    return environment()


@pytest.fixture(scope="module")
def old_python():
    found = find_python("3.6")
    if not found:
        pytest.skip("python3.6: none is found here, and Debian has none to install")
    return found


def play(commands, *argv, ok=True):
    """Run ansible-playbook of one of the two environments."""
    environ = {
        **os.environ,
        "PATH": f"{commands}:{os.environ['PATH']}",
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_ROLES_PATH": f"{ROOT}/roles:{ROOT}/tests/roles",
        "ANSIBLE_NOCOLOR": "1",
    }
    done = subprocess.run(
        [str(word) for word in (commands / "ansible-playbook", *argv)],
        cwd=ROOT, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    if ok:
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    return done


def said(done):
    return re.sub(r"\s+", " ", done.stdout.replace("\\n", " ") + done.stderr)


def every_playbook():
    at_root = [path for path in ROOT.glob("*.yml") if "import_playbook" in path.read_text()]
    scenarios = [path for path in ROOT.glob("molecule/*/*.yml") if path.name != "molecule.yml"]
    return sorted([*at_root, *ROOT.glob("playbooks/*.yml"), *scenarios])


def every_task(folder):
    """Write a playbook that imports every file of tasks of every role, and return its path."""
    tasks = [
        # By the role, whose own modules the tasks use.
        {"ansible.builtin.import_role": {"name": path.parent.parent.name, "tasks_from": path.stem}}
        for path in sorted(ROOT.glob("roles/*/tasks/*.yml"))
    ]
    path = folder / "every_task.yml"
    path.write_text(yaml.safe_dump([{"name": "Every task", "hosts": "nodes", "tasks": tasks}]))
    return path


@pytest.mark.parametrize("which", ["legacy", "current"])
def test_every_playbook_and_task_is_understood_by_both(which, request, tmp_path):
    commands = CURRENT if which == "current" else request.getfixturevalue("legacy")
    play(commands, "--syntax-check", *every_playbook(), every_task(tmp_path))


# -- local nodes with Python 3.6 -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def local_nodes(old_python, tmp_path_factory):
    """An inventory of local nodes whose Python is 3.6."""
    inventory = yaml.safe_load((ROOT / "inventory/local/hosts.yml").read_text())
    inventory["nodes"]["vars"]["ansible_python_interpreter"] = str(old_python)
    path = tmp_path_factory.mktemp("inventory") / "hosts.yml"
    path.write_text(yaml.safe_dump(inventory))
    return path


def test_a_campaign_runs_on_nodes_with_python_3_6(legacy, local_nodes, tmp_path):
    scripted = ["-i", local_nodes, "-e", "workload=scripted"]
    play(legacy, *scripted, "provision.yml")
    parameters = "nodes=1,2 repeats=1 scripted_step=0.003 campaign=legacy campaign_port=24300"
    done = play(legacy, *scripted, "bench.yml", "-e", f"{parameters} campaign_results={tmp_path}")
    records = [json.loads(path.read_text()) for path in tmp_path.glob("legacy/runs/*/1/result.json")]
    assert sorted((record["case"]["label"], record["status"]) for record in records) == [
        ("1n1g", "ok"),
        ("2n1g", "ok"),
    ]
    assert "speedup" in done.stdout
    assert (tmp_path / "legacy/report/report.html").is_file()


# -- container nodes: one with Python 3.6, one without any ---------------------------------------------


def ssh(node, command):
    argv = ["ssh", "-F", FILES / "ssh_config", "-o", "BatchMode=yes", node, command]
    done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def nodes(old_python):
    """Two container nodes; NODE1 shows the old Python beside its own."""
    up = [ROOT / "tests/cluster/up", "--net", NET, "--fresh", "--nodes", "2"]
    home = old_python.parents[1]
    subprocess.run([*up, "--mount", f"{home}:{home}"], check=True, capture_output=True, timeout=600)
    yield FILES / "inventory"
    subprocess.run([ROOT / "tests/cluster/down", "--net", NET], check=True, timeout=120)


@pytest.fixture
def old(nodes, old_python):
    """Options that make NODE1 a host whose Python is 3.6."""
    return ["-i", nodes, "--limit", "NODE1", "-e", f"ansible_python_interpreter={old_python}"]


@ROOT_ONLY
@pytest.mark.cluster
def test_current_ansible_refuses_a_host_with_python_3_6_in_a_sentence(old):
    done = play(CURRENT, *old, "provision.yml", ok=False)
    assert done.returncode == 2
    assert re.search(
        r"NODE1 has Python 3\.6\.\d+ \(/\S+\), and ansible-core 2\.\d+\.\d+ needs 3\.\d+", said(done)
    )
    assert "pip install --require-hashes -r requirements-legacy.txt" in said(done)
    # Nothing but the question has run there.
    assert re.search(r"^NODE1 .*changed=0 .*failed=1", done.stdout, re.M)


@ROOT_ONLY
@pytest.mark.cluster
@pytest.mark.parametrize("options", [["--check", "--diff"], []], ids=["check", "run"])
def test_legacy_ansible_sets_a_node_with_python_3_6_up(legacy, old, options):
    play(legacy, *old, "molecule/node/converge.yml", "--tags", "node_configure", *options)


@ROOT_ONLY
@pytest.mark.cluster
def test_a_second_run_of_legacy_ansible_changes_nothing(legacy, old):
    done = play(legacy, *old, "molecule/node/converge.yml", "--tags", "node_configure")
    assert re.search(r"^NODE1 .*changed=0 .*failed=0", done.stdout, re.M)


@pytest.fixture(scope="module")
def bare(nodes):
    """Take NODE2's Python away; return what a play of that host is started with."""
    ssh("NODE2", "apt-get purge -q -y 'python3*' 'libpython3*'; ! command -v python3")
    return ["-i", nodes, "--limit", "NODE2", "provision.yml", "--tags", "none_of_them"]


@ROOT_ONLY
@pytest.mark.cluster
def test_where_apt_cannot_get_python_it_is_quoted_without_its_tokens(bare):
    with ThreadingHTTPServer((f"{NET}.1", 0), Guarded) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        source = "/etc/apt/sources.list.d/guarded.list"
        url = f"{NET}.1:{server.server_port}"
        ssh("NODE2", f"echo 'deb http://me:canary-of-apt@{url} ./' >{source}")
        done = play(CURRENT, *bare, "-vvvv", ok=False)
        ssh("NODE2", f"rm {source}")
        server.shutdown()
    assert "NODE2 has no Python, and apt could not install it. apt says: " in said(done)
    assert f"http://***@{url}" in said(done)
    assert "canary-of-apt" not in done.stdout + done.stderr


@ROOT_ONLY
@pytest.mark.cluster
def test_a_host_without_python_gets_one_but_for_a_check(bare):
    done = play(CURRENT, *bare, "--check", "--diff")
    assert "NODE2 has no Python: apt would install python3" in said(done)
    ssh("NODE2", "! command -v python3")
    play(CURRENT, *bare)
    ssh("NODE2", "python3 --version")
