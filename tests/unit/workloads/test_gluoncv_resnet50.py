# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""gluoncv_resnet50: what its logs mean, on genuine ones, and the command line of the trainer."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible.module_utils.scalebook.throughput import measure
from cases import case as make_case
from dlperf_logs import exit_record, stamped
from in_english import log_record, run_record
from node_logs import JOB, kept_run
from role_files import declaration, load

ROOT = Path(__file__).resolve().parents[3]
LOGS = ROOT / "tests/data/gluoncv_resnet50"
WORKLOAD = declaration("gluoncv_resnet50")

gluoncv_flags = load("gluoncv_resnet50", "gluoncv_flags")


def case(nodes=1, **other):
    """Return the case of six steps after two, with two images on each node."""
    values = {"workload": "gluoncv_resnet50", "model": "resnet50", "bsz": 2, "warmup": 2, "window": 6}
    return make_case(nodes=nodes, **{**values, **other})


def campaign(tmp_path, nodes, change=("", "")):
    return kept_run(tmp_path, LOGS, case(nodes), WORKLOAD, change)


# Genuine logs


@pytest.mark.parametrize(("name", "gpus"), [("2p_train_horovod.log", 2), ("1p_train_imagenet.log", 1)])
def test_a_log_of_the_trainer_alone_does_not_count(name, gpus):
    """Of two processes its rate stands in the last line of an epoch only; of one it has no time stamp."""
    read = log_record(LOGS / name, case(gpus=gpus), 1, WORKLOAD, name)
    assert (read["status"], "no step" in read["reason"]) == ("incomplete", True)


def test_a_silent_run_does_not_count(tmp_path):
    """train_horovod.py without mpi4py: logging is set up at WARNING, and it ends with status 0."""
    (tmp_path / "NODE1.log").write_text(stamped("", every=0.5, exit_record=exit_record()))
    read = run_record(tmp_path, case(), 1, WORKLOAD, ["NODE1"], JOB)
    assert (read["status"], "no step" in read["reason"]) == ("incomplete", True)


def test_a_run_of_a_campaign_counts(tmp_path):
    """Steps 2 and 8, 14:34:12,695 and 14:34:14,239; the trainer's own rate of an epoch is not read."""
    read = campaign(tmp_path, 1)
    assert (read["status"], read["reason"]) == ("ok", None)
    assert measure(read)["rate"] == pytest.approx(12 / 1.544)


def test_two_nodes_train_the_images_of_both_in_a_step(tmp_path):
    """Steps 2 and 8 of NODE1, 14:34:24,506 and 14:34:27,341; an epoch is six steps."""
    read = campaign(tmp_path, 2)
    assert (read["status"], read["reason"]) == ("ok", None)
    assert measure(read)["rate"] == pytest.approx(24 / 2.835)
    assert not any("cannot be read" in note for note in read["notes"])


def test_the_printed_rate_is_that_of_all_ranks(tmp_path):
    """The harmonic mean of steps 3 to 8 of NODE1 is the rate of the times but for their milliseconds."""
    read = campaign(tmp_path, 2)
    assert measure(read)["second"]["rate"] == pytest.approx(24 / 2.835, rel=1e-3)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("world_size=2", "world_size=1"), "shows devices 1"),
        (("GLUONCV_RESNET50 kv_store=horovod ", "GLUONCV_RESNET50 "), "does not show kv_store"),
        (("batch_size=4 ", "batch_size=2 "), "shows global_batch 2"),
        (("dtype=float32", "dtype=float16"), "shows dtype float16"),
        (("identity=a581db", "identity=a581dc"), "data"),
        (("weights=agree", "weights=differ"), "does not show weights"),
    ],
)
def test_what_a_log_must_show(tmp_path, change, reason):
    read = campaign(tmp_path, 2, change)
    assert (read["status"], reason in read["reason"]) == ("refused", True)


# The command line of the trainer


def given(**other):
    values = {"batch": 4, "steps": 120, "dtype": "fp32", "image_size": 224, "learning_rate": 0.01}
    return SimpleNamespace(**{**values, "data": "/data/train.rec", "device": "cpu", **other})


def words(images=64, world=2, **other):
    return " ".join(gluoncv_flags.flags(given(**other), images, world, 1, 8))


@pytest.mark.parametrize(("batch", "images", "enough"), [(4, 7, 8), (2, 3, 4)])
def test_all_processes_have_the_same_number_of_images(batch, images, enough):
    """Those of mxnet_resnet50 would have four and three of seven."""
    asked, refused = given(batch=batch), gluoncv_flags.record_files.ImageError
    gluoncv_flags.check(asked, 2, enough)
    with pytest.raises(refused, match=f"of them each, fewer than .* Fix: {enough} images"):
        gluoncv_flags.check(asked, 2, images)


def test_the_batch_is_that_of_a_process():
    assert "--batch-size 4 " in words(world=2)


@pytest.mark.parametrize(("images", "world", "epochs"), [(960, 2, 1), (959, 2, 2), (64, 2, 15), (8, 2, 120)])
def test_it_takes_as_many_epochs_as_the_steps_need(images, world, epochs):
    """120 steps of four images a process. What is left of an epoch is not a batch."""
    assert f"--num-epochs {epochs} " in words(images, world)


def test_it_begins_with_the_learning_rate_that_is_asked_for():
    """It multiplies the one that it is given by the number of processes."""
    assert "--warmup-epochs 0 --lr 0.0025 " in words(world=4)


@pytest.mark.parametrize(("device", "without"), [("cpu", True), ("gpu", False)])
def test_it_is_told_where_there_is_no_gpu(device, without):
    assert ("--no-cuda" in words(device=device)) is without
