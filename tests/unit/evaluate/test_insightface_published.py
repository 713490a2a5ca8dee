# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""InsightFace is in an evaluation as DLPerf published it, in the family of the workload that trains it."""

import pytest
from ansible.module_utils.scalebook.evaluate import published
from test_evaluation import ROOT, WORKLOADS

TABLE = ROOT / "data/dlperf-insightface.csv"


@pytest.fixture(scope="module")
def options():
    with TABLE.open(newline="") as file:
        return published.of_dlperf(file, WORKLOADS, published.INSIGHTFACE)


def test_every_published_row_is_an_option_of_the_family_that_is_trained_here(options):
    assert (len(options), {option["family"] for option in options}) == (92, {"insightface"})
    assert {(option["model"], option["task"], option["unit"], option["size"]) for option in options} == {
        ("r100", "recognition", "images", "112"),
        ("y1", "recognition", "images", "112"),
    }


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
