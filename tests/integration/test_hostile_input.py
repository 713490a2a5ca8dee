# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What nobody can mean is refused by the commands that people type: with its place, and nothing was run."""

import os
import subprocess
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("nvidia-smi", "ssh", "sftp", "mpirun", "rm", "reboot")
NODES = """
nodes:
  hosts:
    {}
  vars: {{ansible_connection: local, ansible_python_interpreter: python3, scalebook_home: {}}}
""".lstrip()


@pytest.fixture
def play(tmp_path):
    """Run a playbook with programs in front that tell when they are called."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in TOOLS:
        (programs / name).write_text(f"#!/bin/sh\necho {name} >> {tmp_path}/called\nexit 1\n")
        (programs / name).chmod(0o755)

    def run(playbook, *words, inventory=None):
        sources = ["-i", inventory] if inventory else []
        command = ["ansible-playbook", *map(str, sources), playbook, *map(str, words)]
        out, err = tmp_path / "stdout", tmp_path / "stderr"
        with out.open("w") as stdout, err.open("w") as stderr:
            child = subprocess.Popen(
                command,
                cwd=ROOT,
                stdout=stdout,
                stderr=stderr,
                env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
            )
            late = threading.Timer(120, child.kill)
            late.start()
            # What this child and its own took: the figure for all children holds those of other tests.
            _, status, usage = os.wait4(child.pid, 0)
            late.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        done = subprocess.CompletedProcess(command, child.returncode, out.read_text(), err.read_text())
        done.memory = usage.ru_maxrss  # KiB
        # Processor time, as the clock of a busy machine proves nothing.
        done.seconds = usage.ru_utime + usage.ru_stime
        done.called = (tmp_path / "called").exists()
        return done

    return run


def refused(done, *words):
    said = done.stdout + done.stderr
    assert done.returncode != 0, said
    assert not done.called, "something was run"
    assert all(word in said for word in words), said
    assert done.seconds < 10  # mostly 2 s
    assert done.memory < 300_000


NAMES = ['";rm -rf /"', "$(reboot)", '"../up"', "-oProxyCommand=id"]


def first_of(*values):
    """Return the values as parameters of a test; in scripts/test --quick the first one stands for all.

    All playbooks read their variables by the same code, which tests/unit/plan tests with all values.
    """
    return [values[0], *(pytest.param(value, marks=pytest.mark.slow) for value in values[1:])]


OTHERS = ("provision.yml", "playbooks/preflight.yml", "playbooks/mirror.yml")


def inventory_of(tmp_path, node="NODE1: {}"):
    """Write an inventory with one node, and return its path."""
    path = tmp_path / "hosts.yml"
    path.write_text(NODES.format(node, tmp_path))
    return path


@pytest.mark.parametrize("name", first_of(*NAMES))
def test_a_hostile_name_is_refused(play, tmp_path, name):
    refused(play("bench.yml", inventory=inventory_of(tmp_path, f"{name}: {{}}")), "host name")


@pytest.mark.slow
@pytest.mark.parametrize("playbook", [*OTHERS, "playbooks/microbench.yml"])
def test_a_hostile_name_is_refused_by_every_playbook(play, tmp_path, playbook):
    refused(play(playbook, inventory=inventory_of(tmp_path, f"{NAMES[1]}: {{}}")), "host name")


@pytest.mark.parametrize(
    "variable", first_of("ansible_host: $(reboot)", "node_address: -oProxyCommand=id", "slots: nan")
)
def test_a_hostile_variable_of_a_host_is_refused(play, tmp_path, variable):
    path = tmp_path / "hosts.yml"
    path.write_text(f"nodes: {{hosts: {{NODE1: {{{variable}}}}}, vars: {{scalebook_home: {tmp_path}}}}}")
    refused(play("bench.yml", inventory=path), "NODE1: ")


@pytest.mark.parametrize(
    "mistakes",
    first_of(
        {
            "nodes=1000000000": "nodes=1000000000: allowed are whole numbers from 1 to 100000",
            "bsz=NaN": "bsz=NaN: allowed are whole numbers",
            "bzs=64": "bzs: there is no parameter of this name",
            "workload=$(reboot)": "workload=$(reboot): allowed are",
            "campaign=../../up": "campaign='../../up': allowed are",
        },
        {
            '{"repeats": 1e400}': "repeats=inf: allowed are whole numbers",
            "bsz=64,64": "bsz: 64 is named twice",
            "nodes=0": "nodes=0: allowed are",
            "dtype=$(reboot)": "dtype=$(reboot): allowed are",
        },
        {"bsz=0": "bsz=0: allowed are", "plan_only=ture": "plan_only=ture: allowed are true and false"},
    ),
)
def test_values_that_no_campaign_can_mean_are_refused_by_their_variables(play, tmp_path, mistakes):
    given = [word for value in mistakes for word in ("-e", value)]
    refused(play("bench.yml", *given, inventory=inventory_of(tmp_path)), *mistakes.values())


def test_aliases_that_stand_for_millions_of_values_are_refused(play, tmp_path):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{step}: &a{step} [{', '.join([f'*a{step - 1}'] * 9)}]" for step in range(1, 10)]
    (tmp_path / "values.yml").write_text("\n".join(lines))
    done = play("report.yml", "-e", f"@{tmp_path}/values.yml")
    refused(done, "it has more than 100000 values, its YAML aliases written out")


@pytest.mark.parametrize("playbook", first_of("bench.yml", *OTHERS))
def test_values_that_no_playbook_accepts_are_refused_by_their_variables(play, tmp_path, playbook):
    mistakes = {
        "workload=../x": "workload=../x: allowed are",
        "framework=torch_bert": "framework: use workload=torch_bert",
        "stack_name=../../x": "stack_name=../../x: allowed are dlperf2020, modern",
        "plan_only=ture": "plan_only=ture: allowed are true and false",
    }
    given = [word for value in mistakes for word in ("-e", value)]
    refused(play(playbook, *given, inventory=inventory_of(tmp_path)), *mistakes.values())


@pytest.mark.parametrize("playbook", first_of("bench.yml", *OTHERS))
@pytest.mark.parametrize("place", first_of("/opt/$(reboot)", "/opt/../etc"))
def test_a_hostile_place_of_an_installation_is_refused(play, tmp_path, playbook, place):
    done = play(playbook, "-e", f"scalebook_home={place}", inventory=inventory_of(tmp_path))
    refused(done, f"scalebook_home='{place}' of NODE1: it must be an absolute path")


@pytest.mark.parametrize(
    "playbook", first_of("provision.yml", "playbooks/preflight.yml", "playbooks/microbench.yml")
)
def test_a_misspelt_name_or_boolean_is_refused_in_every_playbook(play, tmp_path, playbook):
    mistakes = {
        "playbooks/preflight.yml": {"reap=ture": "reap=ture: allowed are true and false"},
        "provision.yml": {
            "provision_cuda=jes": "provision_cuda=jes: allowed are true and false",
            "provision_components=python": "provision_components=python: allowed are cuda, nccl,",
            "framwork=torch_bert": "framwork: there is no parameter of this name",
        },
        "playbooks/microbench.yml": {"nodez=2": "did you mean nodes?"},
    }[playbook]
    given = [word for value in mistakes for word in ("-e", value)]
    refused(play(playbook, *given, inventory=inventory_of(tmp_path)), *mistakes.values())


def test_a_plan_of_125_nodes_asks_none_of_them(play, tmp_path):
    path = tmp_path / "hosts.yml"
    hosts = "\n".join(f"    NODE{i}: {{ansible_host: 203.0.113.{i}}}" for i in range(1, 126))
    path.write_text(f"nodes:\n  hosts:\n{hosts}\n  vars: {{slots: 8, scalebook_home: /opt/scalebook}}\n")
    done = play("bench.yml", "-e", "plan_only=true device=gpu workload=tf2_bert,torch_bert", inventory=path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.called, "something was run"
    assert "125n8g" in done.stdout
    assert done.seconds < 20  # of several processes at a time; below 5 s by the clock where nothing else runs


def test_an_inventory_that_does_not_say_where_to_install_is_refused(play, tmp_path):
    path = tmp_path / "hosts.yml"
    path.write_text("nodes: {hosts: {NODE1: {ansible_connection: local}}}")
    refused(play("provision.yml", inventory=path), "scalebook_home='' of NODE1: it must be an absolute path")
