# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The best of each framework with what it differs in, what a switch gains, and the length of the document."""

from pathlib import Path

import pytest
import yaml
from ansible.module_utils.scalebook.evaluate import comparisons, content, document, read, sentences
from ansible.module_utils.scalebook.pages import catalogue
from ansible.module_utils.scalebook.pages.blocks import Chart, Table
from ansible.module_utils.scalebook.pages.wording import Wording, duration
from test_evaluation import EXAMPLE, ROOT, WORKLOADS, option

TABLES = 36
"""Tables of the evaluation of eleven campaigns: there were 95."""


def made(workload, rate, gpus=1, nodes=1, **changes):
    return {**option(workload, rate, nodes=nodes), "gpus": gpus, "name": f"{workload} {gpus}", **changes}


def best(*options):
    return [
        (each.option["name"], each.on_one, round(each.share, 2), each.differs)
        for each in comparisons.best_of_each(options)
    ]


def test_the_best_of_each_workload_is_compared_on_one_device_and_on_the_most():
    options = [made("a", 100), made("b", 50), made("a", 380, 4), made("a", 190, 2), made("b", 199, 4)]
    assert best(*options) == [
        ("a 1", True, 1, []),
        ("b 1", True, 0.5, []),
        ("a 4", False, 1, []),
        ("b 4", False, 0.52, []),
    ]


def test_what_differs_from_the_best_is_named():
    found = best(made("a", 100), made("b", 50, dtype="bf16", bsz=8, compiler="XLA"))
    assert found[1][3] == ["dtype", "bsz", "compiler"]


def test_another_training_is_not_a_share_of_the_best_and_says_what_it_trains():
    first, other = comparisons.best_of_each([made("a", 100), made("b", 50, model="large", size="512")])
    assert (first.share, other.share) == (1, 1)
    said = catalogue.sentence(sentences.differs(other))
    assert said == "trains large, sequence length = 512"


def test_a_node_counts_before_simulated_nodes_on_one_machine():
    simulated = made("a", 500, 2, nodes=2, machines=1)
    assert best(made("a", 380, 4), simulated)[0][0] == "a 4"


def test_a_switch_gains_what_pairs_of_one_campaign_show():
    options = [
        made("a", 100, dtype="fp32"),
        made("a", 150, dtype="fp32", compiler="XLA"),
        made("a", 300, compiler="XLA"),
        made("a", 900, compiler="XLA", source="another"),
    ]
    assert [(pair.what, round(pair.times, 2)) for pair in comparisons.gains(options)] == [
        ("XLA", 1.5),
        ("fp16", 2),
    ]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (4.567, "4.57 s"),
        (279, "4 min 39 s"),
        (59.7, "1 min 0 s"),
        (3599.8, "1 h 0 min"),
        (112200, "31 h 10 min"),
        (190000, "2 d 5 h"),
    ],
)
def test_a_time_is_said_as_people_say_it(seconds, said):
    assert catalogue.sentence(duration(seconds)) == said


@pytest.fixture(scope="module")
def blocks():
    """The evaluation of the campaigns on H200."""
    given = yaml.safe_load((ROOT / "docs/results/evaluation-h200-2026-11-25/en.yml").read_text())[
        "evaluation"
    ]
    given = {**EXAMPLE, **given, "electricity": None}
    found = read.sources(given, ROOT, Path(ROOT / "data"), WORKLOADS)
    data = document.document(given, found.campaigns, found.others, found.prices, WORKLOADS, found.checksums)
    return content.blocks(data, Wording("en"))


def test_the_document_of_eleven_campaigns_is_short(blocks):
    assert sum(isinstance(block, Table) for block in blocks) <= TABLES
    assert sum(isinstance(block, Chart) for block in blocks) <= 3


def test_the_first_sheet_has_hardware_and_its_utilisation_in_columns_of_their_own(blocks):
    (sheet,) = [each for each in blocks if isinstance(each, Table) and each.only]
    keys = [column.key for column in sheet.columns]
    assert len(set(keys)) == len(keys)
    first = sheet.rows[0]
    assert (first["hardware"], round(first["gpu"], 1)) == ("NVIDIA H200", 74.2)


def test_a_criterion_that_is_not_measured_has_its_command(blocks):
    (table,) = [each for each in blocks if isinstance(each, Table) and each.caption.endswith("1-4 Criteria")]
    missing = [row["evidence"] for row in table.rows if row["verdict"] == "not measured"]
    assert len(missing) == 2
    assert [text for text in missing if 'ansible-playbook bench.yml -e "workload=' not in text] == []


def test_no_column_is_called_after_a_campaign(blocks):
    heads = {column.head for each in blocks if isinstance(each, Table) for column in each.columns}
    folders = {"tf2_bert", "tf2_bert_scaling", "scaling", "hf_scaling", "hvd_scaling", "fp32"}
    assert not folders & heads


def test_nothing_is_concluded_from_published_results(blocks):
    place = next(index for index, each in enumerate(blocks) if getattr(each, "text", "").startswith("2 "))
    front = [each for each in blocks[:place] if isinstance(each, Table) and not each.only]
    assert "V100" not in str(front)
