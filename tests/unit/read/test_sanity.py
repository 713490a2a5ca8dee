# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What a log must contain for its run to be valid."""

import pytest
from ansible.module_utils.scalebook.contracts import message
from ansible.module_utils.scalebook.read.sanity import (
    contradictions,
    differences,
    flat_loss,
    missing,
    rules_for,
)
from declared import vary
from dlperf_logs import WORKLOAD

TF2 = WORKLOAD
CASE = {"nodes": 2, "devices": 16, "warmup": 20, "window": 100, "xla": True, "dtype": "fp16", "bsz": None}


def rule(expect, **other):
    sanity = [{"name": "it", "literal": "it", "pattern": "(?P<value>.)", "expect": expect, **other}]
    return vary(WORKLOAD, sanity=sanity).sanity


@pytest.mark.parametrize(
    ("expect", "value"),
    [
        ("devices", "16"),
        ("devices", "016"),
        ("task_index", "1"),
        ("steps", "120"),
        ("xla", "True"),
        ("xla", "1"),
        ("dtype", "fp16"),
        ("bsz", "anything: the case leaves it open"),
    ],
)
def test_a_value_that_is_the_cases_is_accepted(expect, value):
    assert contradictions(rule(expect), {"it": [value]}, CASE, 1) == []


@pytest.mark.parametrize(
    ("expect", "value"),
    [
        ("devices", "1"),
        ("devices", "x"),
        ("task_index", "0"),
        ("steps", "12"),
        ("xla", "false"),
        ("dtype", "fp32"),
    ],
)
def test_a_value_that_is_not_the_cases_contradicts(expect, value):
    (given,) = contradictions(rule(expect), {"it": [value]}, CASE, 1)
    assert (given["code"], given["values"]["value"]) == ("reason.other-value", value)


def test_one_value_among_several_is_enough_to_contradict():
    assert len(contradictions(rule("devices"), {"it": ["16", "8"]}, CASE, 0)) == 1


def test_what_is_missing_is_named_by_its_line():
    rules = rules_for(TF2, CASE, 0).sanity
    assert missing(rules, {"devices": ["16"], "end": [""]}) == [
        message("reason.absent", name="num_workers", line="num_workers = ")
    ]


def test_a_rule_for_several_nodes_is_not_asked_of_one():
    assert [rule.name for rule in rules_for(TF2, {**CASE, "nodes": 1}, 0).sanity] == ["devices", "end"]


def test_a_rule_for_the_first_node_is_not_asked_of_the_others():
    first = vary(WORKLOAD, sanity=[{"name": "it", "literal": "i", "pattern": "i", "nodes": "first"}])
    assert (len(rules_for(first, CASE, 0).sanity), len(rules_for(first, CASE, 1).sanity)) == (1, 0)


def test_logs_that_agree_have_no_differences():
    assert differences(rule("other_nodes"), [("a", {"it": ["1"]}), ("b", {"it": ["1"]})]) == []


def test_a_value_that_is_not_that_of_the_other_nodes_is_named_with_both_logs():
    shown = [("a", {"it": ["1"]}), ("b", {"it": ["2"]})]
    assert differences(rule("other_nodes"), shown) == [
        message("reason.nodes-differ", file="b", name="it", value="2", other="a", theirs="1")
    ]


def test_a_value_that_the_nodes_need_not_have_in_common_is_not_compared():
    assert differences(rule("task_index"), [("a", {"it": ["0"]}), ("b", {"it": ["1"]})]) == []


def test_what_the_nodes_have_in_common_is_not_compared_with_the_case():
    assert contradictions(rule("other_nodes"), {"it": ["7"]}, CASE, 0) == []


def test_a_setting_that_the_log_contradicts_is_a_contradiction():
    case = {**CASE, "settings": {"checkpointing": True}}
    rules = rule("settings.checkpointing")
    assert contradictions(rules, {"it": ["true"]}, case, 0) == []
    (given,) = contradictions(rules, {"it": ["false"]}, case, 0)
    assert (given["values"]["field"], given["values"]["wanted"]) == ("settings.checkpointing", True)


@pytest.mark.parametrize(
    ("settings", "rules"),
    [({"checkpointing": False}, 1), ({"checkpointing": "auto"}, 0), ({}, 0), (None, 0)],
)
def test_a_setting_is_looked_for_only_in_the_log_of_a_case_that_has_it_and_decides(settings, rules):
    sanity = [{"name": "it", "literal": "it", "pattern": "(?P<value>.)", "expect": "settings.checkpointing"}]
    workload = vary(WORKLOAD, sanity=sanity)
    assert len(rules_for(workload, {**CASE, "settings": settings}, 0).sanity) == rules


def of_formula(formula, **case):
    sanity = [{"name": "it", "literal": "it", "pattern": "(?P<value>.+)", "equals": formula}]
    workload = vary(WORKLOAD, sanity=sanity)
    asked = {**CASE, "gpus": 8, "model": "tiny", "device": "gpu", **case}
    return rules_for(workload, asked, 0).sanity, asked


@pytest.mark.parametrize(("value", "wrong"), [("8", []), ("16", ["8"])])
def test_a_value_that_is_not_that_of_the_formula_contradicts(value, wrong):
    rules, case = of_formula("nodes * gpus // (1 + checkpointing)", settings={"checkpointing": 1})
    assert [
        str(each["values"]["wanted"]) for each in contradictions(rules, {"it": [value]}, case, 0)
    ] == wrong


@pytest.mark.parametrize("case", [{"settings": None}, {"settings": {}}, {"gpus": None}, {"xla": None}])
def test_a_formula_with_a_name_that_the_case_lacks_or_leaves_open_is_not_asked(case):
    assert of_formula("nodes * gpus // checkpointing", **{"settings": {"checkpointing": 1}, **case})[0] == ()


def noisy(fall, noise, count):
    """Losses that fall by a share of 10, one above the line and one below it."""
    return [10 - 10 * fall * i / count + (-1) ** i * noise for i in range(count)]


@pytest.mark.parametrize("losses", [noisy(0.1, 0.01, 40), noisy(0.1, 0.4, 40), noisy(0, 0.6, 40), None])
def test_a_loss_that_falls_as_far_as_its_noise_can_tell_is_accepted(losses):
    assert flat_loss(losses, 5) is None


@pytest.mark.parametrize("fall", [0, 0.04, -0.5])
def test_a_loss_that_does_not_fall_far_enough_is_flat(fall):
    flat = flat_loss(noisy(fall, 0.001, 40), 5)
    assert (flat["code"], flat["values"]["first"]) == ("reason.flat-loss", pytest.approx(10, rel=0.1))


@pytest.mark.parametrize(("count", "judged"), [(19, False), (20, True)])
def test_the_loss_of_fewer_than_twenty_steps_is_not_judged(count, judged):
    assert bool(flat_loss([10.0] * count, 5)) is judged
