# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""hf_llama: what its logs mean, on genuine ones, which cases it runs and what they cost. Needs no torch."""

from pathlib import Path

import pytest
from ansible.module_utils.scalebook import flops
from ansible.module_utils.scalebook.throughput import measure
from cases import cluster, plan
from declared import with_settings
from in_english import run_record
from role_files import declaration

LOGS = Path(__file__).resolve().parents[2] / "data/hf_llama"
DECLARED = declaration("hf_llama")
DEFAULTS = {
    "seq_length": 64,
    "lora_rank": 0,
    "parallel": "ddp",
    "checkpointing": False,
    "tf32": True,
    "own_data": "",
}
NODES = ["NODE1", "NODE2"]


def case(device="cpu", settings=None, **other):
    workload = with_settings(DECLARED, **{**DEFAULTS, **(settings or {})})
    given = {"nodes": 2, "gpus": 1, "dtype": "bf16", "bsz": 2, "warmup": 4, "window": 16, **other}
    made = plan(given, workload, cluster(4), "hf_llama", device)
    return workload, (made["cases"] or made["skipped"])[0]


def record(folder, name, edit=str, **other):
    """Return the record of the genuine logs of two nodes, each changed by `edit`, for a case."""
    for node in NODES:
        (folder / f"{node}.log").write_text(edit((LOGS / f"{name}-{node}.log").read_text()))
    workload, made = case(**other)
    return run_record(folder, made, 1, workload, NODES, {"rc": 0})


@pytest.mark.parametrize(("name", "rank", "rate"), [("full", 0, 12.39), ("lora", 8, 12.50)])
def test_a_genuine_log_gives_the_rate_that_the_trainer_printed(tmp_path, name, rank, rate):
    read = record(tmp_path, name, settings={"lora_rank": rank})
    assert (read["status"], read["reason"], read["unit"]) == ("ok", None, "sequences")
    assert measure(read)["rate"] == pytest.approx(rate, abs=0.01)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"gpus": 2}, "devices"),
        ({"dtype": "fp32"}, "dtype"),
        ({"xla": "true"}, "compile"),
        ({"bsz": 4}, "global_batch"),
        ({"model": "1B"}, "model"),
        ({"settings": {"lora_rank": 8}}, "lora_rank"),
        ({"settings": {"seq_length": 128}}, "seq_length"),
        ({"settings": {"checkpointing": True}}, "checkpointing"),
        ({"settings": {"own_data": "/texts/*"}}, "data"),
    ],
)
def test_a_log_that_contradicts_its_case_is_refused(tmp_path, wrong, named):
    read = record(tmp_path, "full", **wrong)
    assert (read["status"], named in read["reason"]) == ("refused", True)


def test_a_model_that_trainer_split_does_not_count_as_one_that_it_copied(tmp_path):
    read = record(tmp_path, "full", lambda text: text.replace("parallel=ddp", "parallel=fsdp"))
    assert (read["status"], "parallel" in read["reason"]) == ("refused", True)


@pytest.mark.parametrize(("name", "parameters"), [("full", 4_196_608), ("lora", 155_648)])
def test_the_log_shows_how_many_parameters_are_trained(name, parameters):
    """Rank 8 times the widths of the seven linear layers of four blocks: 4 * 8 * 4864."""
    text = (LOGS / f"{name}-NODE2.log").read_text()
    assert f" trained_parameters={parameters} " in text


def test_fsdp_is_refused_on_cpus_where_trainer_ignores_it():
    _, skipped = case(settings={"parallel": "fsdp"})
    assert skipped["reason"].startswith("hf_llama_parallel=fsdp is for GPUs")


def test_fsdp_runs_on_gpus():
    _, made = case("gpu", settings={"parallel": "fsdp"})
    assert "reason" not in made


def operations(model, rank, length):
    settings = {**DEFAULTS, "lora_rank": rank, "seq_length": length}
    return flops.of_case(DECLARED.flops, {"model": model, "settings": settings})


@pytest.mark.parametrize(("length", "operations_per_token"), [(2048, 48.25e9), (8192, 57.91e9)])
def test_a_token_of_8b_costs_what_is_published(length, operations_per_token):
    assert operations("8B", 0, length) / length == pytest.approx(operations_per_token, rel=1e-3)


def test_adapters_cost_what_torch_counts():
    """FlopCounterMode of torch 2.13 counts 2,164,785,152 in a tiny model with adapters of rank 8."""
    assert operations("tiny", 8, 128) == pytest.approx(2_164_785_152, rel=1e-3)
