# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A log counts for the workload that wrote it, and for no other."""

import pytest
from cases import case
from imports import DATA, import_case, import_log, rate, workloads
from in_english import log_record

LLAMA = {"settings": {"seq_length": 64, "replicas": 1, "tensor_parallel": 2, "checkpointing": "full"}}
LLAMA["settings"] |= {"float8": "tensorwise_gather", "deterministic": False}
FACES = {"image_size": 32, "classes": 4000, "sample_rate": 0.1, "margin": "arcface"}
LOGS = {
    "bing_bert": ("2n_pdsh.log", {"nodes": 2, "bsz": 4}),
    "deepspeed_bert": ("current_1n.log", {"bsz": 4}),
    "gluoncv_resnet50": ("1n_NODE1.log", {"bsz": 2, "model": "resnet50", "warmup": 2, "window": 6}),
    "hf_llama": ("full-NODE1.log", {"nodes": 2, "bsz": 2, "dtype": "bf16", "warmup": 4, "window": 16}),
    "hf_mlm": ("1n1g-NODE1.log", {"accumulation": 4, "window": 44}),
    "horovod_bert": ("1n1g-NODE1.log", {"bsz": 4}),
    "horovod_tf1_bert": ("1n1g-NODE1.log", {}),
    "mxnet_resnet50": ("1n_NODE1.log", {"bsz": 2, "model": "resnet50", "warmup": 1, "window": 9}),
    "oneflow_bert": ("1n_NODE1.log", {"bsz": 4, "warmup": 10, "window": 20}),
    "oneflow_resnet50": ("1n_NODE1.log", {"bsz": 1, "warmup": 1, "window": 3}),
    "oneflow_wide_deep": ("1n_NODE1.log", {"bsz": 4, "warmup": 10, "window": 20}),
    "paddle_bert": ("1n_NODE1.log", {"bsz": 4, "warmup": 2, "window": 10}),
    "paddle_resnet50": ("1n_NODE1.log", {"bsz": 1, "warmup": 2, "window": 10}),
    "paddlecv_resnet50": ("1n_NODE1.log", {"bsz": 2, "warmup": 2, "window": 10}),
    "tf1_resnet50": ("1n_NODE1.log", {"bsz": 2, "warmup": 5, "window": 20}),
    "tf2_bert": ("1n_mirrored.log", {}),
    "tf2_resnet50": ("1n_mirrored.log", {"bsz": 2, "warmup": 5, "window": 15}),
    "torch_bert": ("h100_b256_bf16_eager.log", {"bsz": 256, "dtype": "bf16", "window": 40}),
    "torch_examples_resnet50": (
        "1n1g_2020-NODE1.log",
        {"bsz": 2, "model": "resnet50", "warmup": 2, "window": 6},
    ),
    "torch_gpt2": ("1n2g_tp1.log", {"gpus": 2, "bsz": 4}),
    "torch_resnet50": ("1n1g-NODE1.log", {"bsz": 4}),
    "torch_insightface": ("1n1g-NODE1.log", {"bsz": 4, "settings": FACES}),
    "torch_wide_deep": ("1n1g-NODE1.log", {"bsz": 64}),
    "torchtitan_llama": (
        "cpu_4_tp.log",
        {"gpus": 4, "bsz": 2, "dtype": "bf16", "warmup": 5, "window": 25, **LLAMA},
    ),
}
"""A recording of each workload, and its case."""


def read(wrote, workload):
    """Return the record of the recording of `wrote`, read as one of `workload`."""
    file, values = LOGS[wrote]
    compiled = workloads()[workload]
    return log_record(DATA / wrote / file, case(workload=workload, **values), 1, compiled, file)


def test_every_workload_has_a_recording():
    assert LOGS.keys() == workloads().keys()


@pytest.mark.parametrize("workload", LOGS)
def test_a_log_counts_for_the_workload_that_wrote_it(workload):
    assert (read(workload, workload)["status"], read(workload, workload)["reason"]) == ("ok", None)


@pytest.mark.parametrize("wrote", LOGS)
def test_no_log_counts_for_another_workload(wrote):
    assert [other for other in LOGS if other != wrote and read(wrote, other)["status"] == "ok"] == []


@pytest.mark.parametrize("workload", ["deepspeed_bert", "bing_bert"])
def test_a_log_of_deepspeed_that_does_not_name_its_trainer_counts_for_both(workload):
    """DLPerf's logs of DeepSpeed are such logs: the line is that of DeepSpeed, whatever it trains."""
    log = DATA / "deepspeed_bert/ds_1n2p_info.log"
    compiled = workloads()[workload]
    values = {"workload": workload, "gpus": 2, "bsz": 8, "warmup": 4, "window": 8}
    assert log_record(log, case(**values), 1, compiled, log.name)["status"] == "ok"


NVIDIA = """\
I0302 02:18:34.095051 140737349982016 model_training_utils.py:538] Step: {0} Lr 2.91842e-05 Loss scale 32768
I0302 02:{1:02}:{2:02}.095144 1 utils.py:9] Train Step: {0}/130  / loss = 10.2 / time = 0.143 sec
I0302 02:18:34.095176 140737349982016 model_training_utils.py:540] Perf 7.35
"""


def test_nvidias_bert_for_tensorflow_2_is_not_the_one_of_tensorflow():
    text = "***** Number of cores used :  1\n" + "".join(
        NVIDIA.format(step, *divmod(5 * step, 60)) for step in range(1, 131)
    )
    record = import_log("tf2_bert", text, "1n1g/bert_b1_fp16_1.log")
    assert record["status"] == "refused"
    assert (
        'does not show program (a line with " masked_lm_accuracy = "): another program wrote it'
        in record["reason"]
    )


def test_the_steps_of_another_trainer_of_tensorflow_are_not_those_of_its_resnet50():
    line = (
        "I0826 18:0{0}:18.776259 140 keras_utils.py:145] TimeHistory: 60 seconds, "
        "213.3 examples/second between steps {1} and {0}00\n"
    )
    text = "".join(line.format(step, 100 * (step - 1)) for step in range(1, 9))
    record = import_log("tf2_resnet50", text, warmup=100, window=500)
    assert "another program wrote it" in record["reason"]


def test_a_log_with_a_complete_window_counts_without_the_closing_summary():
    assert rate(import_case("tf2_bert/imports/tf2_without_summary")) == pytest.approx(128.0)


def test_a_log_that_ends_within_the_window_does_not_count():
    log = next((DATA / "tf2_bert/imports/tf2_without_summary").glob("*/*.log")).read_text()
    record = import_log("tf2_bert", "".join(log.splitlines(keepends=True)[:88]), "1n1g/bert_b64_fp32_1.log")
    assert (record["status"], record["reason"]) == (
        "incomplete",
        "logs/1n1g/bert_b64_fp32_1.log stops at step 87, step 120 is required",
    )


@pytest.mark.parametrize(("gpus", "rate_of_all"), [(1, 128.0), (8, 1024.0)])
def test_dlperfs_logs_of_oneflows_resnet50_are_read(gpus, rate_of_all):
    line = "train: epoch 0, iter {0}, loss: 7.087004, top_1: 0.000000, top_k: 0.000000, samples/s: {1} {2}\n"
    text = "".join(line.format(step, rate_of_all, 1597933942.5 + step) for step in range(20, 140, 20))
    record = import_log("oneflow_resnet50", text, f"1n{gpus}g/rn50_b128_fp32_1.log")
    assert (rate(record), record["notes"]) == (pytest.approx(rate_of_all), [])
