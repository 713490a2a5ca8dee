# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The Chinese sentences of the catalogue, with their values filled in, are Chinese throughout."""

from __future__ import annotations

import pytest
from ansible.module_utils.scalebook.pages import messages_zh
from ansible.module_utils.scalebook.pages.catalogue import CATALOGUES, PLACE, phrase
from chinese import faults

SENTENCES = {
    code: text
    for code, text in CATALOGUES["zh"].items()
    if not code.startswith("join.") and "=1,{" not in text  # a value of -e
}


def filled(code, value):
    return phrase(code, {place[1]: value for place in PLACE.finditer(SENTENCES[code])}, "zh")


@pytest.mark.parametrize("value", ["设备", "4", "（第 2 次）"])
def test_a_sentence_has_no_blank_and_no_half_width_mark_beside_chinese(value):
    assert faults(filled(code, value) for code in SENTENCES) == []


def test_a_declared_text_has_no_blank_and_no_half_width_mark_beside_chinese():
    assert faults(PLACE.sub("4", text) for text in messages_zh.DECLARED.values()) == []


@pytest.mark.parametrize(
    "text",
    [
        "另有 受限",
        "按 、",
        "参数:值",
        "首先, 其次",
        "节点(四个)",
        "为 the slowest device of",
        "（一） 以退出码",
    ],
)
def test_a_fault_is_found(text):
    assert faults([text]) != []


@pytest.mark.parametrize("text", ["每块 GPU 的 batch", "torch_bert bf16", "1,024 个", "4n8g（4 个节点）：是"])
def test_chinese_with_latin_names_has_no_fault(text):
    assert faults([text]) == []
