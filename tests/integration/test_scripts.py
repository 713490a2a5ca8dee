# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""scripts/setup, scripts/demo and scripts/test prepare .venv, or print in one sentence why they cannot."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def make_checkout(path):
    path.mkdir(parents=True)
    shutil.copytree(ROOT / "scripts", path / "scripts")
    (path / "empty.txt").write_text("")
    return path


@pytest.fixture
def checkout(tmp_path):
    return make_checkout(tmp_path / "checkout")


def run(command, cwd="/", **environment):
    return subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )


def with_lib(checkout, code, **environment):
    return run(["bash", "-c", f'set -euo pipefail; . "{checkout}/scripts/lib.sh"; {code}'], **environment)


@pytest.mark.parametrize("script", ["setup", "demo", "test"])
def test_help_needs_nothing_installed(checkout, script):
    done = run([checkout / "scripts" / script, "--help"])
    assert (done.returncode, done.stderr) == (0, "")
    assert f"usage: scripts/{script}" in done.stdout
    assert not (checkout / ".venv").exists()


def test_the_setup_says_how_to_go_on_and_installs_nothing_but_the_environment(checkout):
    (checkout / "empty.txt").rename(checkout / "requirements.txt")
    done = run([checkout / "scripts/setup"])
    assert done.returncode == 0, done.stderr
    assert "The control node is ready" in done.stdout and "cp -r inventory/cluster" in done.stdout
    made = {path.name for path in checkout.iterdir()} - {"scripts", "requirements.txt"}
    assert made == {".venv", ".scalebook"}


def test_an_option_that_the_setup_does_not_have_is_refused(checkout):
    assert run([checkout / "scripts/setup", "--cluster"]).returncode == 2


def test_a_campaign_before_the_setup_is_refused_with_the_fix(checkout):
    (checkout / "module_utils").symlink_to(ROOT / "module_utils")
    done = run([sys.executable, checkout / "scripts/bench", "--bsz", "4"], PATH="/usr/bin:/bin")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "scripts/bench: ansible-playbook is not installed here. Fix: run scripts/setup\n"


@pytest.mark.parametrize("name", ["it's", "a:b", "$HOME", "{{ x }}", "a\tb"])
def test_a_path_that_ansible_cannot_work_in_is_refused(tmp_path, name):
    done = run([make_checkout(tmp_path / name) / "scripts/demo"])
    assert done.returncode == 1
    assert "Move it to a path of letters" in done.stderr


@pytest.mark.parametrize("name", ["with space", "名", "a=b,c+d@e%f"])
def test_other_paths_are_not(tmp_path, name):
    assert with_lib(make_checkout(tmp_path / name), "check_place").returncode == 0


def test_a_world_writable_checkout_is_refused_with_a_fix(checkout):
    checkout.chmod(0o777)
    done = run([checkout / "scripts/demo"])
    assert done.returncode == 1
    assert f"Fix: chmod o-w '{checkout}'" in done.stderr


@pytest.mark.parametrize("locale", ["C", "xx_XX.UTF-8"])
def test_a_locale_without_utf8_is_replaced(checkout, locale):
    assert with_lib(checkout, "check_place; locale charmap", LC_ALL=locale).stdout == "UTF-8\n"


def test_settings_that_change_where_python_looks_are_dropped(checkout):
    assert with_lib(checkout, 'echo "${PYTHONPATH-gone}"', PYTHONPATH="/nowhere").stdout == "gone\n"


# A machine whose distribution has no usable Python.
NONE_OF_THE_DISTRIBUTION = """
eval "any_$(declare -f usable_python)"
usable_python() { [[ $1 != /usr/bin/* ]] && any_usable_python "$1"; }
"""


def test_the_python_of_the_distribution_is_the_first_choice(checkout, tmp_path):
    (tmp_path / "python3").symlink_to(sys.executable)
    done = with_lib(checkout, "usable_python() { :; }; find_python", PATH=f"{tmp_path}:/usr/bin:/bin")
    assert done.stdout == "/usr/bin/python3\n"


def test_a_shim_that_fails_is_not_a_python(checkout, tmp_path):
    shims = tmp_path / "shims"
    shims.mkdir()
    for name, line in {"python3": "exit 127", "python3.13": f'exec {sys.executable} "$@"'}.items():
        (shims / name).write_text(f"#!/bin/sh\n{line}\n")
        (shims / name).chmod(0o755)
    script = f"{NONE_OF_THE_DISTRIBUTION} find_python"
    done = with_lib(checkout, script, PATH=f"{shims}:/usr/bin:/bin")
    assert done.stdout == f"{shims}/python3.13\n"


def test_the_environment_is_not_made_from_its_own_python(checkout):
    inside = checkout / ".venv/bin"
    inside.mkdir(parents=True)
    (inside / "python3").symlink_to(sys.executable)
    script = f"{NONE_OF_THE_DISTRIBUTION} find_python"
    done = with_lib(checkout, script, PATH=f"{inside}:{Path(sys.executable).parent}:/usr/bin:/bin")
    assert done.stdout == f"{Path(sys.executable).parent}/python3\n"


def test_a_python_without_ensurepip_is_not_usable(checkout, tmp_path):
    python = tmp_path / "python3"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -c "import sys; sys.exit(1)"\n')
    python.chmod(0o755)
    assert with_lib(checkout, f"usable_python {python} || echo no").stdout == "no\n"


def test_without_python_and_apt_the_error_names_a_fix(checkout):
    done = with_lib(
        checkout, "usable_python() { false; }; install_python() { false; }; prepare_venv empty.txt"
    )
    assert done.returncode == 1
    assert "sudo apt-get install python3-venv" in done.stderr


def test_a_newer_python_is_installed_where_the_default_is_too_old(checkout, tmp_path):
    """The default python3 is too old, so the newest python3.x that apt offers is installed."""
    fakes = tmp_path / "fakes"
    fakes.mkdir()
    log = tmp_path / "apt"
    for name, body in {
        "apt-get": f'echo "$*" >> {log}',
        "apt-cache": 'case "$2" in python3-venv | python3.11-venv) echo "$2 | 1 | here" ;; esac',
        "sudo": 'shift; exec "$@"',
    }.items():
        (fakes / name).write_text(f"#!/bin/sh\n{body}\n")
        (fakes / name).chmod(0o755)
    usable = f"usable_python() {{ grep -qs python3.11-venv {log}; }}"
    path = f"{fakes}:{os.environ['PATH']}"
    done = with_lib(checkout, f"{usable}; find_python || install_python; find_python >/dev/null", PATH=path)
    assert done.returncode == 0, done.stderr
    install = "install -y --no-install-recommends"
    assert log.read_text() == f"update\n{install} python3-venv\n{install} python3.11-venv\n"


@pytest.mark.slow
def test_an_unreachable_registry_is_named(checkout):
    (checkout / "pins.txt").write_text(f"scalebook-absent==1 --hash=sha256:{'0' * 64}\n")
    closed = {
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_RETRIES": "1",
    }
    done = with_lib(checkout, "prepare_venv pins.txt", **closed)
    assert done.returncode == 1
    assert "the package registry cannot be reached" in done.stderr
    assert not (checkout / ".venv/.scalebook-pins.txt").exists()


@pytest.mark.slow
def test_the_environment_is_made_once_and_again_after_a_move(checkout):
    again = "prepare_venv empty.txt"
    assert "Installing empty.txt" in with_lib(checkout, again).stdout
    assert with_lib(checkout, again).stdout == ""

    (checkout / ".venv/.scalebook-empty.txt").unlink()  # as an interrupted install leaves it
    assert "Installing empty.txt" in with_lib(checkout, again).stdout

    moved = checkout.rename(checkout.with_name("moved"))
    assert "Installing empty.txt" in with_lib(moved, again).stdout
    assert f"{moved}/.venv/bin/python" in (moved / ".venv/bin/pip").read_text()


def test_an_environment_that_is_a_link_is_refused_and_not_emptied(checkout, tmp_path):
    """`python -m venv --clear` would empty the directory that it leads to, another checkout's."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "kept").touch()
    (checkout / ".venv").symlink_to(other)
    done = with_lib(checkout, "prepare_venv empty.txt")
    assert done.returncode == 1
    assert f".venv is a link to {other}" in done.stderr
    assert (other / "kept").exists()
