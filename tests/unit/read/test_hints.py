# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What an import says of a log that does not count: lines that look like steps, and what would read them."""

import pytest
from ansible.module_utils.scalebook.read.hints import fitting_window
from dlperf_logs import log_of_speed
from imports import DATA, import_case, import_log, rate

UNREAD = {
    "torch_resnet50/imports/dllogger": (
        '130 lines look like steps, such as "DLL 2020-09-15 14:29:13.873765 - Epoch: 0 Iteration: 1 '
        'train.loss : 6.75717 train.total_ips : 10131.38 img/s": no workload reads them'
    ),
    "torch_examples_resnet50/imports/torch_examples": (
        '153 lines such as "Epoch: [0][ 0/153] Time 0.363 ( 0.363) Data 0.106..." are steps of main.py of '
        "pytorch/examples without time stamps: bench.yml with workload=torch_examples_resnet50 reads them"
    ),
    "gluoncv_resnet50/imports/gluoncv": (
        '25 lines such as "Epoch[0] Batch [9] Speed: 802.173036 samples/sec a..." are steps of a trainer of '
        "gluon-cv without time stamps: bench.yml with workload=gluoncv_resnet50 reads them"
    ),
    "paddlecv_resnet50/imports/paddlecv": (
        '14 lines such as "INFO:utils.utility:[Pass 0, train batch 0] loss 21..." are steps of train.py of '
        "PaddleCV without time stamps: bench.yml with workload=paddlecv_resnet50 reads them"
    ),
    "deepspeed_bert/imports/deepspeed_02": (
        '20 lines such as "[INFO 2020-06-08 05:13:07] 0/10, SamplesPerSec=13...." are steps of DeepSpeed 0.2 '
        "with time stamps of whole seconds and a mean rate"
    ),
}


@pytest.mark.parametrize("path", UNREAD)
def test_lines_that_look_like_steps_are_quoted_with_what_reads_them(path):
    record = import_case(path)
    assert record["status"] == "incomplete"
    assert record["reason"].endswith(f"shows no step, step 120 is required; {UNREAD[path]}")


@pytest.mark.parametrize("bar", ["#", "█"])
def test_the_progress_bar_of_a_trainer_looks_like_steps(bar):
    log = "".join(f"{n:3}%|{bar * (n // 10):10}| {n}/130 [00:{n:02}<00:30,  2.{n}it/s]\r" for n in range(50))
    reason = import_log("hf_mlm", log)["reason"]
    assert '50 lines look like steps, such as "0%| | 0/130 [00:00<00:30, 2.0it/s]"' in reason


@pytest.mark.parametrize(
    ("log", "program"),
    [
        ("torch_examples_resnet50/2n1g_unpatched-NODE1.log", "main.py of pytorch/examples"),
        ("gluoncv_resnet50/1p_train_imagenet.log", "a trainer of gluon-cv"),
        ("gluoncv_resnet50/2p_train_horovod.log", "a trainer of gluon-cv"),
        ("paddlecv_resnet50/2p_not_synchronised.log", "train.py of PaddleCV"),
    ],
)
def test_genuine_logs_of_these_programs_are_known(log, program):
    assert (
        f" are steps of {program} without time stamps: "
        in import_log("torch_bert", (DATA / log).read_bytes())["reason"]
    )


def test_another_workload_is_named():
    reason = import_case("torch_examples_resnet50/imports/torch_examples", "torch_bert")["reason"]
    assert reason.endswith(": bench.yml with workload=torch_examples_resnet50 reads them")


def test_a_line_is_quoted_without_colours_and_control_characters():
    line = "\x1b[31mstep {0}\x1b[0m\tloss=7.0\x07\n"
    record = import_log("torch_bert", "".join(line.format(step) for step in range(130)))
    assert '130 lines look like steps, such as "step 0 loss=7.0": no workload reads them' in record["reason"]


@pytest.mark.parametrize("text", ["hello\n" * 100, "batch_size: 64\nsteps: 1000\n", "\0" * 4096])
def test_a_log_without_such_lines_gets_no_advice(text):
    assert import_log("torch_bert", text)["reason"].endswith("shows no step, step 120 is required")


# Another workload


def test_the_workload_that_reads_a_log_is_named():
    record = import_log("torch_bert", log_of_speed(128.0))
    assert record["reason"].endswith("shows no step, step 120 is required; workload=tf2_bert reads it")


def test_the_window_that_it_needs_is_named_too():
    record = import_case("tf2_resnet50/imports/tf2_rn50_dlperf", "tf2_bert")
    assert record["reason"].endswith("; workload=tf2_resnet50 warmup=100 window=500 reads it")


def test_all_workloads_that_read_a_log_are_named():
    record = import_case("deepspeed_bert/imports/deepspeed_accelerate", "torch_bert")
    assert record["reason"].endswith("; workload=bing_bert / workload=deepspeed_bert reads it")


def test_the_workload_of_a_log_with_anothers_steps_is_named():
    log = (DATA / "horovod_tf1_bert/1n1g-NODE1.log").read_bytes()
    record = import_log("horovod_bert", log, "1n1g/tiny_b16_fp32_1.log")
    assert record["reason"].endswith(": another program wrote it; workload=horovod_tf1_bert reads it")


# Another window


def test_another_window_that_fits_is_named():
    reason = import_case("tf2_resnet50/imports/tf2_rn50_dlperf")["reason"]
    assert reason.endswith(
        "does not show step 20, where the window begins; warmup=100 window=500 fits its steps"
    )


def test_the_window_that_is_named_gives_the_rate_that_the_log_prints():
    record = import_case("tf2_resnet50/imports/tf2_rn50_dlperf", warmup=100, window=500)
    assert rate(record) == pytest.approx(321.8, abs=0.01)


def test_dlperfs_window_of_oneflows_bert_is_named():
    reason = import_case("oneflow_bert/imports/oneflow_bert_dlperf")["reason"]
    assert reason.endswith("stops at step 119, step 120 is required; warmup=19 window=100 fits its steps")


def test_dlperfs_logs_of_oneflows_bert_are_read():
    record = import_case("oneflow_bert/imports/oneflow_bert_dlperf", warmup=19, window=100)
    assert rate(record) == pytest.approx(186.93, abs=0.01)
    assert record["notes"] == ["two readings differ by 25.2%: 186.93 samples/s by times, 139.90 by rates"]


@pytest.mark.parametrize(
    ("steps", "window"),
    [
        (range(1, 200), None),
        (range(1, 60), None),
        (range(100, 700, 100), (100, 500)),
        (range(19, 130, 20), (19, 100)),
        (range(0, 1000, 50), (50, 250)),
        (range(500, 800), (500, 100)),
        (range(101, 150), (101, 48)),
        ([100], None),
        ([], None),
    ],
)
def test_a_window_begins_and_ends_with_steps_that_are_logged(steps, window):
    assert fitting_window(list(steps), 20, 100) == window
