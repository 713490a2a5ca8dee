# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Role horovod: the environment of a build, the output of --check-build, and the patches of the sources."""

import json
import re
import runpy
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import horovod_patch
import pytest
from role_files import load
from run_module import call_module

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "tests" / "data" / "horovod"
CPU = {"frameworks": ["PyTorch"], "controllers": ["MPI", "Gloo"], "operations": ["MPI", "Gloo"]}

framework_info = load("horovod", "framework_info")
filters = SimpleNamespace(**runpy.run_path(str(ROOT / "roles/horovod/filter_plugins/horovod.py")))
HorovodError, build_environment = filters.HorovodError, filters.build_environment
lacking, read_check_build = filters.lacking, filters.read_check_build


def said(name):
    return (DATA / name).read_text()


# -- the output of --check-build -------------------------------------------------------------------------


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


def test_a_name_that_is_missing_in_two_sections_is_named_once():
    text = said("torch-2.13-cpu.txt").replace("[X] MPI", "[ ] MPI")
    assert lacking(read_check_build(text), CPU) == ["MPI"]


def test_an_operation_that_the_output_does_not_know_is_lacking():
    assert lacking(read_check_build(said("torch-2.13-cpu.txt")), {"operations": ["RCCL"]}) == ["RCCL"]


def test_messages_of_the_framework_are_skipped():
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


# -- what a build is given -------------------------------------------------------------------------------


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
def test_an_unknown_operation_framework_or_version_is_refused(version, framework, operations, part):
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
    assert horovod_patch.raise_standard(text, standard) == wanted


def test_raising_it_again_changes_nothing():
    once = horovod_patch.raise_standard(CMAKE, "20")
    assert horovod_patch.raise_standard(once, "20") == once


@pytest.mark.parametrize("text", ["", CMAKE.replace(" 14)", " 11)"), TORCH + TORCH])
def test_an_unknown_source_is_refused(text):
    with pytest.raises(horovod_patch.UnknownSourceError, match="expected is once"):
        horovod_patch.raise_standard(text, "20")


@pytest.fixture
def release(tmp_path):
    """The files of Horovod 0.28.1 that the patch changes."""
    (tmp_path / "horovod/torch").mkdir(parents=True)
    (tmp_path / "CMakeLists.txt").write_text(CMAKE)
    (tmp_path / "horovod/torch/CMakeLists.txt").write_text(TORCH)
    return tmp_path


def test_both_files_are_changed(release):
    done = call_module(horovod_patch, path=str(release), edit="c++20")
    assert done["files"] == ["CMakeLists.txt", "horovod/torch/CMakeLists.txt"]
    assert "CMAKE_CXX_STANDARD 20)" in (release / "horovod/torch/CMakeLists.txt").read_text()


def test_no_file_is_changed_where_one_is_unknown(release):
    (release / "horovod/torch/CMakeLists.txt").write_text("endif()\n")
    done = call_module(horovod_patch, path=str(release), edit="c++20")
    assert re.search(r"horovod/torch/CMakeLists\.txt is not the one of Horovod 0\.28\.1", done["msg"])
    assert (release / "CMakeLists.txt").read_text() == CMAKE


def test_a_check_shows_the_change_and_makes_none(release):
    done = call_module(horovod_patch, check=True, diff=True, path=str(release), edit="c++17")
    assert "CMAKE_CXX_STANDARD 17)" in done["diff"][0]["after"]
    assert (release / "CMakeLists.txt").read_text() == CMAKE


# -- the framework ---------------------------------------------------------------------------------------


def test_torch_tells_its_version_its_cuda_and_the_standard_of_its_own_extensions(tmp_path):
    (tmp_path / "utils").mkdir()
    (tmp_path / "version.py").write_text("__version__ = '2.13.0+cu130'\ncuda: Optional[str] = '13.0'\n")
    (tmp_path / "utils/cpp_extension.py").write_text("    cpp_flags = ['-std=c++20']\n")
    assert framework_info.torch_info(tmp_path) == {
        "version": "2.13.0+cu130",
        "standard": "20",
        "cuda": "13.0",
    }


def test_a_torch_for_cpus_has_no_cuda(tmp_path):
    (tmp_path / "version.py").write_text("__version__ = '1.6.0+cpu'\ncuda = None\n")
    assert framework_info.torch_info(tmp_path) == {"version": "1.6.0+cpu", "standard": "14", "cuda": ""}


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
    info = framework_info.tensorflow_info(str(tmp_path / "tensorflow"))
    assert info == {"version": version, "standard": standard, "cuda": ""}


@pytest.mark.parametrize(
    ("folder", "cuda"), [("mxnet-1.6.0.dist-info", ""), ("mxnet_cu102-1.6.0.post0.dist-info", "102")]
)
def test_mxnet_is_known_by_its_package(tmp_path, folder, cuda):
    for name in ("mxnet", folder):
        (tmp_path / name).mkdir()
    info = framework_info.mxnet_info(str(tmp_path / "mxnet"))
    assert (info["version"].split(".post")[0], info["cuda"]) == ("1.6.0", cuda)


def test_the_facts_are_one_line_of_json(tmp_path, monkeypatch, capsys):
    package = tmp_path / "site-packages" / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('it must not be imported')\n")
    (package / "version.py").write_text("__version__ = '2.13.0+cpu'\ncuda: Optional[str] = None\n")
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setattr(sys, "argv", ["framework_info.py", "torch"])
    framework_info.main()
    answer = json.loads(capsys.readouterr().out)
    assert (answer["version"], answer["cuda"], answer["nccl"]) == ("2.13.0+cpu", "", "")
    assert answer["paths"][0] == str(package.parent)
    header = package.parent / "nvidia/nccl/include/nccl.h"
    header.parent.mkdir(parents=True)
    header.touch()
    framework_info.main()
    assert json.loads(capsys.readouterr().out)["nccl"] == str(package.parent / "nvidia/nccl")


def test_the_gloo_of_2020_is_patched_for_the_kernel_headers_of_today():
    text = horovod_patch.patch_gloo("before\n" + horovod_patch.STRUCT + "after\n")
    assert text == "before\n" + horovod_patch.UNION + "after\n"


def test_patching_gloo_again_changes_nothing():
    assert horovod_patch.patch_gloo(horovod_patch.UNION) == horovod_patch.UNION


@pytest.mark.parametrize("text", ["static int speed;\n", horovod_patch.STRUCT * 2])
def test_an_unknown_gloo_is_refused(text):
    with pytest.raises(horovod_patch.UnknownSourceError, match="expected is once"):
        horovod_patch.patch_gloo(text)


def test_the_part_for_mxnet_includes_what_newer_compilers_do_not():
    text = '#if HAVE_CUDA\n#endif\nthrow std::logic_error("");\n'
    once = horovod_patch.patch_mxnet(text)
    assert once == "#include <stdexcept>\n" + text
    assert horovod_patch.patch_mxnet(once) == once


def test_the_symbols_of_mxnet_are_visible_to_horovod():
    once = horovod_patch.patch_import("import ctypes\nimport mxnet as mx\nfrom mxnet.base import c_str\n")
    assert "import mxnet as mx\nctypes.CDLL(mx.libinfo.find_lib_path()[0], ctypes.RTLD_GLOBAL)\n" in once
    assert horovod_patch.patch_import(once) == once


def test_an_unknown_import_of_mxnet_is_refused():
    with pytest.raises(horovod_patch.UnknownSourceError, match="expected is once"):
        horovod_patch.patch_import("from mxnet.base import c_str\n")


def test_an_unknown_part_for_mxnet_is_refused():
    with pytest.raises(horovod_patch.UnknownSourceError, match="is not the one of Horovod 0.19"):
        horovod_patch.patch_mxnet("#if HAVE_CUDA\n#endif\n")


# -- backend.py, which the trainers use --------------------------------------------------------------------


@pytest.fixture
def backend(monkeypatch):
    monkeypatch.setitem(sys.modules, "horovod", ModuleType("horovod"))
    sys.modules["horovod"].__version__ = "0.28.1"
    return load("horovod", "backend")


@pytest.mark.parametrize(
    ("device", "built", "operation"),
    [("gpu", ["NCCL", "MPI", "Gloo"], "nccl"), ("cpu", ["MPI", "Gloo"], "mpi"), ("cpu", ["Gloo"], "gloo")],
)
def test_gradients_are_summed_by_the_operation_for_the_device(backend, device, built, operation):
    assert backend.backend(device, built) == operation


@pytest.mark.parametrize(
    ("device", "built", "message"),
    [
        (
            "gpu",
            ["MPI", "Gloo"],
            "built with MPI, Gloo, a run on a gpu needs NCCL: see `horovodrun --check-build`",
        ),
        ("cpu", ["NCCL"], "built with NCCL, a run on a cpu needs MPI or Gloo"),
    ],
)
def test_a_horovod_without_that_operation_does_not_start(backend, device, built, message):
    with pytest.raises(backend.MissingOperationError, match=message):
        backend.backend(device, built)


# -- the record of a workload ----------------------------------------------------------------------------


@pytest.mark.parametrize(("nccl", "device", "names"), [(True, "gpu", "NCCL, MPI"), (False, "cpu", "MPI")])
def test_an_installation_is_for_gpus_where_horovod_has_nccl(monkeypatch, nccl, device, names):
    monkeypatch.setitem(sys.modules, "horovod", SimpleNamespace(__version__="0.19.5"))
    built = SimpleNamespace(nccl_built=lambda: nccl, mpi_built=lambda: True, gloo_built=lambda: False)
    facts = load("horovod", "backend").facts("TensorFlow 1.15.5", built)
    versions = f"TensorFlow 1.15.5; Horovod 0.19.5 with {names}"
    assert (facts["device"], facts["versions"]) == (device, versions)
