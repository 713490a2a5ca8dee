# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""An evaluation of DLPerf's published figures alone has DLPerf's tables and its ranking."""

import pytest
from ansible.module_utils.scalebook.evaluate import content, document, published
from ansible.module_utils.scalebook.pages import catalogue, cells, wording
from test_evaluation import EXAMPLE, ROOT, WORKLOADS

V100 = "Tesla V100-SXM2-16GB"
GIVEN = {**EXAMPLE, "electricity": None, "criteria": {}, "platform": ""}


@pytest.fixture(scope="module")
def options():
    with (ROOT / "data/dlperf-published-results.csv").open(newline="") as file:
        return published.of_dlperf(file, WORKLOADS)


@pytest.fixture(scope="module")
def evaluation(options):
    return document.document(GIVEN, [], options, [], WORKLOADS, {})


@pytest.fixture(scope="module")
def blocks(evaluation):
    return content.blocks(evaluation)


@pytest.fixture(scope="module")
def tables(blocks):
    """The rows of each table as texts, by the end of its caption."""
    return {
        block.caption.split(" ", 2)[2]: [
            [column.head for column in block.columns],
            *(
                [cells.text_of(row, column, wording.ENGLISH) for column in block.columns]
                for row in block.rows
            ),
        ]
        for block in blocks
        if type(block).__name__ == "Table" and not block.only
    }


def rates(tables, *cells):
    """The rates of the rows of a table of throughput that have these cells, of all its parts."""
    found = []
    for title, rows in tables.items():
        if title.startswith("BERT: Throughput"):
            first = next(place for place, head in enumerate(rows[0]) if head[0].isdigit())
            found += [row[first:] for row in rows[1:] if set(cells) <= set(row)]
    return [rate for row in found for rate in row if rate != "–"]


def test_every_published_row_is_in_the_evaluation(evaluation):
    assert sum(len(family["options"]) for family in evaluation["families"]) == 509


def test_the_rates_are_those_of_tensorflow(tables):
    # TensorFlow/bert/README.md, fp32, batch 32; behind each the efficiency: 1.71, 3.36 and 6.52 times one.
    found = rates(tables, "TensorFlow 2.3.0", "fp32", "32", "–")
    assert found[:4] == ["103.58", "177.18 (85.5 %)", "347.83 (84.0 %)", "675.82 (81.5 %)"]


def test_the_rates_are_those_of_deepspeed(tables):
    # DeepSpeed/bert/README.md, fp32, batch 32.
    variant = "train_batch_size=bsz*1024 => gradient accumulation 1024/gpus"
    found = rates(tables, "DeepSpeed 1afca8f (torch 1.6.0)", "fp32", "32", variant)
    assert found[-1].partition(" ")[0] == "4,899.37"


def test_the_ranking_is_that_of_dlperf(evaluation):
    # Table 4-2 of its report of 2020: ResNet-50 v1.5, fp32, batch 128, four machines with eight GPUs.
    frameworks = [
        "OneFlow 0.2.0", "NGC MXNet 1.6.0", "NGC PyTorch 1.5.0a0", "PyTorch 1.6.0", "NGC TensorFlow 1.15.2",
        "TensorFlow 2.3.0", "PaddlePaddle 1.8.3.post107",
    ]  # fmt: skip
    setting = f"resnet50, image size = 224, fp32, batch size = 128, {V100}"
    leads = [
        lead
        for family in evaluation["families"]
        for lead in family["ranking"]
        if (catalogue.sentence(lead["setting"]), lead["case"]) == (setting, "4n8g")
    ]
    ordered = [name.partition(" 4n8g")[0] for name in (leads[0]["first"], *(lead["other"] for lead in leads))]
    assert [name for name in dict.fromkeys(ordered) if name in frameworks] == frameworks


def test_rows_with_accumulation_are_in_no_ranking(evaluation):
    leads = [lead for family in evaluation["families"] for lead in family["ranking"]]
    assert not [lead for lead in leads if "accumulation" in lead["first"] + lead["other"]]


def test_a_lead_of_published_figures_is_of_unknown_range(evaluation):
    verdicts = {lead["verdict"] for family in evaluation["families"] for lead in family["ranking"]}
    assert verdicts == {"unknown"}


def test_rows_with_accumulation_are_said_to_measure_computing(blocks):
    said = [block.text for block in blocks if type(block).__name__ == "Paragraph"]
    (warned,) = [text for text in said if "gradient accumulation" in text and "Published" in text]
    assert "rarely: DeepSpeed 1afca8f (torch 1.6.0). These" in warned


def test_rows_whose_accumulation_is_the_same_on_all_devices_are_not():
    with (ROOT / "data/hf-trainer-published.csv").open(newline="") as file:
        data = document.document(GIVEN, [], published.of_trainer(file), [], WORKLOADS, {})
    said = [block.text for block in content.blocks(data) if type(block).__name__ == "Paragraph"]
    assert [text for text in said if "rarely" in text] == []
