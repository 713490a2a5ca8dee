# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""hf_mlm for real: two nodes under torchrun, a small epoch, and the report on it."""

import json

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def campaign(hf_mlm, tmp_path_factory):
    results = tmp_path_factory.mktemp("hf_mlm")
    few = {"hf_mlm_train_samples": 256, "hf_mlm_eval_samples": 64, "repeats": 1}
    place = {"campaign": "real", "campaign_results": str(results), "campaign_port": 24740}
    hf_mlm.play("bench.yml", nodes=2, **few, **place)
    return results / "real"


def test_two_nodes_train_together(campaign):
    [path] = (campaign / "runs").glob("*/1/result.json")
    record = json.loads(path.read_text())
    assert (record["status"], record["reason"]) == ("ok", None)
    assert record["nodes"][0]["steps"] == [1, 2, 3, 4]


def test_the_report_has_the_row_of_the_published_table(campaign):
    text = (campaign / "report/report.md").read_text()
    assert "Metrics reported by hf_mlm" in text.replace("\\", "")
    assert "CPU_2x1cpu_16" in text.replace("\\", "")
