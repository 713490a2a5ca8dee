# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""paddlecv_resnet50: how PaddleCV's train.py is started, with stand-ins of it and of Paddle 1.8."""

import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
from role_files import ROLES, load

paddlecv_flags = load("paddlecv_resnet50", "paddlecv_flags")

PADDLE = """
from types import SimpleNamespace
import numpy as np

VALUES = {"@LR_DECAY_COUNTER@": np.array([-1]), "weight": np.array([1.0, 2.0]), "mean": np.array([9.0])}
core = SimpleNamespace(
    VarDesc=SimpleNamespace(VarType=SimpleNamespace(FP16=4, LOD_TENSOR=7)), get_cuda_device_count=lambda: 2
)


def global_scope():
    return SimpleNamespace(find_var=lambda name: SimpleNamespace(get_tensor=lambda: VALUES[name]))
"""
# Prints its steps on trainer 0 alone, and reads an image with each.
TRAINER = """
import os, sys
from types import SimpleNamespace
import paddle.fluid as fluid
import reader

LOSSES = [6.5, 6.25, {loss}]


def variable(name, dtype, trainable):
    return SimpleNamespace(name=name, dtype=dtype, type=7, trainable=trainable)


def best_strategy_compiled(args, program, loss, exe):
    return program


def print_info(kind, metrics, elapse, pass_id, batch_id, print_step):
    print("[Pass 0, train batch %d]" % batch_id)


def main():
    given = dict(word[2:].split("=") for word in sys.argv[1:] if "=" in word)
    args = SimpleNamespace(use_gpu=given["use_gpu"] == "True", batch_size=int(given["batch_size"]))
    args.image_shape, args.class_dim = [3, 64, 64], int(given["class_dim"])
    variables = [variable("weight", {dtype}, True), variable("mean", 5, False)]
    program = SimpleNamespace(list_vars=lambda: variables, all_parameters=lambda: variables)
    program._trainers_endpoints = {endpoints}
    best_strategy_compiled(args, program, None, None)
    lines = open(given["data_dir"] + "/train_list.txt").read().splitlines()
    for step in range(int(given["max_iter"])):
        reader.process_image(lines[step].split(), args, "train", False, False)
        fluid.VALUES["@LR_DECAY_COUNTER@"] += 1
        if os.environ["PADDLE_TRAINER_ID"] == "0":
            print_info("batch", [LOSSES[step]], 0.5, 0, step, 1)
"""
READER = """
def process_image(sample, settings, mode, color_jitter, rotate):
    return {image}
"""


@pytest.fixture
def run(tmp_path):
    """Return a function that trains three steps of two images and returns status and lines."""
    (tmp_path / "images/train/n0").mkdir(parents=True)
    for number in range(8):
        (tmp_path / f"images/train/n0/{number}.JPEG").touch()

    def started(rank=0, device="cpu", per_node=1, image="'pixels'", **of_trainer):
        values = {"loss": "6.0", "dtype": 5, "endpoints": [], **of_trainer}
        files = {"paddle/__init__.py": "__version__ = '1.8.5'", "paddle/fluid.py": PADDLE}
        files |= {"source/train.py": TRAINER.format(**values), "source/reader.py": READER.format(image=image)}
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
        folders = [tmp_path, ROLES / "workload/files/kit"]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
        env |= {"PADDLE_TRAINER_ID": str(rank), "PADDLE_TRAINERS_NUM": "1"}
        asked = {"source": tmp_path / "source", "scratch": tmp_path, "devices-per-node": per_node}
        asked |= {"data": tmp_path / "images", "workers": 1, "image-size": 64, "classes": 10, "steps": 3}
        asked |= {"learning-rate": 0.001, "seed": 1, "device": device, "model": "resnet50", "dtype": "fp32"}
        words = [f"--{name}={value}" for name, value in {**asked, "batch": 2}.items()]
        program = ROLES / "paddlecv_resnet50/files/paddlecv_trainer.py"
        argv = [sys.executable, program, *words]
        done = subprocess.run(argv, capture_output=True, text=True, env=env, check=False)
        assert not list(tmp_path.glob("list-*"))
        return done.returncode, done.stdout + done.stderr

    return started


def test_every_step_has_a_line_with_its_time_beside_that_of_the_trainer(run):
    status, shown = run()
    steps = re.findall(r"batch (\d)]\nPADDLECV_RESNET50 step=(\d)/3 loss=(\S+) time=\d+\.\d{6}\n", shown)
    assert steps == [("0", "1", "6.50000"), ("1", "2", "6.25000"), ("2", "3", "6.00000")]
    assert (status, shown.splitlines()[-1]) == (0, "PADDLECV_RESNET50 weights=of_each_rank end=true")


def test_the_statistics_of_batchnorm_are_not_counted(run):
    assert "weights_sum=3.000000000e+00 weights_sum_of_squares=5.000000000e+00\n" in run()[1]


def test_a_rank_that_prints_no_steps_counts_those_of_its_program(run):
    shown = run(rank=2, per_node=2, device="gpu", endpoints=["a:1", "a:2", "b:1", "b:2"])[1]
    assert ("step=" in shown, "PADDLECV_RESNET50 steps_done=3\n" in shown) == (False, True)


def test_processes_whose_program_joins_none_show_that_they_are_alone(run):
    """On CPUs the trainer does not join them, whatever PADDLE_TRAINERS_NUM is."""
    assert "world_size=1 backend=none nodes=1 node_rank=0 paddle=1.8.5\n" in run()[1]


def test_the_trainers_of_the_program_are_counted(run):
    shown = run(rank=2, per_node=2, device="gpu", endpoints=["a:1", "a:2", "b:1", "b:2"])[1]
    assert "world_size=4 backend=nccl nodes=2 node_rank=1 paddle=1.8.5\n" in shown
    assert "PADDLECV_RESNET50 batch=2 global_batch=8\n" in shown


def test_the_batch_is_divided_by_the_gpus_that_the_trainer_sees(run):
    """Two, where one was meant."""
    assert "PADDLECV_RESNET50 batch=1 global_batch=1\n" in run(device="gpu")[1]


@pytest.mark.parametrize(("dtype", "name"), [(5, "fp32"), (4, "fp16")])
def test_the_precision_is_that_of_the_program(run, dtype, name):
    assert f"PADDLECV_RESNET50 dtype={name} image_size=64 classes=10 data=files\n" in run(dtype=dtype)[1]


def test_a_run_ends_with_a_loss_that_is_not_a_number(run):
    status, shown = run(loss="float('nan')")
    assert (status, "the loss of step 3 is nan" in shown) == (1, True)


def test_an_image_that_cannot_be_read_is_refused(run):
    """The trainer would go on with a smaller batch."""
    status, shown = run(image="None")
    assert (status, "train/n0/0.JPEG cannot be read as an image (by OpenCV)" in shown) == (2, True)


# What the trainer is given


class Folder:
    """Three images, one of them with a name that the test gives."""

    labels = (0, 1, 2)

    def __init__(self, last="c.JPEG"):
        self.names = ["a.JPEG", "b.JPEG", last]

    def __len__(self):
        return 3

    def path(self, number):
        return f"/data/{self.names[number]}"


def words(**other):
    values = {"batch": 4, "steps": 120, "dtype": "fp32", "device": "gpu", "image_size": 224, "classes": 1000}
    values |= {"learning_rate": 0.001, "seed": 2020, "devices_per_node": 1, **other}
    return paddlecv_flags.flags(SimpleNamespace(**values), "/scratch", 8)


def test_the_list_has_each_image_in_turn_and_more_than_the_steps_take(tmp_path):
    """At the end of the list the trainer would save its model, whatever save_step is."""
    paddlecv_flags.write_list(str(tmp_path), Folder(), 2, 120)
    lines = (tmp_path / "train_list.txt").read_text().splitlines()
    assert lines[:4] == ["/data/a.JPEG 0", "/data/b.JPEG 1", "/data/c.JPEG 2", "/data/a.JPEG 0"]
    assert len(lines) == 2 * 220


def test_a_name_that_the_trainers_list_cannot_have_is_refused(tmp_path):
    with pytest.raises(paddlecv_flags.image_folder.ImageError, match="/data/a cat.JPEG: .* rename it"):
        paddlecv_flags.write_list(str(tmp_path), Folder("a cat.JPEG"), 2, 120)


def test_the_batch_is_that_of_the_devices_of_a_node():
    assert "--batch_size=32" in words(devices_per_node=8)


def test_the_trainer_ends_after_the_steps_and_prints_each():
    assert {"--max_iter=120", "--print_step=1", "--validate=False"} < set(words())


@pytest.mark.parametrize(("dtype", "half"), [("fp32", False), ("fp16", True)])
def test_half_precision_is_the_trainers_own(dtype, half):
    assert (f"--use_fp16={half}" in words(dtype=dtype)) is True


@pytest.mark.parametrize(("device", "gpu"), [("cpu", False), ("gpu", True)])
def test_the_trainer_is_told_where_there_is_no_gpu(device, gpu):
    """Its default is a GPU."""
    assert f"--use_gpu={gpu}" in words(device=device)
