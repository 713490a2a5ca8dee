"""DLPerf's published table: it agrees with itself, and nothing unlike is called comparable."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
from ansible.module_utils.scalebook import published, workloads
from ansible.module_utils.scalebook.pages.catalogue import sentence
from ansible.module_utils.scalebook.workload import Dlperf

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "data" / "dlperf-published-results.csv"
ROLES = ROOT / "roles"
TABLE = published.read(DATA.read_text(encoding="utf-8").splitlines())
FACES = published.read((ROOT / "data/dlperf-insightface.csv").read_text(encoding="utf-8").splitlines())
NAMES = Dlperf(("TensorFlow 2.3.0",), {"base": "bert-base", "bert": "bert-base"})
DEEPSPEED = Dlperf(("DeepSpeed 1afca8f (torch 1.6.0)",), {"base": "bert-base"})


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


@pytest.mark.parametrize(("size", "comparable"), [(128, True), (None, True), (512, False)])
def test_samples_of_another_size_are_not_comparable(size, comparable):
    (entry,) = published.compare(group(), [row(4, 8)], TABLE, NAMES, size)
    assert entry["comparable"] is comparable
    assert ("samples of size 512 here, of 128 published" in sentence(entry["why"])) is not comparable


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
    assert "V100" in sentence(entry["why"])
    assert (pair["published_rate"], pair["published_speedup"]) == (2244.38, 19.86)
    assert pair["published_efficiency"] == pytest.approx(0.620625)
    assert pair["source"] == "DLPerf@master:TensorFlow/bert/README.md:L339"


@pytest.mark.parametrize(("workload", "rate"), [("gluoncv_resnet50", 9579.74), ("mxnet_resnet50", 11331.93)])
def test_a_case_stands_beside_the_figures_of_its_trainer(workload, rate):
    """Two trainers for one framework: DLPerf published both."""
    names = workloads.load_workloads([str(ROLES)])[workload].dlperf
    ours = group(workload=workload, model="resnet50", bsz=128)
    (entry,) = published.compare(ours, [row(4, 8)], TABLE, names)
    assert (entry["comparable"], entry["rows"][0]["published_rate"]) == (True, rate)


@pytest.mark.parametrize(
    ("model", "bsz", "samples"), [("bert-base", 64, True), ("resnet50-v1.5", 128, False)]
)
def test_only_models_of_text_were_published_for_a_length_of_sequences(model, bsz, samples):
    names = Dlperf(("TensorFlow 2.3.0",), {"base": model})
    (entry,) = published.compare(group(bsz=bsz), [row(1, 1)], TABLE, names)
    assert entry["comparable"]
    assert sentence(entry["why"]).endswith("CUDA 10.2, sequences of 128" if samples else "CUDA 10.2")


def test_xla_is_another_table():
    (entry,) = published.compare(group(xla=True), [row(4, 8)], TABLE, NAMES)
    assert entry["rows"][0]["published_rate"] == 2544.74


def test_a_tiny_model_on_a_cpu_is_the_shape_of_the_curve_only():
    ours = group(model="tiny", device="cpu", bsz=16)
    (entry,) = published.compare(ours, [row(1, 1), row(2, 1, 150.0, 1.5)], TABLE, NAMES)
    assert entry["comparable"] is False
    assert sentence(entry["why"]) == (
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
    assert "gradient accumulation 1024/gpus" in sentence(entry["warning"])
    assert "computing, not scaling" in sentence(entry["warning"])
    assert entry["comparable"] is False


@pytest.mark.parametrize("names", [None, Dlperf(), Dlperf(("x",), {})])
def test_a_workload_without_a_published_name_is_said_so(names):
    (entry,) = published.compare(group(), [row(1, 1)], TABLE, names)
    assert entry["rows"] == []
    assert sentence(entry["why"]) == "DLPerf's tables have nothing for tf2_bert"


def test_a_precision_nobody_published_is_said_so():
    (entry,) = published.compare(group(dtype="bf16"), [row(1, 1)], TABLE, NAMES)
    assert sentence(entry["why"]) == "DLPerf publishes no bf16 table for TensorFlow 2.3.0 bert-base"


@pytest.mark.parametrize(("compiler", "said"), [("torch.compile", "torch.compile"), (None, "XLA")])
def test_what_compiled_the_model_is_called_by_its_name(compiler, said):
    (entry,) = published.compare(group(dtype="bf16", xla=True, compiler=compiler), [], TABLE, NAMES)
    assert (
        sentence(entry["why"]) == f"DLPerf publishes no bf16 with {said} table for TensorFlow 2.3.0 bert-base"
    )


def test_a_table_of_another_shape_is_refused():
    with pytest.raises(published.PublishedError, match="no column"):
        published.read(["a,b", "1,2"])


def test_a_broken_line_is_named():
    lines = DATA.read_text(encoding="utf-8").splitlines()[:2]
    with pytest.raises(published.PublishedError, match="line 3"):
        published.read([*lines, lines[1].replace("103.58", "fast")])


# -- every published row -------------------------------------------------------------------------------------


def reports_of(declared):
    """Return (entries, only) of the comparisons of all workloads, one case of each published kind."""
    kinds = {(row["dtype"], row["xla"], row["bsz"]) for row in TABLE}
    families = defaultdict(list)
    entries = []
    for name, declaration in declared.items():
        names = declaration.dlperf or Dlperf()
        families[declaration.family] += names.all_models()
        for model, (dtype, xla, bsz) in ((m, kind) for m in names.models for kind in kinds):
            ours = group(workload=name, model=model, dtype=dtype, xla=xla, bsz=bsz)
            places = [row(nodes, gpus) for nodes, gpus in ((1, 1), (1, 2), (1, 4), (1, 8), (2, 8), (4, 8))]
            entries += published.compare(ours, places, TABLE, names)
    return entries, published.only_published(families, entries, TABLE)


def test_every_published_row_stands_beside_a_workload_or_is_published_only():
    entries, only = reports_of(workloads.load_workloads([str(ROLES)]))
    beside = {pair["source"] for entry in entries for pair in entry["rows"] if pair["source"]}
    alone = [each["source"] for made in only for each in made["rows"]]
    assert {each["source"] for each in TABLE} == beside | set(alone)
    assert len(alone) == len(set(alone)) == 509 - len(beside)
    # BERT: 66 of TensorFlow, 84 of OneFlow, 38 of PaddlePaddle, 26 of PyTorch, 25 of DeepSpeed,
    # 25 of TensorFlow 1. ResNet-50: 22 of TensorFlow, 24 of TensorFlow 1, 27 of OneFlow, 21 of PaddlePaddle,
    # 33 of PyTorch, 28 of MXNet.
    assert len(beside) == 419


def test_no_declared_counterpart_is_missing_from_the_published_table():
    known = {(each["framework"], each["model"]) for each in [*TABLE, *FACES]}
    for declaration in workloads.load_workloads([str(ROLES)]).values():
        names = declaration.dlperf or Dlperf()
        for framework in names.frameworks:
            assert {(framework, model) for model in names.models.values()} <= known
        assert set(names.variants) <= {each["variant"] for each in FACES}


def test_rows_that_stand_beside_ours_are_not_shown_again():
    entries = published.compare(group(), [row(1, 1), row(4, 8)], TABLE, NAMES)
    only = published.only_published({"bert": ["bert-base"]}, entries, TABLE)
    (rest,) = [
        made
        for made in only
        if (made["framework"], made["dtype"], made["xla"], made["bsz"])
        == ("TensorFlow 2.3.0", "fp32", False, 64)
    ]
    assert [each["label"] for each in rest["rows"]] == ["1n2g", "1n4g", "1n8g", "2n8g"]
    assert sum(len(made["rows"]) for made in only) + 2 == sum(r["model"] == "bert-base" for r in TABLE)


def test_of_a_line_with_two_frameworks_each_stands_beside_ours_or_is_shown():
    """The tables of batch 64 and of the largest batch, which are 96 and 115, have both in each line."""
    names = workloads.load_workloads([str(ROLES)])["torch_insightface"].dlperf
    settings = {"classes": 85742, "sample_rate": 1.0}
    ours = group(workload="torch_insightface", model="r100", bsz=85, settings=settings)
    entries = published.compare(ours, [row(1, 1), row(1, 4), row(1, 8)], FACES, names)
    assert [(entry["framework"][:5], entry["bsz"]) for entry in entries] == [("OneFl", 64), ("MXNet", 96)]
    only = published.only_published({"insightface": ["r100", "y1"]}, entries, FACES)
    assert sum(len(made["rows"]) for made in only) == 92 - 6


def test_a_workload_that_trains_something_else_is_the_shape_of_the_curve_only():
    names = replace(NAMES, differs="a sentence classifier here, pretraining there")
    (entry,) = published.compare(group(), [row(1, 1)], TABLE, names)
    assert entry["comparable"] is False
    assert sentence(entry["why"]).endswith("a sentence classifier here, pretraining there")


def test_a_workload_with_several_counterparts_stands_beside_each():
    names = Dlperf(("OneFlow 0.2.0", "OneFlow 0.3.1"), {"resnet50": "resnet50-v1.5"})
    entries = published.compare(group(model="resnet50", dtype="fp16", bsz=256), [row(1, 1)], TABLE, names)
    assert [entry["framework"] for entry in entries] == ["OneFlow 0.2.0", "OneFlow 0.3.1"]
