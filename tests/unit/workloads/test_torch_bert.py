# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""torch_bert: what its logs mean, on genuine ones, and what its models cost. Needs no torch."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from ansible.module_utils.scalebook.throughput import measure
from in_english import log_record
from model_operations import flops_of_bert
from role_files import ROLES, declaration, load

ROOT = Path(__file__).resolve().parents[3]
ROLE = ROOT / "roles/torch_bert"
MAKE_DATA = ROLES / "pytorch/files/make_bert_data.py"
LOGS = ROOT / "tests/data/torch_bert"
WORKLOAD = declaration("torch_bert")


sizes = load("workload", "bert_sizes")


def case(**other):
    values = {
        "workload": "torch_bert",
        "model": "base",
        "dtype": "bf16",
        "xla": True,
        "bsz": 512,
        "nodes": 1,
        "gpus": 1,
        "devices": 1,
        "global_batch": 512,
        "accumulation": 1,
        "device": "gpu",
        "warmup": 20,
        "window": 40,
        "label": "1n1g",
        "name": "case",
    }
    return {**values, **other}


def record(name, **other):
    return log_record(LOGS / name, case(**other), 1, WORKLOAD, name)


def test_the_first_node_alone_prints_steps():
    assert WORKLOAD.log.first_node


def test_a_genuine_log_gives_the_rate_that_the_trainer_printed():
    read = record("h200_b512_bf16.log")
    assert (read["status"], read["reason"]) == ("ok", None)
    assert measure(read)["rate"] == pytest.approx(6173.15, abs=0.01)


def test_an_eager_log_gives_the_rate_that_the_trainer_printed():
    read = record("h100_b256_bf16_eager.log", xla=False, bsz=256, global_batch=256)
    assert measure(read)["rate"] == pytest.approx(3616.19, abs=0.01)


def test_a_log_of_two_gpus_between_lines_of_nccl_gives_the_rate_of_both():
    read = record("h200x2_b256_bf16.log", bsz=256, gpus=2, devices=2, global_batch=512)
    assert measure(read)["rate"] == pytest.approx(11116.39, abs=0.01)


@pytest.mark.parametrize(
    "wrong", [{"devices": 2}, {"nodes": 2}, {"dtype": "fp32"}, {"xla": False}, {"global_batch": 1024}]
)
def test_a_log_that_contradicts_its_case_is_refused(wrong):
    read = record("h200_b512_bf16.log", **wrong)
    assert read["status"] == "refused"
    assert next(iter(wrong)) in read["reason"].replace("compile", "xla")


def test_a_log_without_all_steps_is_incomplete():
    assert record("h200_b512_bf16.log", window=100)["status"] != "ok"


def test_base_has_the_parameters_of_bert_with_both_heads():
    assert sizes.parameters(sizes.MODELS["base"]) == 110106428


def test_large_has_the_parameters_of_bert_with_both_heads():
    assert sizes.parameters(sizes.MODELS["large"]) == 336226108


def test_a_sample_of_base_costs_69_93_gflop():
    assert flops_of_bert(sizes.MODELS["base"], 128, 20) / 1e9 == pytest.approx(69.93, abs=0.005)


def test_the_vocabulary_is_padded_to_aligned_rows():
    assert sizes.padded(30522) == 30528


def test_the_run_script_is_sh():
    text = (ROLE / "templates/run.sh.j2").read_text()
    assert text.startswith("#!/bin/sh\n") and "2>&1" in text


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_every_locked_package_has_a_hash(device):
    text = (ROLES / f"pytorch/files/pytorch-2.13.0-{device}.txt").read_text().replace("\\\n", " ")
    pins = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert any(pin.startswith("torch==2.13.0 ") for pin in pins)
    assert [pin for pin in pins if "--hash=sha256:" not in pin] == []


def test_a_job_that_is_checked_makes_nothing(tmp_path):
    pytest.importorskip("numpy")
    job = {"data": str(tmp_path / "data"), "seed": 1, "samples": 64, "seq_length": 32, "predictions": 4}
    job.update(vocabularies=[1024], own="", check=True)
    done = subprocess.run(
        [sys.executable, MAKE_DATA, json.dumps(job)],
        capture_output=True,
        text=True,
    )
    assert json.loads(done.stdout) == {"changed": True, "manifest": {}}
    assert not (tmp_path / "data").exists()


def test_a_directory_that_scalebook_has_not_begun_is_left_alone(tmp_path):
    pytest.importorskip("numpy")
    (tmp_path / "1024").mkdir()
    job = {"data": str(tmp_path), "seed": 1, "samples": 64, "seq_length": 32, "predictions": 4}
    job.update(vocabularies=[1024], own="", check=False)
    done = subprocess.run(
        [sys.executable, MAKE_DATA, json.dumps(job)],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert f"{tmp_path}/1024 would be removed" in done.stderr


@pytest.mark.parametrize(("shown", "status"), [("true", "ok"), ("false", "refused")])
def test_a_log_with_other_checkpointing_than_its_case_is_refused(tmp_path, shown, status):
    genuine = (LOGS / "h200_b512_bf16.log").read_text()
    (tmp_path / "log").write_text(genuine.replace(" optimizer=", f" checkpointing={shown} optimizer="))
    made = case(settings={"checkpointing": True})
    read = log_record(tmp_path / "log", made, 1, WORKLOAD, "log")
    assert read["status"] == status


@pytest.mark.parametrize("role", ["torch_bert", "hf_mlm"])
def test_checkpointing_is_another_case_and_off_by_default(role):
    declared = declaration(role)
    assert declared.setting_types[f"{role}_checkpointing"] == "bool"
    assert f"{role}_checkpointing: false" in (ROOT / f"roles/{role}/defaults/main.yml").read_text()


@pytest.mark.parametrize("role", ["torch_bert", "hf_mlm"])
def test_checkpointing_does_not_count_as_work_of_the_model(role):
    assert "checkpointing" not in declaration(role).flops.sample
