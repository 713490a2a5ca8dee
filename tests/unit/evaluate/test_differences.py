# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Rows that are compared: what is not the same in all of them is listed."""

import measured
from ansible.module_utils.scalebook.contracts import message
from ansible.module_utils.scalebook.evaluate import differences
from ansible.module_utils.scalebook.workload import Workload


def campaign(**changes):
    """The campaign of tf2_bert on one H200, its groups changed."""
    results = measured.results("h200-2026-11-23/tf2_plain")
    for group in results["groups"]:
        group.update(changes)
    return results


def test_rows_of_one_campaign_do_not_differ():
    assert differences.of_family([campaign()], "bert", {}) == []


def test_another_sequence_length_and_window_are_listed():
    workloads = {"tf2_bert": Workload(size="seq_length", task="pretraining")}
    other = {**campaign(settings={"seq_length": 512}, window=50), "campaign": "other"}
    found = {
        each["what"]: each["values"] for each in differences.of_family([campaign(), other], "bert", workloads)
    }
    assert found == {
        "size": [
            {"value": "128", "of": ["tf2_bert (tf2_plain)"]},
            {"value": "512", "of": ["tf2_bert (other)"]},
        ],
        "window": [
            {"value": "20 + 100", "of": ["tf2_bert (tf2_plain)"]},
            {"value": "20 + 50", "of": ["tf2_bert (other)"]},
        ],
    }


def test_hardware_and_software_that_were_not_recorded_differ():
    bare = {**campaign(), "campaign": "bare", "hardware": [], "provenance": {}}
    found = differences.of_family([campaign(), bare], "bert", {})
    assert {"hardware", "framework", "cuda"} <= {each["what"] for each in found}
    assert {each["values"][1]["value"] for each in found} == {"not-recorded"}


def data_of(*named):
    """What two groups of a family were trained on, each by its settings and what its nodes recorded."""
    campaigns = [
        {**campaign(workload=name, settings=settings), "campaign": name, "provenance": recorded(name, data)}
        for name, settings, data in named
    ]
    workloads = {"announced": Workload(install={"data": "synthetic, random words"})}
    found = differences.of_family(campaigns, "bert", workloads)
    return [[each["value"] for each in line["values"]] for line in found if line["what"] == "data"]


def recorded(name, data):
    return {"workloads": {name: {"NODE1": {"data": data}}}}


def test_texts_of_one_place_are_the_same_data_whatever_format_they_are_stored_in():
    corpus = {"text": "/datasets/wiki/text/**"}
    assert data_of(("one", corpus, "a" * 64), ("other", corpus, "b" * 64)) == []


def test_own_data_differ_from_invented_ones():
    own, files = "/datasets/wiki", message("evaluation.data-files", checksum="a" * 64)
    assert data_of(("one", {"own_data": own}, "a" * 64), ("other", {"own_data": ""}, "a" * 64)) == [
        [own, files]
    ]


def test_data_that_the_trainer_invents_are_named_as_its_declaration_has_them():
    invented = [message("evaluation.data-invented"), "synthetic, random words"]
    assert data_of(("one", {}, "none"), ("announced", {}, "none")) == [invented]


def test_another_family_is_not_compared():
    assert differences.of_family([campaign(), campaign(family="resnet50", window=50)], "bert", {}) == []
