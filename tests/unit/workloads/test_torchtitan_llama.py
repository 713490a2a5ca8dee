# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""torchtitan_llama: what its genuine logs mean, what its models cost, and which cases it refuses."""

import re
import sys
from argparse import Namespace
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from ansible.module_utils.scalebook import flops
from ansible.module_utils.scalebook.throughput import measure
from cases import cluster, plan
from declared import with_settings
from in_english import log_record
from role_files import declaration, load

LOGS = Path(__file__).resolve().parents[2] / "data/torchtitan_llama"
SETTINGS = {
    "seq_length": 8192,
    "replicas": 1,
    "tensor_parallel": 1,
    "checkpointing": "selective",
    "float8": "tensorwise_gather",
    "deterministic": False,
    "own_data": "",
}
LLAMA = declaration("torchtitan_llama")
TWO_GPUS = {
    "nodes": 1,
    "gpus": 2,
    "bsz": 2,
    "dtype": "fp8",
    "xla": "true",
    "warmup": 15,
    "window": 25,
    "model": "1B",
}
ONE_GPU = {**TWO_GPUS, "gpus": 1, "bsz": 4, "warmup": 5, "window": 20}
EMULATED = "fp8 is emulated on a CPU: only with xla=false and another float8 than rowwise"
FOUR_CPUS = {"nodes": 1, "gpus": 4, "bsz": 2, "dtype": "bf16", "warmup": 5, "window": 25}


def planned(given, device="gpu", **settings):
    workload = with_settings(LLAMA, **{**SETTINGS, **settings})
    return workload, plan(given, workload, cluster(4, slots=4), "torchtitan_llama", device)


def record(name, given, device="gpu", **settings):
    workload, made = planned(given, device, **settings)
    return log_record(LOGS / name, made["cases"][0], 1, workload, name)


def on_gpus(**other):
    settings = {name: other.pop(name) for name in set(other) & set(SETTINGS)}
    return record("h200x2_fp8.log", {**TWO_GPUS, **other}, **settings)


def on_cpus(**settings):
    wanted = {"seq_length": 64, "tensor_parallel": 2, "checkpointing": "full", **settings}
    return record("cpu_4_tp.log", FOUR_CPUS, "cpu", **wanted)


def of_replicas(**other):
    given = {**FOUR_CPUS, **{name: other.pop(name) for name in set(other) & {"accumulation"}}}
    return record("cpu_4_replicas.log", given, "cpu", **{"seq_length": 64, "replicas": 2, **other})


def with_accumulation(accumulation=2):
    return record("cpu_4_accumulation.log", {**FOUR_CPUS, "accumulation": accumulation}, "cpu", seq_length=64)


def by_rows():
    return record("h200_fp8_rowwise.log", ONE_GPU, seq_length=2048, float8="rowwise")


def printed(name, value):
    return re.search(rf"{value}=(\S+)", (LOGS / name).read_text())[1]


@pytest.mark.parametrize(
    ("read", "name"),
    [
        (on_gpus, "h200x2_fp8.log"),
        (by_rows, "h200_fp8_rowwise.log"),
        (on_cpus, "cpu_4_tp.log"),
        (of_replicas, "cpu_4_replicas.log"),
        (with_accumulation, "cpu_4_accumulation.log"),
    ],
)
def test_a_genuine_log_gives_the_rate_that_the_trainer_printed(read, name):
    made = read()
    assert (made["status"], made["reason"], made["unit"]) == ("ok", None, "sequences")
    assert measure(made)["rate"] == pytest.approx(float(printed(name, "sequences_per_second")), rel=1e-4)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"gpus": 4}, "devices"),
        ({"dtype": "bf16"}, "dtype"),
        ({"xla": "false"}, "compile"),
        ({"bsz": 4}, "global_batch"),
        ({"model": "3B"}, "model"),
        ({"seq_length": 4096}, "seq_length"),
        ({"checkpointing": "full"}, "checkpointing"),
        ({"float8": "rowwise"}, "float8"),
        ({"deterministic": True}, "deterministic"),
        ({"own_data": "/texts/*"}, "data"),
    ],
)
def test_a_log_that_contradicts_its_case_is_refused(wrong, named):
    read = on_gpus(**wrong)
    assert read["status"] == "refused"
    assert named in read["reason"]


@pytest.mark.parametrize(("shown", "asked"), [("rowwise", "tensorwise_gather"), ("tensorwise", "rowwise")])
def test_on_one_device_too_the_log_must_show_how_fp8_is_scaled(shown, asked, tmp_path):
    text = (LOGS / "h200_fp8_rowwise.log").read_text().replace("float8=rowwise", f"float8={shown}")
    (tmp_path / "changed.log").write_text(text)
    workload, made = planned(ONE_GPU, seq_length=2048, float8=asked)
    read = log_record(tmp_path / "changed.log", made["cases"][0], 1, workload, "changed.log")
    assert read["status"] == "refused"
    assert "float8_by_" in read["reason"]


@pytest.mark.parametrize(
    ("shown", "instead", "named"),
    [
        ("shards=2", "shards=1", "shards 1"),
        ("float8_layers=112", "float8_layers=111", "float8_layers 111"),
        (r"(step=\d+/40 loss=)\S+", r"\g<1>12.25", "mean loss of 12.2500 in the first quarter"),
        (r"(step=\d+/40 loss=)\S+", r"\g<1>nan", "the loss is nan at step 1"),
    ],
)
def test_a_log_that_shows_less_than_its_case_is_refused(shown, instead, named, tmp_path):
    text, count = re.subn(shown, instead, (LOGS / "h200x2_fp8.log").read_text())
    (tmp_path / "changed.log").write_text(text)
    workload, made = planned(TWO_GPUS)
    read = log_record(tmp_path / "changed.log", made["cases"][0], 1, workload, "changed.log")
    assert count and read["status"] == "refused"
    assert named in read["reason"]


def test_a_log_of_another_layout_is_refused():
    assert "tensor_parallel" in on_cpus(tensor_parallel=1)["reason"]


# 25 steps of 4 devices with 2 sequences, and of 2 such micro-steps, in the seconds between steps 5 and 30.
@pytest.mark.parametrize(
    ("read", "rate", "losses", "shown"),
    [
        (
            of_replicas,
            25 * 8 / (1795928587.115643 - 1795928569.133912),
            {"first": 8.078216552734375, "last": 7.147027015686035},
            {"replicas": ["2"], "shards": ["2"], "accumulation": ["1"], "global_batch": ["8"]},
        ),
        (
            with_accumulation,
            25 * 16 / (1795928726.595742 - 1795928686.197330),
            {"first": 8.143795013427734, "last": 7.195078372955322},
            {"replicas": ["1"], "shards": ["4"], "accumulation": ["2"], "global_batch": ["16"]},
        ),
    ],
)
def test_copies_of_the_weights_and_accumulated_gradients_are_read_off_the_log(read, rate, losses, shown):
    made = read()
    (node,) = made["nodes"]
    assert measure(made)["rate"] == pytest.approx(rate, rel=1e-6)
    assert node["loss"] == losses
    assert node["shown"].items() >= {**shown, "float8_layers": ["0"], "steps": ["30"]}.items()


@pytest.mark.parametrize(
    ("read", "wrong", "named"),
    [
        (of_replicas, {"replicas": 1}, "replicas 2"),
        (of_replicas, {"accumulation": 2}, "accumulation 1"),
        (with_accumulation, {"accumulation": 1}, "accumulation 2"),
    ],
)
def test_a_log_of_other_copies_or_micro_steps_is_refused(read, wrong, named):
    assert named in read(**wrong)["reason"]


def test_deterministic_runs_of_two_gpus_have_the_same_losses_and_weights():
    texts = [(LOGS / f"h200_deterministic_{run}.log").read_text() for run in "ab"]
    traces = [re.findall(r"LLAMA step=\S+ loss=(\S+)", text) for text in texts]
    assert traces[0] == traces[1] and len(traces[0]) == 12
    assert len({re.search("weights_checksum=(.*)", text)[1] for text in texts}) == 1


@pytest.mark.parametrize(
    ("given", "settings", "reason"),
    [
        ({"gpus": 2}, {"tensor_parallel": 2}, "without FSDP2 torchtitan computes in fp32"),
        ({"gpus": 2}, {"replicas": 2}, "DistributedDataParallel of torchtitan halves the gradients"),
        ({"gpus": 4}, {"replicas": 2, "tensor_parallel": 2}, "DistributedDataParallel"),
        ({"gpus": 3, "nodes": 2}, {"replicas": 4}, "does not divide 2 nodes with 3 devices"),
        ({"gpus": 3, "nodes": 2}, {"tensor_parallel": 2}, "does not divide the 3 devices of a node"),
        (
            {"gpus": 4},
            {"tensor_parallel": 2, "seq_length": 1023},
            "does not divide torchtitan_llama_seq_length=1023",
        ),
        ({"gpus": 4}, {"tensor_parallel": 2}, None),
        ({"gpus": 4}, {"replicas": 2}, None),
        ({"gpus": 1}, {}, None),
    ],
)
def test_a_case_that_torchtitan_would_train_differently_is_not_planned(given, settings, reason):
    made = planned({"nodes": 1, "bsz": 1, "dtype": "bf16", **given}, **settings)[1]
    reasons = [entry["reason"] for entry in made["skipped"]]
    assert all(reason in each for each in reasons) if reason else not reasons
    assert bool(reasons) == bool(reason)


@pytest.mark.parametrize(
    ("capability", "other", "why"),
    [
        ((8, 0), {}, "the GPU has compute capability 8.0, FP8 needs 8.9 or newer: use dtype=bf16"),
        ((8, 9), {}, None),
        ((9, 0), {}, None),
        ((8, 0), {"dtype": "bf16"}, None),
        (None, {"device": "cpu"}, None),
        (None, {"device": "cpu", "float8": "rowwise"}, EMULATED),
        (None, {"device": "cpu", "compile": True}, EMULATED),
    ],
)
def test_fp8_on_a_device_that_does_not_multiply_in_it_is_refused(capability, other, why, monkeypatch):
    def capability_of(device):
        return {2: capability}[device]

    modules = {"torch": MagicMock(), "torch.distributed": MagicMock(), "trainer_kit": MagicMock()}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    modules["torch"].cuda.get_device_capability = capability_of
    monkeypatch.setenv("LOCAL_RANK", "2")
    asked = {"dtype": "fp8", "device": "gpu", "float8": "tensorwise", "compile": False, **other}
    load("torchtitan_llama", "train").refuse(Namespace(**asked))
    said = [call.args[0] for call in modules["trainer_kit"].refuse.call_args_list]
    assert len(said) == bool(why)
    assert all(why in text for text in said)


@pytest.mark.parametrize("dtype", ["bf16", "fp8"])
@pytest.mark.parametrize("xla", ["false", "true"])
@pytest.mark.parametrize(
    ("model", "settings"),
    [("1B", {"seq_length": 2048}), ("3B", {}), ("8B", {"seq_length": 4096, "checkpointing": "full"})],
)
def test_a_model_is_planned_on_two_gpus_compiled_and_eager_in_both_precisions(model, settings, dtype, xla):
    made = planned({**TWO_GPUS, "model": model, "bsz": 1, "dtype": dtype, "xla": xla}, **settings)[1]
    (case,) = made["cases"]
    assert (case["model"], case["dtype"], case["xla"]) == (model, dtype, xla == "true")
    assert {name: case["settings"][name] for name in settings} == settings


# Exact ones are from its log, the others are what its formula gives, to four digits.
@pytest.mark.parametrize(
    ("model", "seq", "per_token"),
    [
        ("1B", 8192, 10636111872),
        ("tiny", 64, 22820352),
        ("1B", 2048, 8.220e9),
        ("3B", 2048, 21.39e9),
        ("3B", 8192, 27.73e9),
        ("8B", 4096, 51.47e9),
    ],
)
def test_the_declared_operations_are_those_that_torchtitan_counts(model, seq, per_token):
    """It also counts the multiplication of a norm by its weights: less than 0.1 %."""
    case = {"model": model, "settings": {"seq_length": seq}}
    assert flops.of_case(LLAMA.flops, case) / seq == pytest.approx(per_token, rel=1e-3)
