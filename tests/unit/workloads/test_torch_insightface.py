# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""torch_insightface: its logs, what its model costs, what is published beside it. Needs no torch."""

import sys
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from ansible.module_utils.scalebook import flops, published
from ansible.module_utils.scalebook.pages.catalogue import sentence
from ansible.module_utils.scalebook.throughput import measure
from cases import cluster, plan
from node_logs import kept_run
from role_files import declaration, load

ROOT = Path(__file__).resolve().parents[3]
WORKLOAD = declaration("torch_insightface")
TABLE = published.read((ROOT / "data/dlperf-insightface.csv").read_text().splitlines())
USUAL = {"image_size": 112, "classes": 85742, "sample_rate": 1.0}
LOGS = ROOT / "tests/data/torch_insightface"


def case(nodes=1, gpus=1):
    given = {"nodes": nodes, "gpus": gpus, "bsz": 4, "dtype": "fp32"}
    made = plan(given, WORKLOAD, cluster(4, slots=2), "torch_insightface", "cpu")["cases"][0]
    return {**made, "settings": {"image_size": 32, "classes": 4000, "sample_rate": 0.1, "margin": "arcface"}}


def record(tmp_path, made, change=("", "")):
    """Return the record of a genuine run, with a text of its last node's log changed."""
    return kept_run(tmp_path, LOGS, made, WORKLOAD, change, named="{nodes}n{gpus}g-")


# Genuine logs


@pytest.mark.parametrize(("nodes", "gpus", "rate"), [(1, 1, 52.32), (1, 2, 69.27), (2, 1, 144.60)])
def test_a_genuine_log_gives_the_rate_that_the_trainer_printed(tmp_path, nodes, gpus, rate):
    read = record(tmp_path, case(nodes, gpus))
    assert (read["status"], read["reason"], read["unit"]) == ("ok", None, "images")
    assert measure(read)["rate"] == pytest.approx(rate, abs=0.01)
    assert float(read["self_reported"]["images_per_second"]) == pytest.approx(rate, rel=2e-4)


def test_the_loss_falls_from_that_of_chance(tmp_path):
    text = (LOGS / "2n1g-NODE1.log").read_text()
    losses = [float(line.split(" loss=")[1].split()[0]) for line in text.splitlines() if " step=" in line]
    assert losses[0] > 40 and losses[-1] < 2


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ((" compile=false ", " compile=true "), "compile"),
        (("model=tiny ", "model=r50 "), "model"),
        ((" image_size=32 ", " image_size=112 "), "image_size"),
        ((" classes=4000 ", " classes=85742 "), "classes"),
        ((" sample_rate=0.1 ", " sample_rate=1.0 "), "sample_rate"),
        ((" margin=arcface", " margin=cosface"), "margin"),
        ((" class_devices=2 ", " class_devices=1 "), "class_devices"),
        ((" split_classes=4000 ", " split_classes=2000 "), "split_classes"),
        ((" centres_sum=", " centres_sum=1"), "centres_sum"),
        (("weights=agree end=true", ""), "weights"),
        ((" global_batch=8", " global_batch=4"), "global_batch"),
    ],
)
def test_a_log_that_does_not_show_its_case_is_refused(tmp_path, change, named):
    read = record(tmp_path, case(2), change)
    assert read["status"] == "refused"
    assert named in read["reason"]


# What it costs


@pytest.mark.parametrize(
    ("model", "products"), [("tiny", 108_982_272), ("r50", 6_309_330_944), ("r100", 12_089_606_144)]
)
def test_the_products_of_the_backbone_are_those_that_torch_counts(model, products):
    """FlopCounterMode of torch 2.13. OpenVINO's Open Model Zoo states 24.2115 GFLOPs of R100."""
    value = flops.of_case(WORKLOAD.flops, {"model": model, "settings": {**USUAL, "classes": 0}})
    assert value == 6 * products


def test_only_the_centres_of_a_step_are_counted():
    rates = [
        flops.of_case(WORKLOAD.flops, {"model": "r50", "settings": {**USUAL, "sample_rate": rate}})
        for rate in (1.0, 0.1)
    ]
    assert rates[0] - rates[1] == pytest.approx(6 * 512 * 85742 * 0.9)


# What is published beside it


def beside(**settings):
    made = plan(
        {"nodes": 4, "gpus": 8, "bsz": 64, "dtype": "fp32", "model": "r100"},
        WORKLOAD,
        cluster(4, slots=8),
        "torch_insightface",
        "gpu",
    )["cases"][0]
    group = {**made, "id": "g", "title": "ours", "settings": {**USUAL, **settings}, "device": "gpu"}
    row = {"label": "4n8g", "nodes": 4, "gpus": 8, "devices": 32, "median": 70000.0, "speedup": 31.0}
    names, size = WORKLOAD.dlperf, WORKLOAD.sample_size(group["settings"])
    return published.compare(group, [{**row, "efficiency": 0.97}], TABLE, names, size)


def test_a_case_stands_beside_the_tables_of_its_classes_and_sample_rate():
    entries = beside(sample_rate=0.1)
    assert [(entry["framework"], entry["variant"], entry["comparable"]) for entry in entries] == [
        (framework, "partial FC, sample ratio 0.1; Face Emore", True)
        for framework in WORKLOAD.dlperf.frameworks
    ]
    assert [entry["rows"][0]["published_rate"] for entry in entries] == [6931.6, 5008.72]


def test_whole_centres_stand_beside_model_parallelism():
    assert {entry["variant"] for entry in beside()} == {"model parallel; Face Emore"}


def test_other_pictures_are_not_comparable():
    assert not any(entry["comparable"] for entry in beside(image_size=224))


def test_settings_that_nobody_published_have_no_table():
    why = sentence(beside(classes=1000)[0]["why"])
    assert why == (
        "DLPerf publishes nothing for OneFlow 0.3.4 r100 that was measured with classes=1000 sample_rate=1.0"
    )


# The split of the classes


@pytest.fixture
def centres(monkeypatch):
    for name in ("torch", "torch.distributed", "torch.nn", "torch.nn.functional", "faces"):
        monkeypatch.setitem(sys.modules, name, MagicMock())
    return load("torch_insightface", "centres")


@pytest.mark.parametrize(("classes", "world"), [(85742, 1), (85742, 4), (360232, 7), (1000, 1000)])
def test_every_class_is_on_one_device_and_no_device_has_more_than_one_too_many(centres, classes, world):
    shares = [centres.share(classes, rank, world) for rank in range(world)]
    assert [first for first, _own in shares] == [
        sum(own for _, own in shares[:rank]) for rank in range(world)
    ]
    assert sum(own for _, own in shares) == classes
    assert {own for _, own in shares} <= {classes // world, classes // world + 1}


@pytest.mark.parametrize(
    ("own", "rate", "batch", "count"), [(10717, 1, 128, 10717), (10717, 0.1, 128, 1071), (500, 0.1, 128, 320)]
)
def test_a_step_compares_with_a_share_of_the_centres_and_more_than_the_pictures_need(
    centres, own, rate, batch, count
):
    assert centres.sampled(own, rate, batch) == count
