# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""torch_gpt2: what its genuine logs mean, what its models cost, and which tokens it takes. Needs no torch."""

import subprocess
import sys
from pathlib import Path

import pytest
from ansible.module_utils.scalebook import flops
from ansible.module_utils.scalebook.throughput import measure
from cases import cluster, plan
from declared import with_settings
from in_english import log_record
from model_operations import flops_of_gpt2
from role_files import ROLES, declaration, load

LOGS = Path(__file__).resolve().parents[2] / "data/torch_gpt2"
WORKLOAD = with_settings(declaration("torch_gpt2"), tensor_parallel=1)
CHECK = ROLES / "torch_gpt2/files/tokens.py"

sizes = load("workload", "gpt2_sizes")


def record(name="1n2g_tp1.log", **other):
    given = {"nodes": 1, "gpus": 2, "bsz": 4, "dtype": "fp32", **other}
    case = plan(given, WORKLOAD, cluster(4, slots=2), "torch_gpt2", "cpu")["cases"][0]
    return log_record(LOGS / name, case, 1, WORKLOAD, name)


@pytest.mark.parametrize(
    ("share", "given", "reason"),
    [
        (4, {}, "torch_gpt2_tensor_parallel=4 does not divide the 2 devices of a node"),
        (8, {"gpus": 8}, "torch_gpt2_tensor_parallel=8 does not divide the 4 heads of the model"),
        (2, {"xla": "true"}, "torch_gpt2_tensor_parallel=2 does not go with xla=true"),
        (2, {}, None),
    ],
)
def test_a_case_that_tensor_parallelism_cannot_divide_is_not_planned(share, given, reason):
    workload = with_settings(WORKLOAD, tensor_parallel=share)
    given = {"nodes": 1, "gpus": 2, "bsz": 4, "dtype": "fp32", **given}
    made = plan(given, workload, cluster(1), "torch_gpt2", "cpu")
    assert [entry["reason"] for entry in made["skipped"]] == ([reason] if reason else [])


@pytest.mark.parametrize(("name", "rate"), [("1n2g_tp1.log", 41.65), ("1n2g_tp2.log", 32.61)])
def test_a_genuine_log_gives_the_rate_that_the_trainer_printed(name, rate):
    read = record(name)
    assert (read["status"], read["reason"], read["unit"]) == ("ok", None, "sequences")
    assert measure(read)["rate"] == pytest.approx(rate, abs=0.01)


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
