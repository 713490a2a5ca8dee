"""DLPerf's result format: the seed's figures to the last digit, and nothing made up."""

import json

import numpy
import pytest
from ansible.module_utils.scalebook.judge import dlperf_format
from ansible.module_utils.scalebook.pages.numbers import two_decimals
from dlperf_figures import PUBLISHED, SPEEDS
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize("label", SPEEDS)
def test_the_published_entry_comes_out_to_the_last_digit(label):
    entry = dlperf_format.figures(SPEEDS[label], 64, SPEEDS["1n1g"])
    assert json.dumps(entry) == json.dumps(PUBLISHED[label])


def test_speeds_are_rounded_before_they_are_averaged():
    # Unrounded, the mean is 1.004 and prints 1.0.
    assert dlperf_format.figures([1.0049, 1.0051, 1.002], 1, None)["average_speed"] == 1.0
    assert dlperf_format.figures([1.0051, 1.0051, 1.0], 1, None)["average_speed"] == 1.01


def test_without_a_baseline_the_speedup_is_null_not_1():
    entry = dlperf_format.figures([204.16], 64, [])
    assert entry["speedup"] is None
    assert entry["median_speed"] == 204.16


@given(st.floats(min_value=0, max_value=1e6))
def test_rounding_is_numpys(value):
    assert dlperf_format.round2(value) == float(round(numpy.float64(value), 2))


@given(st.lists(st.floats(min_value=0.01, max_value=1e5), min_size=1, max_size=6))
def test_the_median_is_numpys(rates):
    expected = float(round(numpy.median([round(rate, 2) for rate in rates]), 2))
    assert dlperf_format.figures(rates, 1, None)["median_speed"] == expected


@pytest.mark.parametrize(("value", "text"), [(1239.3, "1239.3"), (909, "909.0"), (2244.38, "2244.38")])
def test_figures_print_as_in_dlperfs_tables(value, text):
    assert two_decimals(value) == text


def group(**other):
    base = {
        "workload": "tf2_bert",
        "model": "base",
        "bsz": 64,
        "dtype": "fp32",
        "xla": False,
        "accumulation": 1,
    }
    return {**base, **other}


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({}, "tf2_bert_base_bz64_result.json"),
        ({"dtype": "fp16"}, "tf2_bert_base_bz64_fp16_result.json"),
        ({"xla": True}, "tf2_bert_base_bz64_xla_result.json"),
        ({"dtype": "fp16", "xla": True, "bsz": 96}, "tf2_bert_base_bz96_fp16_xla_result.json"),
        ({"model": "../../etc/x"}, "tf2_bert_.._.._etc_x_bz64_result.json"),
    ],
)
def test_a_campaign_names_a_file_per_group(fields, name):
    assert list(dlperf_format.result_files([group(**fields)])) == [name]


def test_an_import_of_one_group_has_dlperfs_name():
    assert dlperf_format.result_files([group()], "bz64") == {"bz64_result.json": [0]}


def test_an_import_of_several_precisions_gets_a_file_each():
    groups = [group(), group(dtype="fp16"), group(xla=True)]
    assert list(dlperf_format.result_files(groups, "bert")) == [
        "bert_b64_fp32_result.json",
        "bert_b64_fp16_result.json",
        "bert_b64_fp32_xla_result.json",
    ]


def test_two_models_of_an_import_share_dlperfs_one_file():
    assert dlperf_format.result_files([group(), group(model="large")], "logs") == {"logs_result.json": [0, 1]}


def test_groups_the_name_cannot_tell_apart_do_not_overwrite_each_other():
    groups = [group(device="cpu"), group(device="gpu")]
    assert list(dlperf_format.result_files(groups)) == [
        "tf2_bert_base_bz64_result.json",
        "tf2_bert_base_bz64_2_result.json",
    ]


def test_a_case_without_a_good_run_is_not_in_the_file():
    rows = [
        {"model": "bert", "label": "1n1g", "dlperf": PUBLISHED["1n1g"]},
        {"model": "bert", "label": "1n2g", "dlperf": None},
    ]
    assert dlperf_format.result(rows) == {"bert": {"1n1g": PUBLISHED["1n1g"]}}
