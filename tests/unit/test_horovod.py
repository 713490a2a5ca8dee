# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Horovod: what a build is told, what it says of itself, and how its sources are changed."""

import json
import sys
from pathlib import Path

import pytest
from ansible.module_utils.scalebook.horovod import HorovodError, build_environment, lacking, read_check_build
from role_files import load

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data" / "horovod"
CPU = {"frameworks": ["PyTorch"], "controllers": ["MPI", "Gloo"], "operations": ["MPI", "Gloo"]}

mend_sources = load("horovod", "mend_sources")
about = load("horovod", "about")


def said(name):
    return (DATA / name).read_text()


# -- what --check-build says -----------------------------------------------------------------------------


def test_a_genuine_output_is_read_to_the_last_line():
    build = read_check_build(said("torch-2.13-cpu.txt"))
    assert build == {
        "version": "0.28.1",
        "frameworks": {"TensorFlow": False, "PyTorch": True, "MXNet": False},
        "controllers": {"MPI": True, "Gloo": True},
        "operations": {"NCCL": False, "DDL": False, "CCL": False, "MPI": True, "Gloo": True},
    }


def test_a_build_that_has_what_was_asked_for_lacks_nothing():
    assert lacking(read_check_build(said("torch-2.13-cpu.txt")), CPU) == []


def test_a_build_with_nccl_has_it():
    wanted = dict(CPU, operations=["NCCL", "MPI", "Gloo"])
    assert lacking(read_check_build(said("torch-2.11-nccl.txt")), wanted) == []


def test_a_build_without_nccl_lacks_it_though_everything_else_is_there():
    wanted = dict(CPU, operations=["NCCL", "MPI"])
    assert lacking(read_check_build(said("torch-2.13-cpu.txt")), wanted) == ["NCCL"]


def test_a_build_for_another_framework_lacks_the_one_that_was_asked_for():
    wanted = dict(CPU, frameworks=["TensorFlow"])
    assert lacking(read_check_build(said("torch-2.13-cpu.txt")), wanted) == ["TensorFlow"]


def test_what_lacks_in_two_sections_is_named_once():
    text = said("torch-2.13-cpu.txt").replace("[X] MPI", "[ ] MPI")
    assert lacking(read_check_build(text), CPU) == ["MPI"]


def test_an_operation_that_the_output_does_not_know_is_lacking():
    assert lacking(read_check_build(said("torch-2.13-cpu.txt")), {"operations": ["RCCL"]}) == ["RCCL"]


def test_what_a_framework_says_before_is_passed_over():
    noise = "2026-11-21 01:02:03.000004: W tensorflow/stream_executor: Could not load [X] NCCL\n\n"
    text = noise + said("torch-2.13-cpu.txt")
    assert read_check_build(text)["operations"]["NCCL"] is False


@pytest.mark.parametrize(
    "text, part",
    [
        ("", "'nothing'"),
        ("Traceback (most recent call last):\nImportError: libmpi.so.40\n", "libmpi.so.40"),
        ("Horovod v0.28.1:\n\nAvailable Frameworks:\n    [X] PyTorch\n", "no controllers"),
    ],
)
def test_another_text_or_half_of_one_is_refused(text, part):
    with pytest.raises(HorovodError, match=part):
        read_check_build(text)


# -- what a build is told ------------------------------------------------------------------------------


def test_everything_is_required_or_left_out_by_name():
    assert build_environment("0.28.1", "PyTorch", ["MPI", "Gloo"]) == {
        "HOROVOD_WITH_PYTORCH": "1",
        "HOROVOD_WITHOUT_TENSORFLOW": "1",
        "HOROVOD_WITHOUT_MXNET": "1",
        "HOROVOD_WITH_MPI": "1",
        "HOROVOD_WITH_GLOO": "1",
    }


def test_an_operation_that_is_not_named_is_left_out():
    env = build_environment("0.28.1", "PyTorch", ["Gloo"])
    assert env["HOROVOD_WITHOUT_MPI"] == "1"
    assert "HOROVOD_WITH_MPI" not in env


@pytest.mark.parametrize("version", ["0.20.0", "0.28.1", "1.0.0"])
def test_nccl_has_one_name_from_0_20_on(version):
    env = build_environment(version, "TensorFlow", ["NCCL", "MPI"])
    assert env["HOROVOD_GPU_OPERATIONS"] == "NCCL"
    assert "HOROVOD_GPU_ALLREDUCE" not in env


@pytest.mark.parametrize("version", ["0.19.0", "0.19.5"])
def test_nccl_has_a_name_for_each_operation_before(version):
    env = build_environment(version, "TensorFlow", ["NCCL", "MPI"])
    assert (env["HOROVOD_GPU_ALLREDUCE"], env["HOROVOD_GPU_BROADCAST"]) == ("NCCL", "NCCL")
    assert "HOROVOD_GPU_OPERATIONS" not in env


@pytest.mark.parametrize(
    "version, framework, operations, part",
    [
        ("0.28.1", "PyTorch", ["nccl"], "nccl: Horovod is built for"),
        ("0.28.1", "torch", ["MPI"], "torch: Horovod is built for"),
        ("latest", "PyTorch", ["MPI"], "'latest' is not a version"),
    ],
)
def test_a_wish_that_no_build_can_fulfil_is_refused(version, framework, operations, part):
    with pytest.raises(HorovodError, match=part):
        build_environment(version, framework, operations)


# -- the sources of 0.28.1 -------------------------------------------------------------------------------

# The lines that matter; the last one writes into another file and stays as it is.
CMAKE = """\
project(horovod CXX)

set(CMAKE_CXX_STANDARD 14)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
    string(PREPEND GLOO_CMAKE "set(CMAKE_CXX_STANDARD 17)\\n")
"""
TORCH = """\
if(NOT Pytorch_VERSION VERSION_LESS "1.5.0")
    set(CMAKE_CXX_STANDARD 14)
endif()
"""


@pytest.mark.parametrize("standard", ["17", "20"])
@pytest.mark.parametrize("text", [CMAKE, TORCH])
def test_the_standard_is_raised_and_nothing_else(text, standard):
    wanted = text.replace("CMAKE_CXX_STANDARD 14)", f"CMAKE_CXX_STANDARD {standard})")
    assert mend_sources.raised(text, standard) == wanted


def test_raising_it_again_changes_nothing():
    once = mend_sources.raised(CMAKE, "20")
    assert mend_sources.raised(once, "20") == once


@pytest.mark.parametrize("text", ["", CMAKE.replace(" 14)", " 11)"), TORCH + TORCH])
def test_a_source_that_is_not_the_known_one_is_refused(text):
    with pytest.raises(mend_sources.UnknownSourceError, match="expected is once"):
        mend_sources.raised(text, "20")


def test_both_files_are_changed_or_neither(tmp_path, monkeypatch):
    (tmp_path / "horovod/torch").mkdir(parents=True)
    (tmp_path / "CMakeLists.txt").write_text(CMAKE)
    (tmp_path / "horovod/torch/CMakeLists.txt").write_text("endif()\n")
    monkeypatch.setattr(sys, "argv", ["mend_sources.py", str(tmp_path), "c++20"])
    with pytest.raises(mend_sources.UnknownSourceError, match=r"horovod/torch/CMakeLists\.txt"):
        mend_sources.main()
    assert (tmp_path / "CMakeLists.txt").read_text() == CMAKE


# -- what it is built against ----------------------------------------------------------------------------


def test_torch_tells_its_version_its_cuda_and_the_standard_of_its_own_extensions(tmp_path):
    (tmp_path / "utils").mkdir()
    (tmp_path / "version.py").write_text("__version__ = '2.13.0+cu130'\ncuda: Optional[str] = '13.0'\n")
    (tmp_path / "utils/cpp_extension.py").write_text("    cpp_flags = ['-std=c++20']\n")
    assert about.about_torch(tmp_path) == {"version": "2.13.0+cu130", "standard": "20", "cuda": "13.0"}


def test_a_torch_for_cpus_has_no_cuda(tmp_path):
    (tmp_path / "version.py").write_text("__version__ = '1.6.0+cpu'\ncuda = None\n")
    assert about.about_torch(tmp_path) == {"version": "1.6.0+cpu", "standard": "14", "cuda": ""}


@pytest.mark.parametrize(
    "folder, version, standard",
    [
        ("tensorflow_cpu-2.3.0.dist-info", "2.3.0", "14"),
        ("tensorflow_cpu-2.15.1.dist-info", "2.15.1", "17"),
        ("tensorflow-2.10.0.dist-info", "2.10.0", "17"),
    ],
)
def test_tensorflow_is_known_by_its_package(tmp_path, folder, version, standard):
    for name in ("tensorflow", folder, "tensorflow_estimator-9.9.9.dist-info"):
        (tmp_path / name).mkdir()
    told = about.about_tensorflow(str(tmp_path / "tensorflow"))
    assert told == {"version": version, "standard": standard, "cuda": ""}


def test_about_answers_in_one_line_of_json(tmp_path, monkeypatch, capsys):
    package = tmp_path / "site-packages" / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('it must not be imported')\n")
    (package / "version.py").write_text("__version__ = '2.13.0+cpu'\ncuda: Optional[str] = None\n")
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setattr(sys, "argv", ["about.py", "torch"])
    about.main()
    answer = json.loads(capsys.readouterr().out)
    assert (answer["version"], answer["cuda"], answer["nccl"]) == ("2.13.0+cpu", "", "")
    assert answer["paths"][0] == str(package.parent)
    header = package.parent / "nvidia/nccl/include/nccl.h"
    header.parent.mkdir(parents=True)
    header.touch()
    about.main()
    assert json.loads(capsys.readouterr().out)["nccl"] == str(package.parent / "nvidia/nccl")


def test_the_gloo_of_2020_is_mended_for_kernel_headers_of_today():
    text = mend_sources.without_behind("before\n" + mend_sources.BEHIND + "after\n")
    assert text == "before\n" + mend_sources.UNION + "after\n"


def test_mending_gloo_again_changes_nothing():
    assert mend_sources.without_behind(mend_sources.UNION) == mend_sources.UNION


@pytest.mark.parametrize("text", ["static int speed;\n", mend_sources.BEHIND * 2])
def test_an_unknown_gloo_is_refused(text):
    with pytest.raises(mend_sources.UnknownSourceError, match="expected is once"):
        mend_sources.without_behind(text)
