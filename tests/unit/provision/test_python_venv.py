# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Creating an environment from a lock: whole, with the hashes, or not recorded as created."""

import hashlib
import io
import os
import subprocess
import sys
import tarfile
import zipfile

import pytest
from role_files import load
from run_module import run_module

python_venv = load("python", "python_venv")


def wheel(folder, name, version="1.0"):
    """Write a wheel with one module; return its line of a lock."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"VERSION = '{version}'\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in files.items():
            archive.writestr(member, text)
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


# Writes the wheel of `source`; `tool`, which it needs for that, is in no environment but by the build lock.
BACKEND = """
import zipfile
import tool
INFO = "source-1.0.dist-info"
FILES = {
    "source.py": "VERSION = '1.0'",
    INFO + "/METADATA": "Metadata-Version: 2.1\\nName: source\\nVersion: 1.0\\n",
    INFO + "/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    INFO + "/RECORD": "source.py,,\\n",
}
def build_wheel(folder, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(folder + "/source-1.0-py3-none-any.whl", "w") as archive:
        for name, text in FILES.items():
            archive.writestr(name, text)
    return "source-1.0-py3-none-any.whl"
"""
PROJECT = '[build-system]\nrequires = ["tool"]\nbuild-backend = "backend"\nbackend-path = ["."]\n'


def source(folder):
    """Write a source distribution; return its line of a lock."""
    path = folder / "source-1.0.tar.gz"
    files = {"backend.py": BACKEND, "pyproject.toml": PROJECT, "PKG-INFO": "Name: source\nVersion: 1.0\n"}
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"source-1.0/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return f"source==1.0 --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


@pytest.fixture
def sources(tmp_path):
    """Options of the module for an environment with a source distribution, which `tool` builds."""
    lock = source(tmp_path)
    return {
        "path": str(tmp_path / "venv"),
        "python": sys.executable,
        "lock": lock,
        "pip_lock": wheel(tmp_path, "thing"),
        "build_lock": wheel(tmp_path, "tool"),
        "index": f"--no-index\n--find-links {tmp_path}\n",
    }


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Options of the module for an environment with the package `thing` and, as if it was pip, `tool`."""
    folder = tmp_path_factory.mktemp("wheels")
    return {
        "path": str(tmp_path_factory.mktemp("home") / "venv"),
        "python": sys.executable,
        "lock": wheel(folder, "thing"),
        "pip_lock": wheel(folder, "tool"),
        "index": f"--no-index\n--find-links {folder}\n",
    }


@pytest.fixture(scope="module")
def created(site):
    """The result of the first run."""
    return run_module("python_venv", **site, _ansible_diff=True)


def test_the_environment_has_the_packages_of_both_locks_and_pip(site, created):
    assert created["changed"]
    code = "import thing, tool, pip; print(thing.VERSION, tool.VERSION)"
    python = f"{site['path']}/bin/python"
    done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1.0 1.0\n"


def test_the_diff_shows_the_interpreter_and_the_lock(site, created):
    assert created["diff"]["before"] == ""
    assert created["diff"]["after"] == f"# interpreter: {site['python']}\n{site['lock']}\n"


def test_a_second_run_changes_nothing(site, created):
    elsewhere = {**site, "index": "--index-url http://127.0.0.1:9\n"}
    assert run_module("python_venv", **elsewhere)["changed"] is False


def test_a_check_reports_another_lock_and_changes_nothing(site, created):
    options = {**site, "lock": "other==1", "_ansible_check_mode": True}
    assert run_module("python_venv", **options)["changed"]
    assert run_module("python_venv", **site)["changed"] is False


def test_a_check_of_a_bare_machine_needs_no_interpreter(site, tmp_path):
    options = {**site, "path": str(tmp_path / "venv"), "python": "", "_ansible_check_mode": True}
    assert run_module("python_venv", **options)["changed"]
    assert list(tmp_path.iterdir()) == []


def test_a_package_with_another_hash_is_refused_and_the_environment_is_not_recorded(site, tmp_path):
    name, _ = site["lock"].split("=sha256:")
    options = {**site, "path": str(tmp_path / "venv"), "lock": f"{name}=sha256:{'0' * 64}"}
    result = run_module("python_venv", **options)
    assert (result["failed"], result["lacking"]) == (True, False)
    assert "0" * 64 in result["msg"]
    assert not (tmp_path / "venv/scalebook.lock").exists()


def test_a_source_distribution_is_built_with_the_packages_of_the_build_lock_alone(sources):
    result = run_module("python_venv", **{**sources, "lock": f"--no-binary source\n{sources['lock']}"})
    assert result["changed"], result
    done = subprocess.run([f"{sources['path']}/bin/python", "-I", "-c", "import source"], check=False)
    assert done.returncode == 0


def test_a_source_distribution_that_the_lock_does_not_name_is_refused(sources):
    result = run_module("python_venv", **sources)
    assert result["failed"]
    assert "No matching distribution found for source==1.0" in result["msg"]


def test_an_environment_is_for_every_user_whatever_the_umask_of_root(site, tmp_path):
    umask = os.umask(0o077)
    try:
        run_module("python_venv", **{**site, "path": str(tmp_path / "a/venv")})
    finally:
        os.umask(umask)
    assert [path for path in (tmp_path / "a").rglob("*") if not path.stat().st_mode & 0o004] == []


def test_a_directory_that_is_no_environment_of_scalebook_is_left_alone(site, tmp_path):
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv/file").write_text("the user's own")
    result = run_module("python_venv", **{**site, "path": str(tmp_path / "venv")})
    assert result["msg"] == (
        f"{tmp_path}/venv exists, and is not an environment of scalebook. Fix: remove it, or name another"
    )
    assert (tmp_path / "venv/file").read_text() == "the user's own"


def test_what_an_interrupted_start_has_left_is_made_again(site, tmp_path):
    options = {**site, "path": str(tmp_path / "venv")}
    assert run_module("python_venv", **{**options, "lock": "missing==1 --hash=sha256:" + "0" * 64})["failed"]
    assert run_module("python_venv", **options)["changed"]


def test_an_interpreter_without_ensurepip_is_told_apart_and_nothing_is_removed(site, tmp_path):
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'ensurepip'\" >&2\nexit 1\n")
    python.chmod(0o755)
    (tmp_path / "venv").mkdir()
    result = run_module("python_venv", **{**site, "path": str(tmp_path / "venv"), "python": str(python)})
    assert (result["failed"], result["lacking"]) == (True, True)
    assert "ensurepip" in result["msg"]
    assert (tmp_path / "venv").is_dir()


def test_what_is_in_the_place_of_the_environment_is_removed_but_not_what_a_link_points_to(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").write_text("")
    (tmp_path / "venv").symlink_to(tmp_path / "kept")
    python_venv.remove(str(tmp_path / "venv"))
    assert [path.name for path in tmp_path.rglob("*")] == ["kept", "file"]


def test_ensurepip_unpacks_its_pip_without_compiling_it(tmp_path):
    """Fails with a Python whose ensurepip has no _run_pip: environments are created more slowly there."""
    own = [str(tmp_path / "venv/bin/python"), "-I", "-c", python_venv.UNPACK, str(tmp_path / "packages")]
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True, timeout=60)
    subprocess.run(own, check=True, timeout=60)
    assert (tmp_path / "packages/pip/__main__.py").is_file()
    assert list(tmp_path.rglob("*.pyc")) == []
