# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What the workloads of this project refuse: each variable with a limit, its value and what is allowed."""

import pytest
from ansible.module_utils.scalebook.plan.parameters import ParameterError, read
from planned import known, known_with

COMMIT = "allowed are the 40 digits of a commit"
PATH = "allowed are an absolute path, or nothing"
TEXT = "allowed are a path or a pattern of files on the nodes, with "
REFUSED = [
    *((name, f"{name}_commit=master", COMMIT) for name in ("bing_bert", "horovod_tf1_bert", "oneflow_bert")),
    *((name, f"{name}_commit=master", COMMIT) for name in ("oneflow_resnet50", "oneflow_wide_deep")),
    *((name, f"{name}_commit=", COMMIT) for name in ("gluoncv_resnet50", "mxnet_resnet50")),
    ("tf1_resnet50", "tf1_resnet50_commit=", COMMIT),
    ("bing_bert", "bing_bert_examples_commit=master", COMMIT),
    ("bing_bert", "bing_bert_summed=never", "allowed are each, dlperf"),
    ("bing_bert", "bing_bert_files=0", "allowed are 1 and more"),
    ("bing_bert", "bing_bert_workers=65", "allowed are 0 to 64"),
    ("bing_bert", "bing_bert_launcher=openmpi", "allowed are job, pdsh"),
    *(
        (name, f"{name}_{variable}={value}", allowed)
        for name in ("bing_bert", "deepspeed_bert", "torch_bert")
        for variable, value, allowed in [
            ("seq_length", "31", "allowed are 32 to 512"),
            ("predictions", "126", f"allowed are 1 to {name}_seq_length - 3"),
            ("dropout", "1", "allowed are 0 to below 1"),
            ("text", "/texts", TEXT),
            ("vocab_file", "/vocab.txt", f"allowed are the path of a file on the nodes, with {name}_text"),
            ("data_processes", "-1", "allowed are whole numbers from 0 on"),
        ]
    ),
    *(
        (name, f"{name}_own_data=data", "allowed are the path of a directory on the nodes, or nothing")
        for name in ("bing_bert", "deepspeed_bert")
    ),
    ("tf2_bert", "tf2_bert_text=/texts", TEXT),
    ("tf2_bert", "tf2_bert_data_processes=-1", "allowed are whole numbers from 0 on"),
    ("deepspeed_bert", "deepspeed_bert_zero_stage=3", "allowed are 0, 1, 2"),
    ("deepspeed_bert", "deepspeed_bert_launcher=ssh", "allowed are job, pdsh, openmpi"),
    ("deepspeed_bert", "deepspeed_bert_version=0.3", "allowed are 0.19.8"),
    ("hf_mlm", "hf_mlm_epochs=1", "allowed are 2 and more, as the first is warm-up"),
    ("hf_mlm", "hf_mlm_length=7", "allowed are 8 to 512"),
    ("hf_mlm", "hf_mlm_train_samples=0", "allowed are 1 and more"),
    ("hf_mlm", "hf_mlm_eval_samples=0", "allowed are 1 and more"),
    ("hf_mlm", "hf_mlm_own_data=texts", "allowed are a path or a pattern of files on the nodes"),
    ("hf_mlm", "hf_mlm_report_to=mlflow", "allowed are none, wandb"),
    *(
        (name, f"{name}_{variable}={value}", allowed)
        for name in ("horovod_bert", "horovod_tf1_bert")
        for variable, value, allowed in [
            ("samples", "0", "allowed are 1 and more"),
            ("length", "513", "allowed are 8 to 512"),
            ("learning_rate", "0", "allowed are numbers above 0"),
            ("fusion_mb", "1025", "allowed are 0 to 1024"),
            ("cycle_ms", "0.01", "allowed are 0.1 to 100"),
        ]
    ),
    ("horovod_bert", "horovod_bert_dropout=1.5", "allowed are 0 to below 1"),
    ("horovod_bert", "horovod_bert_clip=0", "allowed are numbers above 0"),
    ("horovod_tf1_bert", "horovod_tf1_bert_launcher=srun", "allowed are mpirun, horovodrun"),
    ("horovod_tf1_bert", "horovod_tf1_bert_task=cola", "allowed are mrpc, as the data that are made"),
    ("horovod_tf1_bert", "horovod_tf1_bert_vocabulary=/v", "allowed are the path of vocab.txt together with"),
    (
        "gluoncv_resnet50",
        "gluoncv_resnet50_data=",
        "allowed are a file of records, or gluoncv_resnet50_images above",
    ),
    ("gluoncv_resnet50", "gluoncv_resnet50_image_size=320", "allowed are 32 to below 320"),
    ("mxnet_resnet50", "mxnet_resnet50_version=1.5.0", "allowed is 1.6.0"),
    ("mxnet_resnet50", "mxnet_resnet50_data=/x.tar", "allowed are an absolute path that ends in .rec"),
    ("mxnet_resnet50", "mxnet_resnet50_image_size=31", "allowed are 32 and more"),
    ("mxnet_resnet50", "mxnet_resnet50_learning_rate=0.0001", "allowed are 0.001 and more"),
    ("mxnet_resnet50", "mxnet_resnet50_threads=0", "allowed are 1 and more"),
    ("oneflow_bert", "oneflow_bert_predictions=128", "allowed are 1 to oneflow_bert_seq_length - 1"),
    ("oneflow_bert", "oneflow_bert_samples=0", "allowed are 1 and more"),
    ("oneflow_resnet50", "oneflow_resnet50_mode=lazy", "allowed are eager, graph"),
    ("oneflow_resnet50", "oneflow_resnet50_data=images", PATH),
    ("oneflow_resnet50", "oneflow_resnet50_files=1025", "allowed are 1 to 1024"),
    ("oneflow_resnet50", "oneflow_resnet50_images=1", "allowed are 0, and at least as many as "),
    ("oneflow_resnet50", "oneflow_resnet50_learning_rate=0.000001", "allowed are 0.00001 and more"),
    ("oneflow_wide_deep", "oneflow_wide_deep_print_every=0", "allowed are 1 and more"),
    ("oneflow_wide_deep", "oneflow_wide_deep_dropout=1", "allowed are 0 to below 1"),
    ("paddle_bert", "paddle_bert_predictions=129", "allowed are 1 to paddle_bert_seq_length"),
    ("paddle_bert", "paddle_bert_clip=0", "allowed are numbers above 0"),
    ("paddle_resnet50", "paddle_resnet50_version=1.8.5", "allowed is 2.6.2"),
    ("paddle_resnet50", "paddle_resnet50_data=images", PATH),
    ("paddle_resnet50", "paddle_resnet50_image_size=31", "allowed are 32 to 1024"),
    ("paddle_resnet50", "paddle_resnet50_classes=1", "allowed are 2 and more"),
    ("tf1_resnet50", "tf1_resnet50_tfrecords=records", PATH),
    ("tf1_resnet50", "tf1_resnet50_images=1", "allowed are tf1_resnet50_files and more"),
    ("tf2_bert", "tf2_bert_version=own", "allowed are auto, 2.3.0, 2.15, 2.20"),
    ("tf2_bert", "tf2_bert_steps_per_loop=0", "allowed are 1 and more"),
    ("tf2_bert", "tf2_bert_all_reduce_alg=tree", "allowed are ring, nccl or nothing"),
    ("tf2_resnet50", "tf2_resnet50_log_steps=0", "allowed are 1 and more"),
    ("tf2_resnet50", "tf2_resnet50_tfrecords=records", PATH),
    ("torch_examples_resnet50", "torch_examples_resnet50_commit=master", "allowed are the 40 digits of a"),
    ("torch_bert", "torch_bert_optimizer=", "allowed are adamw, lamb"),
    ("torch_bert", "torch_bert_bucket_mb=0", "allowed are 1 and more"),
    ("torch_gpt2", "torch_gpt2_tensor_parallel=3", "allowed are 1, 2, 4, 8, 16"),
    ("torch_gpt2", "torch_gpt2_seq_length=8193", "allowed are 16 to 8192"),
    ("torch_resnet50", "torch_resnet50_image_size=100", "allowed are multiples of 32 from 32 to 1024"),
    ("torch_resnet50", "torch_resnet50_loader=pillow", "allowed are auto, and pillow and dali where"),
    ("torch_insightface", "torch_insightface_sample_rate=0", "allowed are numbers above 0 to 1"),
    ("torch_insightface", "torch_insightface_sample_rate=1.5", "allowed are numbers above 0 to 1"),
    ("torch_insightface", "torch_insightface_classes=10", "allowed are 1000 to "),
    ("torch_insightface", "torch_insightface_image_size=100", "allowed are multiples of 16 from 16 to 1024"),
    ("torch_wide_deep", "torch_wide_deep_rows=999", "allowed are 0, the rows of the model, or 1000 to "),
    ("torch_wide_deep", "torch_wide_deep_rows=-1", "allowed are whole numbers from 0 on"),
    ("torch_wide_deep", "torch_wide_deep_dropout=1", "allowed are 0 to below 1"),
    ("torch_wide_deep", "torch_wide_deep_learning_rate=0", "allowed are numbers above 0"),
]


# What a workload cannot do without: the trainers of these have no data of their own.
NEEDED = {name: [f"{name}_images=8"] for name in ("gluoncv_resnet50", "paddlecv_resnet50")}


def read_with(workload, *pairs):
    """Read the parameters of bench.yml for a workload with pairs NAME=VALUE."""
    extra = {"workload": workload, **dict(pair.split("=", 1) for pair in pairs)}
    return read(["bench"], extra, extra, known_with(extra))


def refusal(workload, *pairs):
    with pytest.raises(ParameterError) as error:
        read_with(workload, *pairs)
    return str(error.value)


@pytest.mark.parametrize("workload", sorted(known().workloads))
def test_the_defaults_are_within_the_limits(workload):
    assert read_with(workload, *NEEDED.get(workload, ()))["workload"] == [workload]


@pytest.mark.parametrize(("workload", "pair", "allowed"), REFUSED, ids=lambda value: value.partition(":")[0])
def test_a_value_outside_its_limit_is_refused_with_what_is_allowed(workload, pair, allowed):
    assert f"{pair}: {allowed}" in refusal(workload, pair)


@pytest.mark.parametrize(
    ("workload", "pairs", "refused"),
    [
        ("horovod_tf1_bert", ["data_dir=/glue"], "vocabulary="),
        ("mxnet_resnet50", ["data=/x.rec", "images=64"], "images=64"),
        ("gluoncv_resnet50", ["data=/x.rec", "images=64"], "images=64"),
        ("oneflow_resnet50", ["data=/records", "images=64"], "images=64"),
        ("paddle_resnet50", ["data=/images", "images=64"], "images=64"),
        ("tf2_bert", ["python=/usr/bin/python3", "version=2.15"], "version=2.15"),
        ("torch_bert", ["text=/t", "vocab_file=/v", "own_data=/d"], "text=/t"),
        ("torch_resnet50", ["data=/images", "images=64"], "images=64"),
        ("torch_examples_resnet50", ["data=/images", "images=64"], "images=64"),
    ],
)
def test_values_that_do_not_go_together_are_refused(workload, pairs, refused):
    assert f"{workload}_{refused}: allowed are " in refusal(
        workload, *(f"{workload}_{pair}" for pair in pairs)
    )


@pytest.mark.parametrize(
    ("workload", "pairs", "refused"),
    [
        (
            "torch_examples_resnet50",
            [],
            "torch_examples_resnet50_data=: allowed are a directory of images where",
        ),
        ("paddlecv_resnet50", [], "paddlecv_resnet50_data=: allowed are a directory of images, or"),
        (
            "paddlecv_resnet50",
            ["paddlecv_resnet50_version=2.6.2"],
            "paddlecv_resnet50_version=2.6.2: allowed is",
        ),
    ],
)
def test_limits_follow_the_stack(workload, pairs, refused):
    assert refused in refusal(workload, "stack_name=dlperf2020", *pairs)


@pytest.mark.parametrize(
    ("workload", "pairs"),
    [
        ("torch_bert", ["text=/t/**", "vocab_file=/v"]),
        ("horovod_tf1_bert", ["data_dir=/glue", "vocabulary=/v", "task=cola"]),
        ("gluoncv_resnet50", ["data=/x.rec"]),
        ("oneflow_resnet50", ["images=64", "files=64"]),
        ("tf2_bert", ["python=/usr/bin/python3"]),
        ("torch_resnet50", ["images=64", "loader=pillow", "image_size=256"]),
        ("torch_examples_resnet50", ["images=64"]),
    ],
)
def test_values_that_go_together_are_accepted(workload, pairs):
    assert read_with(workload, *(f"{workload}_{pair}" for pair in pairs))


@pytest.mark.parametrize(
    ("workload", "pair", "fix"),
    [
        (
            "torch_resnet50",
            "trainer=examples",
            "use workload=torch_examples_resnet50, whose variables begin ",
        ),
        ("torch_resnet50", "trainer=scalebook", "leave it out, as there is no such variable any more"),
        ("torch_resnet50", "trainer=nvidia", "leave it out, as there is no such variable any more"),
        ("torch_resnet50", f"commit={'1' * 40}", "leave it out, as there is no such variable any more"),
        ("mxnet_resnet50", "trainer=gluoncv", "use workload=gluoncv_resnet50, whose variables begin "),
        ("mxnet_resnet50", "trainer=nvidia", "leave it out, as there is no such variable any more"),
    ],
)
def test_a_variable_that_a_workload_no_longer_has_is_refused_with_what_to_write(workload, pair, fix):
    assert f"{workload}_{pair}: {fix}" in refusal(workload, f"{workload}_{pair}")


def test_so_is_one_of_the_inventory():
    values = {"workload": "torch_resnet50", "torch_resnet50_trainer": "examples"}
    with pytest.raises(ParameterError, match="use workload=torch_examples_resnet50"):
        read(["bench"], values, {"workload": "torch_resnet50"}, known_with(values))
