# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Which Python a host has, and which of the two environments can drive it."""

import subprocess
import sys

import pytest
from ansible.module_utils.scalebook.provision import interpreters

BIONIC = "scalebook-python /usr/bin/python3 3.6.9\r\nscalebook-apt\r\n"
CENTOS = "scalebook-python /usr/bin/python2.7 2.7.5\n"


def refusal(output, core, interpreter="auto"):
    return interpreters.refusal("NODE3", core, interpreters.interpreters_in(output), interpreter)


@pytest.mark.parametrize(
    ("core", "version", "does"),
    [
        ("2.16.14", (3, 6, 15), True),
        ("2.16.14", (2, 7, 5), True),
        ("2.16.14", (3, 5, 2), False),
        ("2.16.14", (3, 13, 1), True),
        ("2.17.14", (3, 6, 15), False),
        ("2.17.14", (2, 7, 18), False),
        ("2.17.14", (3, 7, 0), True),
        ("2.19.14", (3, 7, 17), False),
        ("2.19.14", (3, 8, 10), True),
        ("2.21.5", (3, 8, 10), False),
        ("2.21.5", (3, 9, 2), True),
        ("2.30.0", (3, 8, 10), False),
        ("2.19.0rc1", (3, 8, 10), True),
    ],
)
def test_every_ansible_core_has_an_oldest_python(core, version, does):
    assert interpreters.drives(core, version) is does


def test_an_old_host_is_told_the_other_environment():
    said = refusal(BIONIC, "2.19.14")
    assert said.startswith(
        "NODE3 has Python 3.6.9 (/usr/bin/python3), and ansible-core 2.19.14 needs 3.8 or newer on a host: "
        "use that of requirements-legacy.txt."
    )
    assert "pip install --require-hashes -r requirements-legacy.txt" in said


@pytest.mark.parametrize(
    ("output", "core"),
    [(BIONIC, "2.16.14"), ("scalebook-python /usr/bin/python3 3.11.2\n" + BIONIC, "2.21.5")],
)
def test_a_host_with_one_python_that_will_do_is_taken(output, core):
    assert refusal(output, core) == ""


def test_a_python_2_alone_is_not_enough_for_what_runs_on_a_node():
    assert "has Python 2.7.5 (/usr/bin/python2.7), and what runs on a node needs 3.6" in refusal(
        CENTOS, "2.16.14"
    )
    assert refusal(CENTOS + BIONIC, "2.16.14") == ""


def test_of_old_and_new_ansible_is_told_the_newest_that_will_do():
    assert interpreters.choice("2.16.14", interpreters.interpreters_in(BIONIC + CENTOS)) == "/usr/bin/python3"
    assert interpreters.choice("2.16.14", interpreters.interpreters_in(BIONIC)) == ""
    assert interpreters.choice("2.19.14", interpreters.interpreters_in(BIONIC)) == ""


def test_a_host_without_python_is_told_how_to_get_one():
    assert refusal("Welcome!\nscalebook-apt\n", "2.19.14").startswith("NODE3 has no Python")


def test_an_interpreter_that_the_inventory_names_must_be_there():
    assert refusal("", "2.19.14", "/opt/python/bin/python3").startswith(
        "NODE3 has no /opt/python/bin/python3"
    )


@pytest.mark.parametrize(
    "line", ["scalebook-python python3 3.11.2", "echo scalebook-python %s", "Python 3.6.9"]
)
def test_other_lines_of_a_login_are_no_answer(line):
    assert interpreters.interpreters_in(line + "\n") == []


def test_an_interpreter_under_many_names_counts_once():
    assert len(interpreters.interpreters_in(BIONIC + BIONIC)) == 1


@pytest.mark.parametrize("output", ["scalebook-apt\r\n", "motd\nscalebook-apt"])
def test_a_host_with_apt_is_known(output):
    assert interpreters.has_apt(output)
    assert not interpreters.has_apt("bash: scalebook-apt: not found\n")


def run(script, **environment):
    return subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, env=environment)


def test_the_question_is_answered_by_any_shell_and_python():
    done = run(interpreters.script(sys.executable), PATH="/usr/bin:/bin")
    assert (done.returncode, done.stderr) == (0, "")
    (found,) = interpreters.interpreters_in(done.stdout)
    assert found.version == sys.version_info[:3]
    assert "\n" not in interpreters.script()


@pytest.mark.parametrize("name", ["/nowhere/python3", "/with space/python", "/it's/python", "; exit 7"])
def test_an_interpreter_that_is_not_there_answers_nothing(name):
    done = run(interpreters.script(name))
    assert (done.returncode, interpreters.interpreters_in(done.stdout)) == (0, [])


def test_a_shim_that_complains_is_no_python(tmp_path):
    shim = tmp_path / "python3.9"
    shim.write_text("#!/bin/sh\necho 'pyenv: python3.9: command not found'; exit 127\n")
    shim.chmod(0o755)
    shimmed, without = (
        interpreters.interpreters_in(run(interpreters.script(), PATH=str(path)).stdout)
        for path in (tmp_path, tmp_path / "none")
    )
    assert shimmed == without


def test_auto_leaves_the_choice_to_ansible():
    assert interpreters.script("auto_silent") == interpreters.script()
