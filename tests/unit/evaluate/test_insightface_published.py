# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""InsightFace is in an evaluation as DLPerf published it, with the reason why it is published only."""

import pytest
from ansible.module_utils.scalebook.evaluate import content, document, published
from ansible.module_utils.scalebook.pages.wording import Wording
from test_dlperf_alone import GIVEN
from test_evaluation import ROOT, WORKLOADS

TABLE = ROOT / "data/dlperf-insightface.csv"


@pytest.fixture(scope="module")
def options():
    with TABLE.open(newline="") as file:
        return published.of_insightface(file)


def test_every_published_row_is_an_option_of_a_family_of_its_own(options):
    assert (len(options), {option["family"] for option in options}) == (92, {"insightface"})


def test_the_figures_are_those_of_the_report(options):
    """reports/insightface/dlperf_insightface_test_report_v1.md, partial FC on four machines, batch 64."""
    found = {
        option["workload"]: option["rate"]
        for option in options
        if (option["nodes"], option["gpus"], option["bsz"]) == (4, 8, 64)
    }
    assert found == {"OneFlow 0.3.4": 6931.6, "MXNet (deepinsight a9beb60)": 5008.72}


def test_speedup_is_over_one_gpu_of_the_same_table(options):
    """7564.74 over 256.61."""
    assert max(option["speedup"] for option in options if option["workload"] == "OneFlow 0.3.4") == 29.48


@pytest.mark.parametrize(
    ("language", "reason"), [("en", "Published only: no workload"), ("zh", "仅列出公布的结果")]
)
def test_the_document_says_why_it_is_published_only(options, language, reason):
    made = document.document(GIVEN, [], options, [], WORKLOADS, {})
    blocks = content.blocks(made, Wording(language))
    said = [block.text for block in blocks if type(block).__name__ == "Paragraph"]
    assert [text.startswith(reason) for text in said].count(True) == 1
