"""DLPerf's published table: it agrees with itself, and nothing unlike is called comparable."""

from collections import defaultdict
from pathlib import Path

import pytest
from ansible.module_utils.scalebook.report import published

DATA = Path(__file__).resolve().parents[3] / "data" / "dlperf-published-results.csv"
TABLE = published.read(DATA.read_text(encoding="utf-8").splitlines())
NAMES = {"framework": "TensorFlow 2.3.0", "models": {"base": "bert-base", "bert": "bert-base"}}
DEEPSPEED = {"framework": "DeepSpeed 1afca8f (torch 1.6.0)", "models": {"base": "bert-base"}}


def group(**other):
    base = {
        "id": "g1",
        "title": "ours",
        "workload": "tf2_bert",
        "model": "base",
        "device": "gpu",
        "dtype": "fp32",
        "xla": False,
        "bsz": 64,
        "accumulation": 1,
    }
    return {**base, **other}


def row(nodes, gpus, median=100.0, speedup=1.0):
    devices = nodes * gpus
    return {
        "label": f"{nodes}n{gpus}g",
        "nodes": nodes,
        "gpus": gpus,
        "devices": devices,
        "median": median,
        "speedup": speedup,
        "efficiency": speedup / devices,
    }


def test_every_published_speedup_follows_from_its_samples_but_three():
    baseline = {published.table_key(r): r["rate"] for r in TABLE if r["devices"] == 1}
    odd = [
        (r["framework"], r["model"], r["dtype"], r["bsz"], r["speedup"])
        for r in TABLE
        if abs(r["rate"] / baseline[published.table_key(r)] - r["speedup"]) > 0.011
    ]
    assert len(TABLE) == 509
    assert odd == [
        ("MXNet 1.6.0", "bert-base", "fp16", 128, 27.33),
        ("PaddlePaddle 1.8.3.post107", "resnet50-v1.5", "fp16", 224, 10.2),
        ("OneFlow 2020-08-22", "bert-base", "fp32", 96, 29.75),
    ]


def test_every_published_row_names_its_source_and_no_table_has_two_baselines():
    assert all(r["source"].startswith("DLPerf@") for r in TABLE)
    tables = defaultdict(list)
    for r in TABLE:
        tables[published.table_key(r)].append(r["devices"])
    assert all(devices.count(1) == 1 for devices in tables.values())


def test_a_matching_group_stands_beside_the_published_figures():
    (entry,) = published.compare(group(), [row(4, 8, 2300.0, 20.0)], TABLE, NAMES)
    pair = entry["rows"][0]
    assert entry["comparable"] is True
    assert "V100" in entry["why"]
    assert (pair["published_rate"], pair["published_speedup"]) == (2244.38, 19.86)
    assert pair["published_efficiency"] == pytest.approx(0.620625)
    assert pair["source"] == "DLPerf@master:TensorFlow/bert/README.md:L339"


def test_xla_is_another_table():
    (entry,) = published.compare(group(xla=True), [row(4, 8)], TABLE, NAMES)
    assert entry["rows"][0]["published_rate"] == 2544.74


def test_a_tiny_model_on_a_cpu_is_the_shape_of_the_curve_only():
    ours = group(model="tiny", device="cpu", bsz=16)
    (entry,) = published.compare(ours, [row(1, 1), row(2, 1, 150.0, 1.5)], TABLE, NAMES)
    assert entry["comparable"] is False
    assert entry["why"] == (
        "not comparable, only the shape of the curve is: model tiny is not one DLPerf measured; "
        "measured on CPUs, published on GPUs; batch 16 here, the nearest published is 32"
    )
    assert [pair["published_rate"] for pair in entry["rows"]] == [None, None]
    assert [pair["published_speedup"] for pair in entry["rows"]] == [1.0, 1.71]
    assert entry["rows"][1]["published_label"] == "1n2g"


def test_the_right_model_on_a_cpu_is_not_comparable_either():
    (entry,) = published.compare(group(device="cpu"), [row(1, 1)], TABLE, NAMES)
    assert entry["comparable"] is False


def test_a_case_nobody_published_has_an_empty_side():
    (entry,) = published.compare(group(), [row(3, 8)], TABLE, NAMES)
    assert entry["rows"][0]["published_speedup"] is None


def test_deepspeeds_rows_carry_their_warning():
    (entry,) = published.compare(group(dtype="fp16", bsz=160), [row(4, 8)], TABLE, DEEPSPEED)
    assert entry["rows"][0]["published_speedup"] == 28.64
    assert "gradient accumulation 1024/gpus" in entry["warning"]
    assert "computing, not scaling" in entry["warning"]
    assert entry["comparable"] is False


@pytest.mark.parametrize("names", [None, {}, {"workload": "x", "models": {}}])
def test_a_workload_without_a_published_name_is_said_so(names):
    (entry,) = published.compare(group(), [row(1, 1)], TABLE, names)
    assert entry["rows"] == []
    assert entry["why"] == "DLPerf publishes nothing for tf2_bert"


def test_a_precision_nobody_published_is_said_so():
    (entry,) = published.compare(group(dtype="bf16"), [row(1, 1)], TABLE, NAMES)
    assert entry["why"] == "DLPerf publishes no bf16 table for TensorFlow 2.3.0 bert-base"


def test_a_table_of_another_shape_is_refused():
    with pytest.raises(published.PublishedError, match="no column"):
        published.read(["a,b", "1,2"])


def test_a_broken_line_is_named():
    lines = DATA.read_text(encoding="utf-8").splitlines()[:2]
    with pytest.raises(published.PublishedError, match="line 3"):
        published.read([*lines, lines[1].replace("103.58", "fast")])
