# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The measured evaluations are in one language, Chinese or English."""

import pytest
import yaml
from chinese import chinese, faults, prose, texts_of
from test_evaluation import ROOT, evaluate


@pytest.mark.parametrize("path", sorted((ROOT / "docs/results").glob("evaluation-*/zh.yml")), ids=str)
def test_an_evaluation_in_chinese_has_no_english_phrase_and_no_half_width_mark(tmp_path, path):
    evaluate(tmp_path, **{**yaml.safe_load(path.read_text())["evaluation"], "out": str(tmp_path)})
    assert faults(prose((tmp_path / "evaluation.md").read_text())) == []
    assert faults(texts_of((tmp_path / "evaluation.html").read_text())) == []


@pytest.mark.parametrize("path", sorted((ROOT / "docs/results").glob("evaluation-*/en.yml")), ids=str)
def test_an_evaluation_in_english_has_no_chinese(tmp_path, path):
    evaluate(tmp_path, **{**yaml.safe_load(path.read_text())["evaluation"], "out": str(tmp_path)})
    for form in ("md", "html"):
        assert chinese((tmp_path / f"evaluation.{form}").read_text()) == []
