# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Limits of a declaration: what their words allow, and which words are refused when it is loaded."""

import pytest
from ansible.module_utils.scalebook.limits import LimitError, limits_of, problems
from ansible.module_utils.scalebook.workload import WorkloadError
from ansible.module_utils.scalebook.workloads import load_workloads
from test_workloads import changed


def refusals(declared, **values):
    return list(problems(limits_of(declared, "x_"), "x_", values))


@pytest.mark.parametrize(
    ("words", "allowed", "refused"),
    [
        ("32 to 512", [32, 512], [31, 513]),
        ("0 to below 1", [0.0, 0.99], [1.0]),
        ("0.1 to 100", [0.1, 100.0], [0.09, 100.1]),
        ("1 and more", [1, 10**9], [0]),
        ("2 and more, as the first is warm-up", [2], [1]),
        ("numbers above 0", [1e-9], [0.0]),
        ("0 to 0", [0], [1]),
    ],
)
def test_a_range_has_the_values_that_its_words_say(words, allowed, refused):
    assert [value for value in allowed if refusals({"length": words}, length=value)] == []
    assert [
        value
        for value in refused
        if refusals({"length": words}, length=value) != [f"x_length={value}: allowed are {words}"]
    ] == []


def test_a_bound_may_follow_from_another_variable_whose_value_is_shown():
    declared = {"predictions": "1 to length - 3"}
    assert refusals(declared, predictions=61, length=64) == []
    assert refusals(declared, predictions=62, length=64) == [
        "x_predictions=62: allowed are 1 to x_length - 3 (x_length=64)"
    ]


@pytest.mark.parametrize("value", ["", "abx", "ab\n", "xab"])
def test_a_pattern_is_that_of_the_whole_value(value):
    declared = {"commit": {"pattern": "[a-f]+", "allowed": "letters from a to f"}}
    assert refusals(declared, commit="ab") == []
    assert refusals(declared, commit=value) == [f"x_commit={value}: allowed are letters from a to f"]


def test_a_limit_counts_only_where_its_formula_is_not_zero():
    declared = {"data": {"when": "(kind == 'own')", "pattern": ".+", "allowed": "a path"}}
    assert refusals(declared, data="", kind="made") == []
    assert refusals(declared, data="", kind="own") == ["x_data=: allowed are a path"]


def test_a_variable_with_several_limits_is_refused_once():
    assert refusals({"images": ["1 and more", "2 and more"]}, images=0) == [
        "x_images=0: allowed are 1 and more"
    ]


def test_a_limit_that_cannot_be_evaluated_refuses_the_value():
    [refusal] = refusals({"images": "100 / files and more"}, images=8, files=0)
    assert refusal.startswith("x_images=8: allowed are 100 / x_files and more, which cannot be checked")


@pytest.mark.parametrize(
    ("limit", "problem"),
    [
        ("some", "'some'; allowed are such as 1 to 512"),
        ("1 to length -", "'length -' is not a formula"),
        ("1 to max(length)", "'max.length.' is not a formula"),
        ({"pattern": "("}, "say in `allowed`"),
        ({"pattern": "(", "allowed": "none"}, "is not a regular expression"),
        ({"pattern": "a", "range": "1 to 2"}, "give range or pattern"),
        ({"when": "length", "allowed": "all"}, "give range or pattern"),
        ({"pattern": "a", "allowed": "a", "why": "b"}, "give range or pattern"),
        ({"when": "length == 1", "range": "1 to 2"}, "is not a formula"),
    ],
)
def test_a_limit_that_says_nothing_usable_is_refused(limit, problem):
    with pytest.raises(LimitError, match=f"^size: .*{problem}"):
        limits_of({"size": limit}, "x_")


@pytest.mark.parametrize(
    ("limits", "problem"),
    [
        ({"lenght": "8 to 512"}, "lenght is not a variable of the role"),
        ({"length": "8 to hidden"}, "length: hidden is not a variable of the role"),
        ({"report_to": "8 to 512"}, "report_to: a range needs a number, it is str"),
        ({"length": "short"}, "limits: length: 'short'"),
    ],
)
def test_a_declaration_with_a_wrong_limit_is_refused_when_it_is_loaded(tmp_path, limits, problem):
    with pytest.raises(WorkloadError, match=f"hf_mlm.*{problem}"):
        load_workloads(changed(tmp_path, limits=limits))
