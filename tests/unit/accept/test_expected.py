# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Published values of GPUs are found by the name of the GPU, and checked when they are read."""

import re
from pathlib import Path

import pytest
from ansible.module_utils.scalebook.accept import expected
from ansible.module_utils.scalebook.yaml_file import read_yaml

ROWS = expected.rows(read_yaml(Path(__file__).parents[3] / "data/expected.yml"))
ROW = {"gpu": "X", "quantity": "copy", "value": 1.0, "unit": "GB/s", "tolerance": 0.05, "source": "page"}


@pytest.mark.parametrize(
    ("gpu", "quantity", "devices", "value"),
    [
        ("NVIDIA H100 80GB HBM3", "matmul_bf16", 1, 794.5),
        ("NVIDIA H200", "all_reduce", 8, 467.6),
        ("NVIDIA A100-SXM4-80GB", "copy", 1, 1610),
        ("Tesla V100-SXM2-16GB", "matmul_fp16", 1, 95),
        ("NVIDIA B200", "best_bf16", 1, 1745),
        ("NVIDIA GB200", "to_device", 1, 201),
    ],
)
def test_a_published_value_is_found_by_the_name_that_the_driver_reports(gpu, quantity, devices, value):
    assert expected.expected(ROWS, gpu, quantity, devices).value == value


@pytest.mark.parametrize(
    ("gpu", "quantity", "devices"),
    [
        ("NVIDIA B200", "matmul_bf16", 1),
        ("NVIDIA B200", "copy", 1),
        ("NVIDIA GB200", "all_reduce", 4),
        ("NVIDIA H100 PCIe", "copy", 1),
        ("NVIDIA H200", "all_reduce", 4),
        ("NVIDIA H20", "copy", 1),
        ("Intel Xeon", "copy", 1),
    ],
)
def test_what_nobody_published_has_no_reference(gpu, quantity, devices):
    assert expected.expected(ROWS, gpu, quantity, devices) is None


def test_every_source_names_a_page_at_a_commit():
    assert [row.source for row in ROWS if not re.match(r"[\w-]+/[\w-]+@[0-9a-f]{7,} \S+", row.source)] == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"tolerance": 5}, "row 1: tolerance=5; .*tolerance is a share"),
        ({"value": -1}, "row 1: value=-1"),
        ({"unit": "GiB/s"}, "row 1: unit=GiB/s; .*TFLOP/s or GB/s"),
        ({"gpu": "("}, r"row 1: gpu=\("),
        ({"devices": 0}, "row 1: devices=0"),
        ({"source": ""}, "row 1: source="),
        ({"valeu": 1}, "row 1: it must have gpu, quantity, value, unit, tolerance, source"),
    ],
)
def test_a_wrong_row_is_refused_with_its_number(change, problem):
    with pytest.raises(ValueError, match=problem):
        expected.rows({"expected": [{**ROW, **change}]})


@pytest.mark.parametrize("content", [None, [], {"expected": {}}, "text"])
def test_a_file_without_the_list_is_refused(content):
    with pytest.raises(ValueError, match="must have a list `expected`"):
        expected.rows(content)
