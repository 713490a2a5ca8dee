# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""torch_wide_deep: what its logs mean, what its model costs, how its rows are split. Needs no torch."""

import sys
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from ansible.module_utils.scalebook import flops
from ansible.module_utils.scalebook.throughput import measure
from cases import cluster, plan
from node_logs import kept_run
from role_files import declaration, load

LOGS = Path(__file__).resolve().parents[2] / "data/torch_wide_deep"
WORKLOAD = declaration("torch_wide_deep")
SIBLING = declaration("oneflow_wide_deep")


def case(nodes=1, gpus=1, **other):
    given = {"nodes": nodes, "gpus": gpus, "bsz": 64, "dtype": "fp32", **other}
    made = plan(given, WORKLOAD, cluster(4, slots=2), "torch_wide_deep", "cpu")["cases"][0]
    return {**made, "settings": {"rows": 0}}


def record(tmp_path, made, change=("", "")):
    """Return the record of a genuine run, with a text of its last node's log changed."""
    return kept_run(tmp_path, LOGS, made, WORKLOAD, change, named="{nodes}n{gpus}g-")


# Genuine logs


@pytest.mark.parametrize(("nodes", "gpus", "rate"), [(1, 1, 47537.70), (1, 2, 10642.27), (2, 1, 9281.78)])
def test_a_genuine_log_gives_the_rate_that_the_trainer_printed(tmp_path, nodes, gpus, rate):
    read = record(tmp_path, case(nodes, gpus))
    assert (read["status"], read["reason"], read["unit"]) == ("ok", None, "samples")
    assert measure(read)["rate"] == pytest.approx(rate, abs=0.01)
    assert float(read["self_reported"]["samples_per_second"]) == pytest.approx(rate, rel=1e-5)


def test_the_latency_of_a_step_stands_beside_the_rate(tmp_path):
    shown = record(tmp_path, case(1, 2))["self_reported"]
    latency = [shown[f"step_ms_{name}"] for name in ("median", "p95", "p99")]
    assert latency == ["10.753", "23.054", "32.024"]


def test_the_loss_falls(tmp_path):
    text = (LOGS / "2n1g-NODE1.log").read_text()
    losses = [float(line.split(" loss=")[1].split()[0]) for line in text.splitlines() if " step=" in line]
    assert (losses[0], losses[-1]) == (0.7204, 0.4364)


def test_nodes_agree_on_the_sum_of_the_tables_that_they_split(tmp_path):
    nodes = record(tmp_path, case(2))["nodes"]
    assert [node["shown"]["tables_sum"] for node in nodes] == [["7.014859661e+00"]] * 2


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ((" compile=false ", " compile=true "), "compile"),
        (("model=tiny ", "model=base "), "model"),
        ((" rows=0", " rows=1000"), "rows"),
        ((" table_devices=2 ", " table_devices=1 "), "table_devices"),
        ((" table_rows=3200 ", " table_rows=1600 "), "table_rows"),
        ((" tables_sum=7.0", " tables_sum=7.1"), "tables_sum"),
        (("weights=agree end=true", ""), "weights"),
        ((" global_batch=128", " global_batch=64"), "global_batch"),
    ],
)
def test_a_log_that_does_not_show_its_case_is_refused(tmp_path, change, named):
    read = record(tmp_path, case(2), change)
    assert read["status"] == "refused"
    assert named in read["reason"]


# The declaration


def test_it_is_measured_as_the_wide_and_deep_of_oneflow_is():
    for name in ("family", "task", "unit", "size", "latency", "bsz", "models", "model_names", "window"):
        assert getattr(WORKLOAD, name) == getattr(SIBLING, name)


def test_the_models_are_those_of_oneflow():
    flags = load("oneflow_wide_deep", "wide_deep_flags").MODELS
    assert {model: dict(size) for model, size in WORKLOAD.flops.models.items()} == flags


@pytest.mark.parametrize(("model", "weights"), [("tiny", 429 * 64 + 64**2 + 64), ("base", 6_731_776)])
def test_the_operations_of_a_sample_are_those_of_the_weights_of_the_layers(model, weights):
    """Two for each weight forward, four backward; 429 = 26 categories of 16, and 13 numbers."""
    assert flops.of_case(WORKLOAD.flops, {"model": model, "settings": {}}) == 6 * weights


# The split of a table


@pytest.fixture
def tables(monkeypatch):
    for name in ("torch", "torch.distributed", "samples"):
        monkeypatch.setitem(sys.modules, name, MagicMock())
    return load("torch_wide_deep", "tables")


@pytest.mark.parametrize(("rows", "world"), [(3200, 1), (3200, 2), (2322444, 7), (1000, 1000)])
def test_every_row_is_on_one_device_and_no_device_has_more_than_one_row_too_many(tables, rows, world):
    shares = [tables.share(rows, rank, world) for rank in range(world)]
    assert shares == [len(range(rank, rows, world)) for rank in range(world)]


def test_a_row_takes_its_vector_and_two_means(tables):
    """DLPerf's largest table, 819,200,000 rows of 16 numbers, and one number each for the wide part."""
    mebibytes = tables.mebibytes(819_200_000, 16) + tables.mebibytes(819_200_000, 1)
    assert mebibytes == pytest.approx(819_200_000 * 204 / 2**20, abs=2)
