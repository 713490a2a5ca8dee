# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Workloads of a model family: one table with a column for each of them."""

import printed
import pytest
from ansible.module_utils.scalebook.judge import families, weak_scaling
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.pages.catalogue import sentence
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.report import charts, scaling, terminal
from ansible.module_utils.scalebook.report.view import View
from ansible.module_utils.scalebook.store.load import Campaign
from ansible.module_utils.scalebook.workload import Workload
from report_records import case
from row_runs import run

WORKLOADS = {
    "tf2_bert": Workload(family="bert", compiler="XLA"),
    "torch_bert": Workload(family="bert", compiler="torch.compile"),
    "torch_resnet50": Workload(family="resnet50"),
}
CASES = {
    (workload, gpus, xla): case(1, gpus, workload=workload, xla=xla)
    for workload in WORKLOADS
    for gpus in (1, 2)
    for xla in (False, True)
    if workload != "torch_resnet50" or not xla
}
RATES = {"tf2_bert": 100.0, "torch_bert": 200.0, "torch_resnet50": 900.0}


def made(cases=CASES):
    runs = [
        run(of, repeat, RATES[workload] * gpus * (0.9 if gpus > 1 else 1.0))
        for (workload, gpus, _), of in cases.items()
        for repeat in (1, 2, 3)
    ]
    return build_results(
        Campaign("night", cases={of["name"]: of for of in cases.values()}, runs=runs), WORKLOADS
    )


@pytest.fixture
def bert():
    return made()["families"][0]


def test_groups_of_a_family_stand_together():
    document = made()
    assert [family["family"] for family in document["families"]] == ["bert", "resnet50"]
    assert [group["family"] for group in document["groups"]] == ["bert"] * 4 + ["resnet50"]


def test_a_line_has_the_workloads_side_by_side(bert):
    assert [sentence(column["name"]) for column in bert["columns"]] == ["tf2_bert", "torch_bert"]
    line = bert["lines"][1]
    assert (line["label"], sentence(line["title"])) == ("1n2g", "fp32 not compiled b64")
    assert [(cell["median"], cell["speedup"], cell["efficiency"]) for cell in line["cells"]] == [
        (180.0, 1.8, 0.9),
        (360.0, 1.8, 0.9),
    ]


def test_compiled_cases_have_lines_of_their_own(bert):
    assert [(line["label"], sentence(line["title"])) for line in bert["lines"]] == [
        ("1n1g", "fp32 not compiled b64"),
        ("1n2g", "fp32 not compiled b64"),
        ("1n1g", "fp32 compiled b64"),
        ("1n2g", "fp32 compiled b64"),
    ]


def test_a_workload_without_a_case_has_an_empty_cell():
    cases = {key: of for key, of in CASES.items() if key != ("torch_bert", 2, False)}
    line = made(cases)["families"][0]["lines"][1]
    assert line["cells"][1] is None


def test_a_family_of_one_workload_has_no_comparison():
    family = made()["families"][1]
    assert (family["columns"], family["lines"]) == ([], [])


def test_cases_that_differ_in_accumulation_or_model_have_columns_of_their_own():
    cases = [
        case(workload="tf2_bert"),
        case(workload="torch_bert"),
        case(workload="torch_bert", accumulation=4),
    ]
    runs = [run(of, repeat) for of in cases for repeat in (1, 2, 3)]
    tables = weak_scaling.tabulate(cases, runs, (), WORKLOADS)
    (family,) = families.tabulate(tables["groups"], tables["rows"], WORKLOADS)
    assert [sentence(column["name"]) for column in family["columns"]] == [
        "tf2_bert",
        "torch_bert accumulation 1",
        "torch_bert accumulation 4",
    ]
    assert [[cell is not None for cell in line["cells"]] for line in family["lines"]] == [[True] * 3]


RESNETS = {
    "torch_resnet50": Workload(family="resnet50", size="image_size"),
    "mxnet_resnet50": Workload(family="resnet50", size="image_size"),
    "tf2_resnet50": Workload(family="resnet50", size=224),
}


def resnet_cases():
    unit = {"bsz": 2}
    return [
        *(case(workload="torch_resnet50", settings={"image_size": size}, **unit) for size in (64, 224)),
        case(workload="mxnet_resnet50", settings={"image_size": 64, "commit": "e470c21"}, **unit),
        case(workload="tf2_resnet50", settings={"version": "2.3.0"}, **unit),
    ]


def lines_of(cases, workloads):
    runs = [run(of, repeat, unit="images") for of in cases for repeat in (1, 2, 3)]
    tables = weak_scaling.tabulate(cases, runs, (), workloads)
    (family,) = families.tabulate(tables["groups"], tables["rows"], workloads)
    return [sentence(column["name"]) for column in family["columns"]], [
        (sentence(line["title"]), [cell is not None for cell in line["cells"]]) for line in family["lines"]
    ]


def test_samples_of_another_size_are_lines_of_their_own():
    columns, lines = lines_of(resnet_cases(), RESNETS)
    assert columns == ["mxnet_resnet50", "tf2_resnet50", "torch_resnet50"]
    assert lines == [
        ("fp32 image size 64 b2", [True, False, True]),
        ("fp32 image size 224 b2", [False, True, True]),
    ]


def test_the_size_of_a_sample_is_named_only_where_it_differs():
    assert lines_of(resnet_cases()[1::2], RESNETS)[1] == [("fp32 b2", [True, True])]


def test_sequences_of_one_length_are_one_line_whatever_their_settings_are_called():
    names = {"torch_bert": "seq_length", "horovod_bert": "length"}
    workloads = {workload: Workload(family="bert", size=name) for workload, name in names.items()}
    cases = [case(workload=workload, settings={name: 128}) for workload, name in names.items()]
    assert lines_of(cases, workloads) == (["horovod_bert", "torch_bert"], [("fp32 b64", [True, True])])


def test_the_terminal_shows_the_comparison_before_the_tables_of_the_workloads():
    text = terminal.display(made(), "/r")
    assert text.startswith("Family bert, workloads side by side\n")
    assert text.index("tf2_bert samples/s") < text.index("tf2_bert base fp32 b64")


def test_the_page_prints_every_cell():
    line = printed.rows(scaling.side_by_side(View(made()), made()["families"][0], ""))[1]
    assert [line[f"{key}1"] for key in ("median", "speedup", "efficiency")] == ["360.0", "1.8", "90.0 %"]


def chinese_titles(cases, workloads, unit="samples"):
    runs = [run(of, repeat, unit=unit) for of in cases for repeat in (1, 2, 3)]
    campaign = Campaign("night", cases={of["name"]: of for of in cases}, runs=runs)
    chinese = Wording("zh")
    made = build_results(campaign, workloads)
    table = scaling.family_table(View(made, chinese), made["families"][0])
    return [line["title"] for line in table.rows]


def test_the_titles_of_lines_are_chinese_in_the_chinese_report():
    cases = [case(workload=name, xla=xla) for name in ("tf2_bert", "torch_bert") for xla in (False, True)]
    assert chinese_titles(cases, WORKLOADS) == ["fp32，未编译，b64", "fp32，编译，b64"]
    on_cpus = [{**of, "device": "cpu"} for of in resnet_cases()]
    titles = chinese_titles(on_cpus, RESNETS, "images")
    assert titles == ["CPU 上，fp32，图像尺寸 64，b2", "CPU 上，fp32，图像尺寸 224，b2"]


def test_a_line_of_unknown_sequence_length_says_so_in_chinese():
    workloads = {name: Workload(family="bert", size="length") for name in ("hf_mlm", "torch_bert")}
    cases = [case(workload="hf_mlm"), case(workload="torch_bert", settings={"length": 128})]
    assert chinese_titles(cases, workloads) == ["fp32，序列长度未知，b64", "fp32，序列长度 128，b64"]


def test_workloads_with_different_units_are_not_on_one_chart():
    cases = {key: of for key, of in CASES.items() if not key[2] and key[0] != "tf2_bert"}
    units = {"torch_bert": "samples", "torch_resnet50": "images"}
    runs = [
        run(of, repeat, RATES[workload] * gpus, unit=units[workload])
        for (workload, gpus, _), of in cases.items()
        for repeat in (1, 2, 3)
    ]
    campaign = Campaign("night", cases={of["name"]: of for of in cases.values()}, runs=runs)
    drawn = {chart["name"]: chart["svg"] for chart in charts.charts(build_results(campaign, WORKLOADS))}
    assert "samples/s, median and range" in drawn["throughput"]
    assert "images/s, median and range" in drawn["throughput_2"]
