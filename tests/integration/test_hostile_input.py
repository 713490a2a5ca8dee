# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What nobody can mean is refused by the commands that people type: with its place, and nothing was run."""

import os
import subprocess
import threading
import time
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
        began = time.monotonic()
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
        done.seconds = time.monotonic() - began
        done.called = (tmp_path / "called").exists()
        return done

    return run


def refused(done, *words):
    said = done.stdout + done.stderr
    assert done.returncode != 0, said
    assert not done.called, "something was run"
    assert all(word in said for word in words), said
    assert done.seconds < 10  # 2 s on a machine with nothing else to do
    assert done.memory < 300_000


NAMES = ['";rm -rf /"', "$(reboot)", '"../up"', "\"{{ lookup('pipe', 'rm x') }}\"", "NODE[1:1000000000]"]


@pytest.mark.parametrize(
    ("playbook", "name"),
    [
        *(("bench.yml", name) for name in NAMES),
        ("provision.yml", NAMES[1]),
        ("playbooks/preflight.yml", NAMES[1]),
    ],
)
def test_a_hostile_name_is_refused_with_file_and_line(play, tmp_path, playbook, name):
    path = tmp_path / "hosts.yml"
    path.write_text(NODES.format(f"{name}: {{}}", tmp_path))
    refused(play(playbook, inventory=path), f"{path}:3: ")


def test_a_host_listed_twice_is_refused_with_file_and_line(play, tmp_path):
    path = tmp_path / "hosts.yml"
    path.write_text(NODES.format("NODE1: {}\n    NODE1: {slots: 8}", tmp_path))
    refused(play("bench.yml", inventory=path), f"{path}:4: 'NODE1' is there already, in line 3")


def bomb(indent=""):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 11)]
    return "\n".join(indent + line for line in [*lines, "bsz: *a10"])


@pytest.mark.parametrize("where", ["hosts.yml", "group_vars/nodes.yml", "host_vars/NODE1.yml"])
def test_aliases_that_make_billions_in_an_inventory_are_refused(play, tmp_path, where):
    path, bad = tmp_path / "hosts.yml", tmp_path / where
    path.write_text(NODES.format("NODE1: {}", tmp_path))
    bad.parent.mkdir(exist_ok=True)
    bad.write_text(f"nodes:\n  vars:\n{bomb('    ')}\n" if where == "hosts.yml" else bomb())
    refused(play("bench.yml", inventory=path), f"{bad}:", "aliases that make")


def test_aliases_that_make_billions_in_variables_are_refused(play, tmp_path):
    path = tmp_path / "night.yml"
    path.write_text(bomb())
    refused(play("bench.yml", "-e", f"@{path}"), f"{path}:7: aliases that make")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("nodes=1000000000", "nodes=1000000000: allowed are whole numbers from 1 to 100000"),
        ("bsz=NaN", "bsz=NaN: allowed are whole numbers"),
        ("bsz=64,64", "bsz: 64 is named twice"),
        ('{"repeats": 1e400}', "repeats=inf: allowed are whole numbers"),
        ("bzs=64", "bzs: no variable of a campaign has this name"),
        ("framework=$(reboot)", "framework=$(reboot): allowed are"),
        ("campaign=../../up", "campaign='../../up': allowed are"),
        ("dtype=$(reboot)", "dtype=$(reboot): allowed are"),
    ],
)
def test_a_value_that_no_campaign_can_mean_is_refused_by_its_variable(play, tmp_path, given, words):
    path = tmp_path / "hosts.yml"
    path.write_text(NODES.format("NODE1: {}", tmp_path))
    refused(play("bench.yml", "-e", given, inventory=path), words)


@pytest.mark.parametrize(
    "playbook", ["provision.yml", "bench.yml", "playbooks/preflight.yml", "playbooks/mirror.yml"]
)
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("framework=../x", "framework=../x: allowed are deepspeed_bert, "),
        ("stack_name=../../x", "stack_name=../../x: allowed are dlperf2020, modern"),
        ("scalebook_home=/opt/$(reboot)", "scalebook_home='/opt/$(reboot)' of NODE1: an absolute path"),
        ("scalebook_home=/opt/../etc", "scalebook_home='/opt/../etc' of NODE1: an absolute path"),
    ],
)
def test_a_value_that_no_playbook_can_mean_is_refused_by_its_variable(play, tmp_path, playbook, given, words):
    path = tmp_path / "hosts.yml"
    path.write_text(NODES.format("NODE1: {}", tmp_path))
    refused(play(playbook, "-e", given, "-e", f"mirror={tmp_path}/mirror", inventory=path), words)


def test_an_inventory_that_does_not_say_where_to_install_is_refused(play, tmp_path):
    path = tmp_path / "hosts.yml"
    path.write_text("nodes: {hosts: {NODE1: {ansible_connection: local}}}")
    refused(play("provision.yml", inventory=path), "scalebook_home='' of NODE1: an absolute path")
