# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Finding an interpreter: the right version, accepted only after it has reported its version itself."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from role_files import load
from run_module import run_module

python_find = load("python", "python_find")
ALL = ["system", "pyenv", "conda", "uv"]


@pytest.fixture
def machine(tmp_path):
    """A machine with no Python but what a test puts there: machine(path, **what it says of itself)."""
    answers = {}

    class Machine:
        environ = {"HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "bin")}

        def put(self, path, version="3.8", **answer):
            path = tmp_path / path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(str(len(answers)))
            path.chmod(0o755)
            answers[str(path)] = {
                "executable": str(path),
                "version": version,
                "implementation": "CPython",
                "lacks": [],
                "venv": True,
                **answer,
            }
            return str(path)

        def broken(self, path):
            answers[self.put(path)] = "does not start: Exec format error"

        def find(self, versions, search=ALL):
            # The machine that runs the tests has interpreters of its own: those are of no version asked for.
            def probe(path):
                return answers.get(path, {"version": "3.0"})

            return python_find.find(versions, search, str(tmp_path / "uv"), self.environ, probe)

    return Machine()


def test_places_are_asked_in_the_order_given(machine):
    system, pyenv = machine.put("bin/python3.8"), machine.put("home/.pyenv/versions/3.8.18/bin/python3.8")
    assert machine.find(["3.8"], ["system", "pyenv"])["found"]["executable"] == system
    found = machine.find(["3.8"], ["pyenv", "system"])["found"]
    assert (found["executable"], found["source"]) == (pyenv, "pyenv")


@pytest.mark.parametrize(
    "path",
    [
        "bin/python3.8",
        "bin/python3",
        "home/.pyenv/versions/3.8.2/bin/python3.8",
        "home/miniconda3/bin/python3.8",
        "home/miniforge3/envs/tf/bin/python3.8",
        "home/micromamba/envs/tf/bin/python3.8",
        "home/.conda/envs/tf/bin/python3.8",
        "uv/cpython-3.8.20-linux-x86_64-gnu/bin/python3.8",
        "home/.local/share/uv/python/cpython-3.8.20-linux-x86_64-gnu/bin/python3.8",
    ],
)
def test_an_interpreter_is_found_in_each_place(machine, path):
    path = machine.put(path)
    assert machine.find(["3.8"])["found"]["executable"] == path


def test_an_environment_that_conda_noted_is_found_wherever_it_is(machine, tmp_path):
    path = machine.put("projects/bert/env/bin/python3.8")
    note = tmp_path / "home/.conda/environments.txt"
    note.parent.mkdir(parents=True)
    note.write_text(f"{tmp_path / 'gone'}\n{tmp_path / 'projects/bert/env'}\n")
    found = machine.find(["3.8"])["found"]
    assert (found["executable"], found["source"]) == (path, "conda")


def test_an_interpreter_in_a_prefix_of_condas_shape_makes_environments_of_its_own(tmp_path):
    """A real interpreter, moved as conda moves one: its prefix is where it lies, not where it was built."""
    version = "%d.%d" % sys.version_info[:2]
    base, prefix = Path(sys.base_prefix), tmp_path / "miniconda3/envs/tf"
    (prefix / "bin").mkdir(parents=True)
    shutil.copy2((base / "bin" / f"python{version}").resolve(), prefix / f"bin/python{version}")
    (prefix / "lib").symlink_to(base / "lib")
    environ = {"HOME": str(tmp_path), "LD_LIBRARY_PATH": str(base / "lib")}
    found = run_module("python_find", environ, versions=[version], search=["conda"])["found"]
    assert (found["executable"], found["source"]) == (str(prefix / f"bin/python{version}"), "conda")
    make = [found["executable"], "-I", "-m", "venv", "--without-pip", str(tmp_path / "venv")]
    subprocess.run(make, env=environ, check=True)
    tell = "import sys; print(sys.base_prefix)"
    done = subprocess.run(
        [tmp_path / "venv/bin/python", "-I", "-c", tell],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(prefix)


def test_the_newest_patch_release_is_taken(machine):
    machine.put("home/.pyenv/versions/3.8.9/bin/python3.8")
    newest = machine.put("home/.pyenv/versions/3.8.18/bin/python3.8")
    assert machine.find(["3.8"])["found"]["executable"] == newest


def test_a_pyenv_shim_is_no_interpreter(machine):
    machine.put("home/.pyenv/shims/python3.8")
    machine.environ["PATH"] = str(Path(machine.environ["HOME"]) / ".pyenv/shims")
    assert machine.find(["3.8"])["found"] is None


def test_another_version_under_the_name_python3_is_passed_over(machine):
    machine.put("bin/python3", version="3.11")
    assert machine.find(["3.8"]) == {"found": None, "rejected": []}


def test_versions_are_tried_in_the_order_given(machine):
    machine.put("bin/python3.9", version="3.9")
    machine.put("bin/python3.11", version="3.11")
    assert machine.find(["3.11", "3.9"])["found"]["version"] == "3.11"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [({"lacks": ["_ssl"]}, "lacks the module _ssl"), ({"implementation": "PyPy"}, "is PyPy, not CPython")],
)
def test_an_interpreter_that_will_not_do_is_named_with_its_reason(machine, answer, reason):
    path = machine.put("bin/python3.8", **answer)
    assert machine.find(["3.8"], ["pyenv", "conda"])["rejected"] == []
    assert f"{path} {reason}" in machine.find(["3.8"])["rejected"]


def test_an_interpreter_that_does_not_start_is_named(machine):
    machine.broken("bin/python3.8")
    assert any("does not start" in reason for reason in machine.find(["3.8"])["rejected"])


def test_one_that_can_make_environments_is_preferred(machine):
    machine.put("bin/python3.8", venv=False)
    pyenv = machine.put("home/.pyenv/versions/3.8.18/bin/python3.8")
    assert machine.find(["3.8"])["found"]["executable"] == pyenv


def test_one_without_venv_is_better_than_none(machine):
    system = machine.put("bin/python3.8", venv=False)
    assert machine.find(["3.8"])["found"]["executable"] == system


def test_a_real_interpreter_tells_its_version_and_base():
    answer = python_find.probe(sys.executable)
    assert answer["version"] == "%d.%d" % sys.version_info[:2]
    assert Path(answer["executable"]).is_file()
    assert not Path(answer["executable"]).is_relative_to(sys.prefix) or sys.prefix == sys.base_prefix


def test_what_is_no_interpreter_does_not_start(tmp_path):
    path = tmp_path / "python3.8"
    path.write_text("#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    assert python_find.probe(str(path)).startswith("does not start")


def test_the_module_finds_an_interpreter():
    version = "%d.%d" % sys.version_info[:2]
    environ = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    result = run_module("python_find", environ, versions=[version], search=["system"])
    assert (result["found"]["version"], result["changed"]) == (version, False)


def test_the_module_reports_that_there_is_none():
    result = run_module("python_find", versions=["3.4"])
    assert result["found"] is None and "failed" not in result


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
def test_root_does_not_start_an_interpreter_that_somebody_else_may_change(tmp_path):
    planted = tmp_path / "python3.99"
    planted.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    planted.chmod(0o755)
    os.chown(planted, 12345, 12345)
    options = {"versions": ["3.99"], "search": ["system"], "env": {"PATH": f"{tmp_path}:/usr/bin:/bin"}}
    (rejected,) = run_module("python_find", root_only=True, **options)["rejected"]
    assert rejected == f"{planted} is not started as root: {planted} belongs to uid 12345"
    assert not (tmp_path / "started").exists()
    run_module("python_find", root_only=False, **options)
    assert (tmp_path / "started").exists()
