# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The example of the Tianshu evaluation has the cases of section 2.6 but for what its head names."""

from pathlib import Path

import pytest
import yaml
from ansible.module_utils.scalebook.workloads import load_workloads
from cases import cluster, plan

ROOT = Path(__file__).resolve().parents[3]
GIVEN = yaml.safe_load((ROOT / "playbooks/vars/tianshu.yml").read_text())
# The values of other settings do not matter to the matrix.
BLANK = {"int": 1, "float": 1.0, "bool": False}


def blank(workload):
    values = {name: BLANK.get(kind, "") for name, kind in workload.setting_types.items()}
    return workload.resolve({**values, **{name: GIVEN[name] for name in values if name in GIVEN}})


@pytest.fixture(scope="module")
def planned():
    known = load_workloads([str(ROOT / "roles")])
    workloads = {name: blank(known[name]) for name in GIVEN["workload"]}
    return plan(GIVEN, workloads, cluster(125), None, "gpu")


def test_every_number_of_machines_and_gpus_of_the_plan_is_measured(planned):
    cases = planned["cases"]
    assert {case["nodes"] for case in cases} == {1, 2, 4, 8, 16, 32, 64, 125}
    assert {case["devices"] for case in cases} == {1, 8, 16, 32, 64, 128, 256, 512, 1000}


def test_xla_and_mixed_precision_are_measured_on_and_off(planned):
    kinds = {(case["xla"], case["dtype"]) for case in planned["cases"] if case["workload"] == "tf2_bert"}
    assert kinds == {(xla, dtype) for xla in (False, True) for dtype in ("fp32", "fp16")}


def test_oneflow_is_measured_in_mixed_precision_too(planned):
    assert {case["dtype"] for case in planned["cases"] if case["workload"] == "oneflow_resnet50"} == {
        "fp32",
        "fp16",
    }


def test_every_workload_is_measured_with_the_same_batches(planned):
    batches = {(case["workload"], case["bsz"]) for case in planned["cases"]}
    assert batches == {(workload, bsz) for workload in GIVEN["workload"] for bsz in (32, 64, 128)}


def test_a_case_is_repeated_five_to_seven_times(planned):
    assert 5 <= planned["repeats"] <= 7
    assert len(planned["runs"]) == planned["repeats"] * len(planned["cases"])


def test_what_a_workload_does_not_have_is_listed(planned):
    why = {entry["reason"] for entry in planned["skipped"]}
    assert "bing_bert has no compiler" in why


def test_the_inventory_has_125_machines_with_eight_gpus():
    nodes = yaml.safe_load((ROOT / "inventory/tianshu/hosts.yml").read_text())["nodes"]
    assert (list(nodes["hosts"]), nodes["vars"]["slots"]) == (["node[001:125]"], 8)
