# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""torch_resnet50: what its genuine logs mean, what its models cost, which images it takes. Needs no torch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible.module_utils.scalebook import flops
from ansible.module_utils.scalebook.throughput import measure
from cases import cluster, plan
from in_english import run_record
from model_operations import RESNETS, multiply_adds_of_resnet, parameters_of_resnet
from role_files import ROLES, declaration

LOGS = Path(__file__).resolve().parents[2] / "data/torch_resnet50"
WORKLOAD = declaration("torch_resnet50")
CHECK = ROLES / "torch_resnet50/files/image_files.py"
LOADER = ROLES / "torch_resnet50/files/image_loader.py"
# The modules of the kit are installed next to it.
ENV = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROLES / "workload/files/kit"), *sys.path[1:]])}


def case(nodes=1, **other):
    given = {"nodes": nodes, "gpus": 1, "bsz": 4, "dtype": "fp32", **other}
    made = plan(given, WORKLOAD, cluster(4, slots=2), "torch_resnet50", "cpu")["cases"][0]
    return {**made, "settings": {}}  # the logs are older than the setting


def record(tmp_path, nodes, made=None, change=("", ""), kind=""):
    names = [f"NODE{i}" for i in range(1, nodes + 1)]
    for name in names:
        text = (LOGS / f"{nodes}n1g{kind}-{name}.log").read_text()
        assert change[0] in text
        (tmp_path / f"{name}.log").write_text(text.replace(*change))
    return run_record(tmp_path, made or case(nodes), 1, WORKLOAD, names, {"rc": 0})


@pytest.mark.parametrize(("nodes", "rate"), [(1, 42.71), (2, 39.13)])
def test_a_genuine_log_gives_the_rate_of_the_window(tmp_path, nodes, rate):
    read = record(tmp_path, nodes)
    assert (read["status"], read["reason"], read["unit"]) == ("ok", None, "images")
    assert measure(read)["rate"] == pytest.approx(rate, abs=0.01)


def test_a_run_on_files_counts_and_says_so(tmp_path):
    read = record(tmp_path, 2, kind="_files")
    assert (read["status"], read["reason"]) == ("ok", None)
    assert measure(read)["rate"] == pytest.approx(244.27, abs=0.01)
    assert [node["shown"]["data"] for node in read["nodes"]] == [["files"], ["files"]]


def with_loader(loader):
    """Return a case of two nodes that asks for a loader."""
    return {**case(2), "settings": {"loader": loader}}


@pytest.mark.parametrize("loader", ["auto", "dali"])
def test_a_run_with_dali_counts_and_says_so(tmp_path, loader):
    read = record(tmp_path, 2, with_loader(loader), kind="_dali")
    assert (read["status"], read["reason"]) == ("ok", None)
    assert measure(read)["rate"] == pytest.approx(346.54, abs=0.01)
    assert [node["shown"]["data"] for node in read["nodes"]] == [["files loader=dali"]] * 2


def test_a_run_with_another_loader_than_the_case_asks_for_is_refused(tmp_path):
    read = record(tmp_path, 2, with_loader("pillow"), kind="_dali")
    assert (read["status"], "shows loader dali, the case has" in read["reason"]) == ("refused", True)


def test_a_log_that_does_not_name_its_loader_is_refused_where_the_case_asks_for_one(tmp_path):
    read = record(tmp_path, 2, with_loader("pillow"), kind="_files")
    assert (read["status"], "does not show loader" in read["reason"]) == ("refused", True)


@pytest.mark.parametrize(
    ("two", "change", "shown"),
    [
        ("", ("", ""), "synthetic"),
        ("_files", ("", ""), "files"),
        ("_dali", ("loader=dali", "loader=pillow"), "files loader=pillow"),
    ],
)
def test_nodes_that_train_on_different_data_or_with_different_loaders_are_refused(
    tmp_path, two, change, shown
):
    logs = {"NODE1": (LOGS / "2n1g_dali-NODE1.log").read_text()}
    logs["NODE2"] = (LOGS / f"2n1g{two}-NODE2.log").read_text().replace(*change)
    for name, log in logs.items():
        (tmp_path / f"{name}.log").write_text(log)
    read = run_record(tmp_path, case(2), 1, WORKLOAD, list(logs), {"rc": 0})
    assert (read["status"], f"shows data {shown}, NODE1.log" in read["reason"]) == ("refused", True)


def test_the_rate_is_the_one_that_the_trainer_printed(tmp_path):
    read = record(tmp_path, 2)
    assert float(read["self_reported"]["images_per_second"]) == pytest.approx(measure(read)["rate"], abs=0.01)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"gpus": 2}, "devices"),
        ({"dtype": "bf16"}, "dtype"),
        ({"xla": "true"}, "compile"),
        ({"bsz": 8}, "global_batch"),
        ({"model": "resnet50"}, "model"),
    ],
)
def test_a_log_that_contradicts_its_case_is_refused(tmp_path, wrong, named):
    read = record(tmp_path, 1, case(1, **wrong))
    assert read["status"] == "refused"
    assert named in read["reason"]


def test_a_group_of_one_on_two_nodes_is_refused(tmp_path):
    read = record(tmp_path, 2, change=("world_size=2", "world_size=1"))
    assert read["status"] == "refused"


def test_a_log_without_equal_weights_is_refused(tmp_path):
    read = record(tmp_path, 2, change=("TORCH_RESNET50 weights=agree end=true", "TORCH_RESNET50 end"))
    assert read["status"] == "refused"
    assert "weights" in read["reason"]


def test_resnet50_has_the_parameters_and_multiply_adds_of_the_published_model():
    assert parameters_of_resnet("resnet50", 1000) == 25_557_032
    assert multiply_adds_of_resnet("resnet50", 224, 1000) == 4_089_184_256


@pytest.mark.parametrize("model", sorted(RESNETS))
@pytest.mark.parametrize(("image_size", "classes"), [(224, 1000), (64, 10), (32, 1000)])
def test_the_declared_operations_are_six_times_the_multiply_adds(model, image_size, classes):
    settings = {"image_size": image_size, "classes": classes}
    declared = flops.of_case(WORKLOAD.flops, {"model": model, "settings": settings})
    assert declared == pytest.approx(6 * multiply_adds_of_resnet(model, image_size, classes), rel=1e-12)


def checked(folder, images, labels, size=32, classes=10):
    numpy = pytest.importorskip("numpy")
    numpy.save(folder / "images.npy", images(numpy))
    numpy.save(folder / "labels.npy", labels(numpy))
    return check(folder, size, classes)


def check(*words):
    argv = [sys.executable, CHECK, *map(str, words)]
    return subprocess.run(argv, capture_output=True, text=True, env=ENV)


def zeros(*shape, kind="uint8"):
    return lambda numpy: numpy.zeros(shape, kind)


def test_images_of_the_declared_shape_are_taken(tmp_path):
    done = checked(tmp_path, zeros(6, 3, 32, 32), zeros(6, kind="int64"))
    assert done.returncode == 0
    assert done.stdout.startswith("6 images in arrays, sha256 ")


@pytest.mark.parametrize(
    ("images", "labels", "problem"),
    [
        (zeros(6, 3, 64, 64), zeros(6, kind="int64"), "needed is uint8 [count, 3, 32, 32]"),
        (zeros(6, 32, 32, 3), zeros(6, kind="int64"), "needed is uint8 [count, 3, 32, 32]"),
        (zeros(6, 3, 32, 32, kind="float32"), zeros(6, kind="int64"), "is float32"),
        (zeros(6, 3, 32, 32), zeros(5, kind="int64"), "needed are integers [6]"),
        (zeros(6, 3, 32, 32), zeros(6, kind="float32"), "needed are integers [6]"),
        (
            zeros(6, 3, 32, 32),
            lambda numpy: numpy.full(6, 10),
            "allowed are 0 to 9: set torch_resnet50_classes",
        ),
    ],
)
def test_images_of_another_shape_are_refused_with_what_is_needed(tmp_path, images, labels, problem):
    done = checked(tmp_path, images, labels)
    assert done.returncode == 1
    assert problem in done.stderr


def test_a_directory_without_images_is_named(tmp_path):
    done = check(tmp_path, 32, 10)
    assert (done.returncode, f"torch_resnet50_data={tmp_path}: " in done.stderr) == (1, True)


def test_images_in_files_are_taken(tmp_path):
    made = [sys.executable, ROLES / "workload/files/kit/make_image_folder.py", tmp_path / "made", "4", "2"]
    subprocess.run(made, check=True)
    assert check(tmp_path / "made", 32, 2, 4).stdout.startswith("4 images in 2 classes, sha256 ")


# The loader of images in files


def chosen(loader, device, directory, dali=None):
    """Return what image_loader.py does where the version `dali` of DALI is installed, or none."""
    place = directory / "modules"
    (place / "nvidia/dali").mkdir(parents=True)
    (place / "PIL").mkdir()
    (place / "PIL/__init__.py").write_text("__version__ = '12.3.0'")
    if dali:
        (place / "nvidia/dali/__init__.py").write_text(dali)
    else:
        (place / "nvidia/dali").rmdir()
    env = {**ENV, "PYTHONPATH": os.pathsep.join([str(place), ENV["PYTHONPATH"]])}
    argv = [sys.executable, LOADER, loader, device, directory]
    return subprocess.run(argv, capture_output=True, text=True, env=env)


DALI = "__version__ = '2.4.0'"


@pytest.mark.parametrize(
    ("loader", "device", "dali", "found"),
    [
        ("auto", "gpu", DALI, "dali 2.4.0"),
        ("auto", "gpu", None, "pillow 12.3.0"),
        ("auto", "cpu", DALI, "pillow 12.3.0"),
        ("dali", "cpu", DALI, "dali 2.4.0"),
        ("pillow", "gpu", DALI, "pillow 12.3.0"),
    ],
)
def test_auto_is_dali_on_gpus_where_it_is_installed(tmp_path, loader, device, dali, found):
    assert chosen(loader, device, tmp_path, dali).stdout == found + "\n"


def test_dali_that_is_not_installed_is_refused_with_a_fix(tmp_path):
    done = chosen("dali", "gpu", tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"torch_resnet50_loader=dali: {sys.executable} has no module nvidia.dali" in done.stderr
    assert "install it there" in done.stderr


def test_dali_that_is_broken_is_not_taken_for_missing(tmp_path):
    done = chosen("auto", "gpu", tmp_path, "raise ImportError('libdali.so')")
    assert (done.returncode, "ImportError: libdali.so" in done.stderr) == (1, True)


@pytest.mark.parametrize(("loader", "shown"), [("auto", "none\n"), ("dali", "")])
def test_arrays_have_no_loader(tmp_path, loader, shown):
    (tmp_path / "images.npy").touch()
    done = chosen(loader, "gpu", tmp_path, DALI)
    assert (done.stdout, "has arrays, which need no loader; set it to auto" in done.stderr) == (
        shown,
        not shown,
    )
