# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The first question to a machine is who uses it, every question ends, root executes nothing of users."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
PLAYBOOKS, ROLES = ROOT / "playbooks", ROOT / "roles"
REFUSE = ROLES / "campaign/tasks/refuse_locked.yml"
BECOMES = ("ansible_become", "ansible_become_user", "ansible_become_method")


def plays(name):
    return yaml.safe_load((PLAYBOOKS / name).read_text())


def tasks_from(task):
    return task.get("ansible.builtin.include_role", {}).get("tasks_from")


def test_the_first_question_to_the_machines_is_who_uses_them():
    (play,) = (play for play in plays("machines.yml") if play.get("hosts") == "machines")
    assert tasks_from(play["tasks"][0]) == "refuse_locked"


@pytest.mark.parametrize("name", ["acceptance.yml", "microbench.yml", "remove.yml", "uninstall.yml"])
def test_nothing_but_the_input_is_looked_at_before_that_question(name):
    tasks = plays(name)[0]["tasks"]
    assert "ansible.builtin.import_tasks" in tasks[0]
    assert tasks_from(tasks[1]) == "refuse_locked"


@pytest.mark.parametrize("name", ["bench.yml", "preflight.yml", "release.yml"])
def test_who_stops_jobs_is_the_user_of_the_runs(name):
    """The programs below campaign_work are that user's: root would execute what this user has put there."""
    (play,) = (play for play in plays(name) if "vars/node_user.yml" in play.get("vars_files", ()))
    given = [play["vars"], *(task.get("vars", {}) for task in play["tasks"])]
    (become,) = ([v[key] for key in BECOMES] for v in given if BECOMES[0] in v)
    assert become == ["{{ __node_user_become }}", "{{ __node_user }}", "{{ __node_user_method }}"]


@pytest.mark.parametrize("name", ["acceptance.yml", "machines.yml", "microbench.yml"])
def test_whether_a_host_is_supported_is_the_second_question(name):
    (tasks,) = (
        names
        for play in plays(name)
        if "refuse_locked" in (names := [tasks_from(task) for task in play.get("tasks", [])])
    )
    assert tasks[tasks.index("refuse_locked") + 1] == "system"


def test_a_mirror_is_collected_on_hosts_that_are_supported_alone():
    (block,) = (task["block"] for task in plays("mirror.yml")[0]["tasks"] if "block" in task)
    assert tasks_from(block[0]) == "system"


def test_one_host_that_is_not_supported_ends_the_run_on_all():
    refuse = yaml.safe_load((ROLES / "preflight/tasks/system.yml").read_text())[-1]
    assert "ansible.builtin.assert" in refuse and refuse["any_errors_fatal"] is True


def test_only_one_place_refuses_a_system():
    """Playbooks ask role preflight, so that a host is refused everywhere for the same reason."""
    tasks = {file: file.read_text() for place in (PLAYBOOKS, ROLES) for file in place.rglob("*.yml")}
    assert [file.name for file, text in tasks.items() if "os_family" in text] == []
    assert [file.name for file, text in tasks.items() if "scalebook_system_refusal" in text] == ["system.yml"]


def started_nvidia_smi():
    """Return (file, line) of what starts nvidia-smi in a task or a node script."""
    files = [*PLAYBOOKS.glob("*.yml"), *ROLES.glob("*/tasks/*.yml"), *ROLES.glob("*/templates/*.j2")]
    for file in files:
        for line in file.read_text().splitlines():
            if re.search(r"nvidia-smi,? --", line) and not line.lstrip().startswith("#"):
                yield f"{file.parent.parent.name}/{file.name}", line


@pytest.mark.parametrize(("file", "line"), list(started_nvidia_smi()))
def test_no_driver_that_hangs_is_waited_for(file, line):
    assert re.search(r"timeout,? -k,? \W?5\W* \W?20\W* nvidia-smi", line), file


@pytest.fixture
def asked(tmp_path):
    """What the question prints where other users have put a fifo, and a link to a file without an end."""
    names = [tmp_path / name for name in ("endless", "fifo", "scalebook.lock")]
    names[0].symlink_to("/dev/zero")
    os.mkfifo(names[1])
    names[2].write_text('{"id": "me"}\n' + "x" * 1_000_000)
    (task,) = (task for task in yaml.safe_load(REFUSE.read_text()) if "ansible.builtin.raw" in task)
    command = re.sub(r"{{.*}}", shlex.join(map(str, names)), task["ansible.builtin.raw"])
    return subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, timeout=10).stdout


def test_what_others_put_where_the_lock_may_lie_neither_delays_nor_fills_the_answer(asked):
    assert asked.startswith('{"id": "me"}\n')
    assert len(asked) <= 1 << 16
