# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What the playbooks print: a line per phase and run, messages as they are, every error once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import measured
import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow

HOSTS = "A,B,"
PLAY = """
- name: Prepare
  hosts: all
  gather_facts: false
  connection: local
  vars: {ansible_python_interpreter: "{{ ansible_playbook_python }}"}
  tasks:
    - name: Set a variable
      ansible.builtin.set_fact: {x: 1}
    - name: Skip the phase
      ansible.builtin.include_tasks: change.yml
      when: false
    - name: Change the hosts
      ansible.builtin.include_tasks: change.yml
    - name: Try what may fail
      block:
        - name: Fail and be rescued
          ansible.builtin.fail: {msg: hidden}
      rescue:
        - name: Go on
          ansible.builtin.set_fact: {y: 1}
    - name: Show lines
      ansible.builtin.debug: {msg: ["| a | b |", "| 1 | 2 |"]}
    - name: Check the hosts
      ansible.builtin.assert:
        that: good | default(true) | bool
        fail_msg: "good=false: must be true"
        quiet: true
    - name: Check the items
      ansible.builtin.assert:
        that: item != 2 or good_items | default(true) | bool
        fail_msg: "item {{ item }} is wrong"
        quiet: true
      loop: [1, 2]
"""


def play(folder, *options, **extra):
    """Run the small playbook and return the lines of its output."""
    (folder / "play.yml").write_text(PLAY)
    (folder / "change.yml").write_text(
        "- name: Write a file\n  ansible.builtin.copy:\n    content: x\n"
        "    dest: '{{ playbook_dir }}/{{ inventory_hostname }}.txt'\n    mode: '0600'\n"
    )
    (folder / "ansible.cfg").write_text(
        f"[defaults]\ncallback_plugins = {ROOT}/callback_plugins\nstdout_callback = scalebook\n"
    )
    done = subprocess.run(
        [Path(sys.executable).parent / "ansible-playbook", "-i", HOSTS, "play.yml", *options]
        + ["-e", json.dumps(extra)],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return (done.stdout + done.stderr).splitlines()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("play")


@pytest.fixture(scope="module")
def good(folder):
    return play(folder)


def test_a_phase_is_one_line_with_its_changes(good):
    (line,) = (line for line in good if line.startswith("Change the hosts"))
    assert line.endswith(" s, 2 changed")


def test_a_phase_that_is_skipped_is_not_printed(good):
    assert not [line for line in good if "Skip the phase" in line]


def test_a_message_of_several_lines_is_printed_once_as_it_is(good):
    assert good.count("| a | b |") == good.count("| 1 | 2 |") == 1


def test_a_failure_that_is_rescued_is_not_an_error(good):
    assert not [line for line in good if "hidden" in line or "fatal" in line]


def test_the_output_has_a_line_per_phase_message_and_host(good):
    assert len(good) == 1 + 2 + 2, good


def test_an_error_of_several_hosts_is_printed_once_with_all_hosts(folder, good):
    lines = play(folder, good=False)
    errors = [line for line in lines if "good=false" in line]
    assert len(errors) == 1 and "Check the hosts: good=false: must be true" in errors[0]
    assert [line for line in lines if line.startswith("fatal: the same on ")]


def test_an_error_of_an_item_names_the_item_once(folder, good):
    assert sum("item 2 is wrong" in line for line in play(folder, "--limit", "A", good_items=False)) == 1


def test_in_check_mode_each_change_is_a_line(tmp_path):
    lines = play(tmp_path, "--check")
    shown = sorted(line for line in lines if line.startswith("would change"))
    assert shown == ["would change: [A] Write a file", "would change: [B] Write a file"]


def test_with_v_the_output_is_that_of_ansible(folder, good):
    lines = play(folder, "-v")
    assert [line for line in lines if line.startswith("TASK [Set a variable]")]
    assert [line for line in lines if line.startswith("PLAY RECAP")]


def ansible(playbook, *options):
    """Run a playbook of the project and return the lines that it prints."""
    done = subprocess.run(
        [Path(sys.executable).parent / "ansible-playbook", "-i", "inventory/local", playbook, *options],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return (done.stdout + done.stderr).splitlines()


def test_a_plan_of_four_cases_fits_15_lines():
    lines = ansible("bench.yml", "-e", "plan_only=true nodes=1,2 bsz=4,8")
    assert sum(line.lstrip().startswith("run ") for line in lines) == 4, lines
    assert len(lines) <= 15, lines


def test_a_report_fits_20_lines(tmp_path):
    campaign = measured.unpack("h200x4-2026-11-21/scaling", tmp_path / "scaling")
    lines = ansible("report.yml", "-e", f"campaign_dir={campaign}")
    assert f"Report: {campaign}/report/report.html" in lines
    assert len(lines) <= 20, lines
