# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""tf1_resnet50: what its logs mean, on genuine ones, the command line of the trainer and the stand-ins."""

import datetime
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from ansible.module_utils.scalebook import flops
from ansible.module_utils.scalebook.throughput import measure
from cases import case as make_case
from in_english import log_record, run_record
from node_logs import JOB, kept_run
from role_files import declaration, load

ROOT = Path(__file__).resolve().parents[3]
LOGS = ROOT / "tests/data/tf1_resnet50"
WORKLOAD = declaration("tf1_resnet50")

trainer_flags = load("tf1_resnet50", "trainer_flags")
stand_ins = load("tf1_resnet50", "stand_ins")


def case(nodes=1, warmup=20, window=5, bsz=2, **other):
    values = {"workload": "tf1_resnet50", "model": "resnet50", "bsz": bsz}
    values = {"settings": {"image_size": 64}, **values, **other}
    return make_case(nodes=nodes, warmup=warmup, window=window, **values)


def campaign(tmp_path, nodes, change=("", ""), made=None):
    """Return the record of a run as bench.yml kept its logs, with a text of the last node's log changed."""
    return kept_run(tmp_path, LOGS, made or case(nodes), WORKLOAD, change)


# Genuine logs


@pytest.mark.parametrize(("nodes", "seconds"), [(1, 7.744494), (2, 9.159478)])
def test_a_run_of_a_campaign_counts(tmp_path, nodes, seconds):
    """Steps 20 to 25 with two images on each node, by the times that rank 0 prints."""
    read = campaign(tmp_path, nodes)
    assert (read["status"], read["reason"]) == ("ok", None)
    assert measure(read)["rate"] == pytest.approx(10 * nodes / seconds)


@pytest.mark.parametrize("nodes", [1, 2])
def test_the_trainers_own_rate_is_that_of_all_ranks(tmp_path, nodes):
    """The harmonic mean of its five lines, which begin with step 21; it counts no time between two steps."""
    text = (LOGS / f"{nodes}n_NODE1.log").read_text()
    printed = [float(rate) for rate in re.findall(r" imgs_per_sec : (\S+)", text)]
    read = measure(campaign(tmp_path, nodes), reading="printed")
    assert (len(printed), read["time_source"]) == (5, "rates")
    assert read["rate"] == pytest.approx(5 / sum(1 / rate for rate in printed))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("devices", {"gpus": 2}),
        ("global_batch", {"bsz": 1}),
        ("dtype", {"dtype": "fp16"}),
        ("xla", {"xla": True}),
        ("image_size", {"settings": {"image_size": 224}}),
        ("steps", {"window": 4}),
    ],
)
def test_a_log_of_another_case_is_refused(tmp_path, name, wrong):
    read = campaign(tmp_path, 1, made=case(**wrong))
    assert (read["status"], f"shows {name}" in read["reason"]) == ("refused", True)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("world_size=2 ", "world_size=1 "), "shows devices 1"),
        ((" nodes=2 ", " nodes=1 "), "shows nodes 1"),
        ((" backend=mpi", " backend=none"), "does not show backend"),
        (("TF1_RESNET50 weights=agree end=true", ""), "does not show weights"),
    ],
)
def test_ranks_that_did_not_train_one_model_are_refused(tmp_path, change, reason):
    read = campaign(tmp_path, 2, change)
    assert (read["status"], reason in read["reason"]) == ("refused", True)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        # The trainer sees one process and trains alone, whatever Horovod was given.
        (("Num GPUs 1", "Num GPUs 2"), "shows processes 2"),
        (("mode : train  ", "mode : training_benchmark  "), "does not show mode"),
        (("use_tf_amp : False ", "use_tf_amp : True "), "shows amp True, the case has dtype fp32"),
        (("use_xla : False ", "use_xla : True "), "shows use_xla True"),
    ],
)
def test_what_the_trainer_says_of_itself_is_compared_too(tmp_path, change, reason):
    read = campaign(tmp_path, 1, change)
    assert (read["status"], reason in read["reason"]) == ("refused", True)


def test_a_learning_rate_of_0_is_refused(tmp_path):
    """That of a warm-up of several epochs in a short run: nothing is learned."""
    text = (LOGS / "1n_NODE1.log").read_text()
    text = re.sub(r" learning_rate : \S+", " learning_rate : 0.0", text)
    (tmp_path / "NODE1.log").write_text(text)
    read = run_record(tmp_path, case(), 1, WORKLOAD, ["NODE1"], JOB)
    assert (read["status"], "does not show learning_rate" in read["reason"]) == ("refused", True)


def test_the_trainers_own_benchmark_mode_does_not_count():
    """training_benchmark on synthetic data: it has no loss, and its rates have no numbers of steps."""
    name = "1p_training_benchmark.log"
    read = log_record(LOGS / name, case(), 1, WORKLOAD, name)
    assert (read["status"], "no step" in read["reason"]) == ("incomplete", True)


def test_a_run_that_trained_and_died_afterwards_does_not_count():
    """main.py alone with --num_iter=4: its hook has counted no step when it divides by their number."""
    name = "1p_train_4_steps.log"
    assert "ZeroDivisionError: division by zero" in (LOGS / name).read_text()
    read = log_record(LOGS / name, case(), 1, WORKLOAD, name)
    assert (read["status"], "no step" in read["reason"]) == ("incomplete", True)


# The declaration


def test_dlperfs_table_has_rows_of_this_model():
    rows = (ROOT / "data/dlperf-published-results.csv").read_text().splitlines()
    names = WORKLOAD.dlperf
    wanted = f"{names.frameworks[0]},{names.models['resnet50']},"
    assert sum(row.startswith(wanted) for row in rows) == 24


@pytest.mark.parametrize(("size", "billions"), [(224, 24.535), (112, 6.143)])
def test_an_image_has_the_operations_of_its_size(size, billions):
    made = {"model": "resnet50", "settings": {"image_size": size}}
    assert flops.of_case(WORKLOAD.flops, made) == pytest.approx(billions * 1e9, rel=1e-4)


# The command line of the trainer


def given(**other):
    values = {"batch": 4, "steps": 120, "dtype": "fp32", "xla": False, "device": "gpu", "data": "/data"}
    return SimpleNamespace(**{**values, "learning_rate": 0.256, **other})


def words(**other):
    return " ".join(trainer_flags.flags(given(**other), "/results"))


def test_the_trainer_gets_the_mode_and_the_values_of_dlperf():
    assert "--arch=resnet50 --mode=train --iter_unit=batch --num_iter=120 --data_dir=/data " in words()
    assert "--momentum=0.875 --weight_decay=3.0517578125e-05 --label_smoothing=0.1 " in words()


def test_a_warm_up_of_the_learning_rate_is_left_out():
    assert "--lr_init=0.256 --lr_warmup_epochs=0 " in words()


@pytest.mark.parametrize(("device", "layout"), [("cpu", "NHWC"), ("gpu", "NCHW")])
def test_each_device_has_a_layout_that_it_has_convolutions_for(device, layout):
    assert f"--data_format={layout} " in words(device=device)


def test_fp16_is_the_automatic_mixed_precision_of_tensorflow():
    assert "--precision=fp32 --use_tf_amp --use_static_loss_scaling --loss_scale=128" in words(dtype="fp16")
    assert "--use_tf_amp" not in words()


@pytest.mark.parametrize(("xla", "there"), [(True, True), (False, False)])
def test_xla_is_the_trainers_flag(xla, there):
    assert ("--use_xla" in words(xla=xla)) == there


def test_a_step_more_than_the_trainer_leaves_out_is_enough():
    trainer_flags.check(given(steps=21), 2, 2, 8)


@pytest.mark.parametrize(
    ("world", "files", "images", "other", "message"),
    [
        (2, 2, 8, {"steps": 20}, "20 steps: .* Fix: a larger warmup or window"),
        (2, 2, 8, {"dtype": "fp16", "device": "cpu"}, "dtype=fp16: .* graphs for GPUs alone"),
        (2, 1, 8, {}, "/data has 1 files train-.*, and 2 processes .* tf1_resnet50_files=2"),
        (2, 2, 7, {}, "/data has 7 images, .* takes 8: .* tf1_resnet50_images=8"),
    ],
)
def test_a_case_that_the_trainer_does_not_end_well_with_is_refused(world, files, images, other, message):
    with pytest.raises(trainer_flags.FlagsError, match=message):
        trainer_flags.check(given(**other), world, files, images)


def test_files_of_the_users_own_are_not_counted_image_by_image():
    trainer_flags.check(given(), 2, 2, None)


def test_the_report_gets_the_reason_of_a_refusal(monkeypatch, tmp_path):
    kit = MagicMock()
    kit.refuse.side_effect = SystemExit
    absent = ("horovod", "horovod.tensorflow", "tensorflow", "data_stamp", "backend", "stand_ins")
    for name, module in {**dict.fromkeys(absent, MagicMock()), "trainer_kit": kit}.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "trainer_flags", trainer_flags)
    sys.modules["tensorflow"].estimator.SessionRunHook = object
    sys.modules["backend"].MissingOperationError = RuntimeError
    monkeypatch.setattr(sys, "path", list(sys.path))
    run_trainer = load("tf1_resnet50", "run_trainer")
    monkeypatch.setattr(run_trainer, "arguments", lambda: given(data=str(tmp_path), devices=2))
    run_trainer.hvd.size.return_value = 2
    with pytest.raises(SystemExit):
        run_trainer.main()
    (error,) = kit.refuse.call_args.args
    assert "has 0 files train-*, and 2 processes" in str(error)


# Stand-ins


def test_the_stand_in_prints_as_dllogger_does():
    now = datetime.datetime(2026, 11, 23, 3, 6, 41, 459975)
    line = stand_ins.lines({"total_ips": 1.271772368639287}, (0, 2), now)
    assert line in (LOGS / "1p_training_benchmark.log").read_text().splitlines()


def test_only_a_process_that_was_given_backends_prints(capsys):
    """The trainer gives them to rank 0 alone."""
    module = stand_ins.dllogger()
    module.init(backends=[])
    module.log(data={"loss": 1.0}, step=(0, 1))
    assert capsys.readouterr().out == ""
    module.init(backends=[module.StdOutBackend(verbosity=module.Verbosity.VERBOSE)])
    module.log(data={"loss": 1.0}, step=(0, 1))
    assert capsys.readouterr().out.endswith(" - (0, 1) loss : 1.0 \n")


def test_dali_stands_in_for_what_the_trainer_imports():
    modules = stand_ins.dali()
    assert modules["nvidia"].dali.plugin.tf is modules["nvidia.dali.plugin.tf"]
    assert isinstance(modules["nvidia.dali"].pipeline.Pipeline, type)
