# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""docs/reference/parameters.zh-CN.md says what the table says from which the English page is made."""

import re
from pathlib import Path

import pytest
from ansible.module_utils.scalebook.plan.parameters import reference, rows_of, text

PAGE = Path(__file__).resolve().parents[3] / "docs/reference/parameters.zh-CN.md"
ROWS = rows_of(["bench"])
CELLS = {
    name: (default, meaning)
    for name, default, meaning in re.findall(r"^\| `(\w+)` \| (.+?) \| (.+) \|$", PAGE.read_text(), re.M)
}
# A new English text needs a new Chinese one.
OTHERWISE = {
    "the stack that each workload names": "由 workload 决定",
    "base on GPUs, tiny on CPUs": "GPU 为 base，CPU 为 tiny",
    "the workload's own": "由 workload 决定",
    "the workload's own, mostly 1": "由 workload 决定，多为 1",
    "the workload's own, mostly 20": "由 workload 决定，多为 20",
    "the workload's own, mostly 100": "由 workload 决定，多为 100",
    "1, 2, 4 … all nodes of the inventory": "1、2、4…… 直到全部",
    "1, 2, 4 … all on one node; all on several nodes": "单机为 1、2、4…… 直到全部，多机为全部",
    "gpu where every machine has GPUs, cpu where none has": "auto：所有机器都有 GPU 则为 gpu，都没有则为 cpu",
    "a name made from matrix and machines": "由测试矩阵和机器生成",
    "none: nothing is exported": "不导出",
    "invented data, or those of the variables of each workload": "人造数据，或各 workload 变量指定的数据",
    "mpirun": "mpirun",
    "podman": "podman",
    "none: the nodes' own software": "不使用：直接用节点上的软件",
}


def plain(default):
    """Return a default without what only one of the pages writes: 80.0 and 80%, 1.0 and 1."""
    number = re.fullmatch(r"([0-9]+)(\.0)?%?", default)
    return number[1] if number else default


def test_the_rows_are_those_of_the_table_in_its_order():
    assert list(CELLS) == list(ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_a_default_is_that_of_the_table(name):
    row, (default, _) = ROWS[name], CELLS[name]
    if row.otherwise:
        assert default == OTHERWISE[row.otherwise]
    elif row.default is None:
        assert default == "–"
    else:
        assert plain(default) == plain(text(row.default))


@pytest.mark.parametrize("name", ROWS)
def test_values_and_lists_are_those_of_the_table(name):
    row, (_, meaning) = ROWS[name], CELLS[name]
    assert [value for value in row.choices if value not in meaning] == []
    assert ("多个" in meaning) == ("bench" in row.lists)


@pytest.mark.parametrize("name", ROWS)
def test_a_name_of_the_english_meaning_is_in_the_chinese_one(name):
    _, meaning = CELLS[name]
    words = {"fp32", "fp16", "bf16", "results.json", "report.html", "report.md", "node_exporter", "max"}
    assert [word for word in words if word in ROWS[name].help and word not in meaning] == []


def test_the_english_page_has_the_same_rows():
    (section,) = re.findall(r"## bench\.yml\n(.+?)\n## ", reference(), re.S)
    assert re.findall(r"^\| `(\w+)` ", section, re.M) == list(CELLS)
