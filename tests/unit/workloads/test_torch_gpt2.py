# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""torch_gpt2: what its genuine logs mean, what its models cost, and which tokens it takes. Needs no torch."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from ansible.module_utils.scalebook import flops
from ansible.module_utils.scalebook.throughput import measure
from cases import cluster, plan
from declared import with_settings
from in_english import log_record, run_record
from model_operations import flops_of_gpt2
from role_files import ROLES, declaration, load

LOGS = Path(__file__).resolve().parents[2] / "data/torch_gpt2"
SETTINGS = {"parallel": "ddp", "tensor_parallel": 1, "pipeline_parallel": 1, "compile_mode": "default"}
WORKLOAD = declaration("torch_gpt2")
CHECK = ROLES / "torch_gpt2/files/tokens.py"

sizes = load("workload", "gpt2_sizes")


def planned(given, device="cpu"):
    """Return the workload and the plan of a case of two devices, with these parameters and settings."""
    settings = {name: given.pop(name) for name in set(given) & set(SETTINGS)}
    workload = with_settings(WORKLOAD, **{**SETTINGS, **settings})
    given = {"nodes": 1, "gpus": 2, "bsz": 4, "dtype": "fp32", **given}
    return workload, plan(given, workload, cluster(4, slots=8), "torch_gpt2", device)


def record(name="1n2g_tp1.log", **given):
    workload, made = planned(given)
    return log_record(LOGS / name, made["cases"][0], 1, workload, name)


FSDP, PIPELINE = {"parallel": "fsdp"}, {"pipeline_parallel": 2, "accumulation": 4}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"tensor_parallel": 4}, "torch_gpt2_tensor_parallel=4 does not divide the 2 devices of a node"),
        (
            {"tensor_parallel": 8, "gpus": 8},
            "torch_gpt2_tensor_parallel=8 does not divide the 4 heads of the model",
        ),
        ({"tensor_parallel": 2, "xla": "true"}, "torch_gpt2_tensor_parallel=2 does not go with xla=true"),
        ({"tensor_parallel": 2}, None),
        (FSDP, None),
        ({**FSDP, "gpus": 1}, None),
        ({**FSDP, "xla": "true"}, None),
        ({**FSDP, "tensor_parallel": 2}, "parallel=fsdp does not go with torch_gpt2_tensor_parallel=2"),
        ({**FSDP, **PIPELINE}, "parallel=fsdp does not go with torch_gpt2_pipeline_parallel=2"),
        ({**FSDP, "dtype": "fp16"}, "parallel=fsdp does not go with dtype=fp16: use bf16"),
        ({**FSDP, "xla": "true", "compile_mode": "max-autotune"}, "compile_mode=max-autotune"),
        ({**FSDP, "xla": "true", "compile_mode": "max-autotune-no-cudagraphs"}, None),
        (PIPELINE, None),
        ({**PIPELINE, "nodes": 2, "gpus": 1}, None),
        ({**PIPELINE, "xla": "true"}, None),
        ({**PIPELINE, "nodes": 3, "gpus": 1}, "pipeline_parallel=2 does not divide 3 nodes with 1 devices"),
        ({**PIPELINE, "accumulation": 1}, "needs as many micro-batches or more: accumulation=1"),
        (
            {**PIPELINE, "tensor_parallel": 2},
            "pipeline_parallel=2 does not go with torch_gpt2_tensor_parallel=2",
        ),
        ({**PIPELINE, "dtype": "fp16"}, "pipeline_parallel=2 does not go with dtype=fp16: use bf16"),
        ({**PIPELINE, "xla": "true", "compile_mode": "reduce-overhead"}, "compile_mode=reduce-overhead"),
        ({"pipeline_parallel": 4, "gpus": 4, "accumulation": 4}, "is more than the 2 layers of the model"),
        ({"pipeline_parallel": 4, "gpus": 4, "accumulation": 4, "model": "117M"}, None),
    ],
)
def test_a_case_that_was_not_seen_to_train_the_same_model_is_not_planned(given, reason):
    device = "gpu" if given.get("dtype") == "fp16" else "cpu"
    reasons = [entry["reason"] for entry in planned(dict(given), device)[1]["skipped"]]
    assert len(reasons) == bool(reason)
    assert all(each.endswith(reason) for each in reasons)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("1n2g_tp1.log", {}),
        ("1n2g_tp2.log", {"tensor_parallel": 2}),
        ("1n2g_fsdp.log", FSDP),
        ("1n2g_pipeline.log", {**PIPELINE, "bsz": 2}),
    ],
)
def test_a_genuine_log_gives_the_rate_that_the_trainer_printed(name, given):
    """A sequence counts once, however many devices have worked on it."""
    read = record(name, **given)
    rate = float(re.search(r"sequences_per_second=(\S+)", (LOGS / name).read_text())[1])
    assert (read["status"], read["reason"], read["unit"]) == ("ok", None, "sequences")
    assert measure(read)["rate"] == pytest.approx(rate, abs=0.01)


def test_the_last_line_of_a_genuine_log_of_gpus_comes_at_once_and_those_before_it_a_step_late():
    """FSDP on two H200: lines came 0.65 s after their step, of 0.6 s; the last one after 0.1 s."""
    case = {**FSDP, "dtype": "bf16", "model": "345M", "bsz": 8, "accumulation": 4, "warmup": 10, "window": 30}
    workload, made = planned(case, "gpu")
    read = log_record(LOGS / "h200_1n2g_fsdp.log", made["cases"][0], 1, workload, "h200_1n2g_fsdp.log")
    measured = measure(read)
    assert (read["status"], read["notes"]) == ("ok", [])
    assert (round(measured["rate"], 2), round(measured["differs"], 3)) == (116.02, 0.042)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"gpus": 1}, "devices"),
        ({"dtype": "bf16"}, "dtype"),
        ({"xla": "true"}, "compile"),
        ({"bsz": 8}, "global_batch"),
        ({"model": "117M"}, "model"),
    ],
)
def test_a_log_that_contradicts_its_case_is_refused(wrong, named):
    read = record(**wrong)
    assert read["status"] == "refused"
    assert named in read["reason"]


@pytest.mark.parametrize(
    ("name", "wrong", "named"),
    [
        ("1n2g_tp2.log", {}, "tensor_parallel"),
        ("1n2g_fsdp.log", {}, "parallel"),
        ("1n2g_pipeline.log", {"bsz": 2, "accumulation": 4}, "pipeline_parallel"),
        ("1n2g_pipeline.log", {**PIPELINE, "bsz": 4, "accumulation": 2}, "accumulation"),
    ],
)
def test_a_log_of_another_parallel_mode_is_refused(name, wrong, named):
    read = record(name, **wrong)
    assert read["status"] == "refused"
    assert named in read["reason"]


@pytest.mark.parametrize(
    ("line", "other"),
    [
        # As a trainer would print that did not build what it was asked for.
        ("shards=2 ", "shards=1 x="),
        ("parallel=fsdp replicas=1 ", "parallel=fsdp replicas=2 "),
        ("weights_sum=", "sum="),
    ],
)
def test_a_run_that_does_not_show_what_was_built_is_refused(line, other, tmp_path):
    text = (LOGS / "1n2g_fsdp.log").read_text()
    workload, made = planned(dict(FSDP))
    found = []
    for changed in (text, text.replace(line, other)):
        (tmp_path / "NODE1.log").write_text(changed)
        found.append(run_record(tmp_path, made["cases"][0], 1, workload, ["NODE1"], {"rc": 0})["status"])
    assert found == ["ok", "refused"]


@pytest.mark.parametrize(
    ("model", "stages", "layers"),
    [
        ("345M", 1, [24]),
        ("345M", 2, [14, 10]),
        ("345M", 4, [7, 7, 7, 3]),
        ("117M", 2, [9, 3]),
        ("tiny", 2, [1, 1]),
    ],
)
def test_the_last_stage_has_fewer_layers_as_it_projects_to_the_vocabulary_too(model, stages, layers):
    assert sizes.layers_of_stages(sizes.MODELS[model], stages) == layers


@pytest.mark.parametrize("model", sorted(sizes.MODELS))
def test_each_stage_has_a_layer_and_each_layer_a_stage(model):
    size = sizes.MODELS[model]
    for stages in range(1, size["layers"] + 1):
        layers = sizes.layers_of_stages(size, stages)
        assert (len(layers), sum(layers), min(layers) > 0) == (stages, size["layers"], True)


@pytest.mark.parametrize(("model", "count"), [("117M", 124_439_808), ("345M", 354_823_168)])
def test_the_models_have_the_parameters_of_gpt2(model, count):
    assert sizes.parameters(sizes.MODELS[model], 1024) == count


@pytest.mark.parametrize("model", sorted(sizes.MODELS))
@pytest.mark.parametrize("seq", [64, 1024])
def test_the_declared_operations_are_those_of_the_model(model, seq):
    declared = flops.of_case(WORKLOAD.flops, {"model": model, "settings": {"seq_length": seq}})
    assert declared == flops_of_gpt2(model, seq)


def checked(folder, content, seq=4, vocabulary=100):
    pytest.importorskip("numpy")
    (folder / "text.bin").write_bytes(content)
    return subprocess.run(
        [sys.executable, CHECK, folder / "text.bin", str(seq), str(vocabulary)],
        capture_output=True,
        text=True,
    )


def test_tokens_of_the_vocabulary_are_taken(tmp_path):
    done = checked(tmp_path, b"\x63\x00" * 5)
    assert done.returncode == 0
    assert '"tokens": 5' in done.stdout


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\x01\x00" * 4, "has 8 bytes, needed are 10 or more"),
        (b"\x01\x00" * 5 + b"\x01", "has 11 bytes"),
        (b"\x64\x00" * 5, "has the token 100, the vocabulary of the model ends at 99"),
    ],
)
def test_tokens_of_another_form_are_refused(tmp_path, content, problem):
    done = checked(tmp_path, content)
    assert done.returncode == 1
    assert problem in done.stderr
