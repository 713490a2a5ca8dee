# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""hf_mlm: what its logs mean, on genuine ones, and its rows of the published table. Needs no transformers."""

import shutil
from pathlib import Path

import pytest
from ansible.module_utils.scalebook.judge import self_reported, weak_scaling
from ansible.module_utils.scalebook.read import self_reported as closing_line
from ansible.module_utils.scalebook.throughput import measure
from cases import cluster, plan
from declared import with_epoch
from in_english import run_record
from role_files import declaration, load

ROOT = Path(__file__).resolve().parents[3]
ROLE = ROOT / "roles/hf_mlm"
LOGS = ROOT / "tests/data/hf_mlm"
WORKLOAD = with_epoch(declaration("hf_mlm"), 2, 2048)

row = load("transformers", "row")


def case(nodes=1, **other):
    given = {"nodes": nodes, "gpus": 1, "dtype": "fp32", **other}
    made = plan(given, WORKLOAD, cluster(4), "hf_mlm", "cpu")
    return (made["cases"] or made["skipped"])[0]


def record(tmp_path, nodes, made=None):
    names = [f"NODE{i}" for i in range(1, nodes + 1)]
    for name in names:
        shutil.copy(LOGS / f"{nodes}n1g-{name}.log", tmp_path / f"{name}.log")
    return run_record(tmp_path, made or case(nodes), 1, WORKLOAD, names, {"rc": 0})


# The window


@pytest.mark.parametrize(("nodes", "gpus", "steps"), [(1, 1, 32), (2, 1, 16), (1, 8, 4), (4, 8, 1)])
def test_the_window_is_the_last_epoch_whatever_its_steps_are(nodes, gpus, steps):
    made = case(nodes, gpus=gpus)
    assert (made["warmup"], made["window"], made["accumulation"]) == (steps, steps, 4)


def test_an_epoch_that_is_no_whole_number_of_steps_is_not_measured():
    assert case(bsz=24)["reason"] == "an epoch of 2048 samples is not a whole number of steps of 96"


def test_cases_of_other_windows_are_one_table():
    [group] = weak_scaling.tabulate([case(1), case(2)], [])["groups"]
    assert (group["epoch_samples"], group["window"], len(group["rows"])) == (2048, None, 2)


# Genuine logs


@pytest.mark.parametrize(("nodes", "rate"), [(1, 75.89), (2, 157.57)])
def test_a_genuine_log_gives_the_rate_of_the_last_epoch(tmp_path, nodes, rate):
    read = record(tmp_path, nodes)
    assert (read["status"], read["reason"]) == ("ok", None)
    assert measure(read)["rate"] == pytest.approx(rate, abs=0.01)


def test_the_second_reading_agrees(tmp_path):
    assert measure(record(tmp_path, 1))["differs"] < 0.001


def test_the_figures_of_trainer_are_kept(tmp_path):
    found = record(tmp_path, 2)["self_reported"]
    assert (found["row"], found["train_runtime"], found["global_step"]) == ("CPU_2x1cpu_16", "32.8431", "32")


@pytest.mark.parametrize(
    "wrong", [{"nodes": 2}, {"gpus": 2}, {"dtype": "bf16"}, {"bsz": 32}, {"accumulation": 2}]
)
def test_a_log_of_another_run_is_refused(tmp_path, wrong):
    """A launcher that starts one process where two were asked for leaves such a log."""
    shutil.copy(LOGS / "1n1g-NODE1.log", tmp_path / "NODE2.log")
    assert record(tmp_path, 1, case(**wrong))["status"] == "refused"


def test_a_node_whose_weights_are_not_the_others_is_refused(tmp_path):
    text = (LOGS / "1n1g-NODE1.log").read_text()
    (tmp_path / "NODE1.log").write_text(text.replace("HF_MLM weights=agree end=true", ""))
    read = run_record(tmp_path, case(), 1, WORKLOAD, ["NODE1"], {"rc": 0})
    assert (read["status"], "does not show weights" in read["reason"]) == ("refused", True)


# The published table's rows


@pytest.mark.parametrize(
    ("device", "nodes", "name"),
    [
        ("Tesla V100-SXM2-32GB", 1, "V100_4gpu_8"),
        ("NVIDIA A100-PCIE-40GB", 1, "A100_4gpu_8"),
        ("NVIDIA H100 80GB HBM3", 2, "H100_2x4gpu_8"),
        ("NVIDIA GeForce RTX 3090 Ti", 1, "3090_4gpu_8"),
        (None, 1, "CPU_4cpu_8"),
    ],
)
def test_a_row_is_named_as_the_published_table_names_it(device, nodes, name):
    assert row.name(device, nodes, 4, 8) == name


def test_a_row_has_the_batches_of_the_published_one():
    """V100_4gpu_8 of the published table."""
    trained = {
        "train_steps_per_second": 0.157,
        "train_samples_per_second": 20.108,
        "train_runtime": 203.6953,
    }
    evaluated = {"eval_steps_per_second": 1.648, "eval_samples_per_second": 52.727, "eval_runtime": 19.4207}
    made = row.figures("fp32", 8, 4, 4, 32, trained, evaluated)
    assert list(made.values())[:4] == ["FALSE", 32, 128, 32]
    assert (made["train_runtime"], made["eval_runtime"]) == ("203.6953", "19.4207")


# Figures of a framework in general


def test_a_log_without_figures_has_none(tmp_path):
    (tmp_path / "log").write_text("nothing\n")
    assert closing_line.read(tmp_path / "log", "HF_MLM row=") == {}


def test_what_is_no_word_of_a_figure_is_left_out(tmp_path):
    (tmp_path / "log").write_bytes(b"X row=a b=\x1b[1m c=<script> d e=1\n")
    assert closing_line.read(tmp_path / "log", "X row=") == {"row": "a", "c": "<script>", "e": "1"}


def test_of_a_figure_that_differs_there_is_the_median():
    runs = [
        {"self_reported": {"row": "V100_1gpu_8", "train_runtime": text}} for text in ("3.10", "1.00", "2.50")
    ]
    row = {"case": "hf_mlm-1n1g", "workload": "hf_mlm", "label": "1n1g", "runs": runs}
    [table] = self_reported.tabulate([row])
    [only] = table["rows"]
    assert only["values"] == {"row": "V100_1gpu_8", "train_runtime": "2.50"}
