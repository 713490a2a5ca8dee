# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Workloads that were one role: the old names of their variables are refused with the new ones."""

from pathlib import Path

import pytest
import yaml
from ansible.module_utils.scalebook.plan import parameters
from ansible.module_utils.scalebook.workloads import load_workloads

ROLES = Path(__file__).resolve().parents[3] / "roles"


def options(role):
    specs = yaml.safe_load((ROLES / role / "meta/argument_specs.yml").read_text())["argument_specs"]
    return {
        name: str(option["type"])
        for spec in specs.values()
        for name, option in (spec.get("options") or {}).items()
    }


VARIABLES = {
    name: kind for pair in parameters.SPLIT.items() for role in pair for name, kind in options(role).items()
}
MOVED = {old: new for old, new in parameters.RENAMED.items() if old.startswith(("deepspeed_", "horovod_"))}


def refusal(workload, **given):
    known = parameters.Known(load_workloads([str(ROLES)]), {}, VARIABLES)
    with pytest.raises(parameters.ParameterError) as caught:
        parameters.read(["bench"], {"workload": workload}, {"workload": workload, **given}, known)
    return str(caught.value)


@pytest.mark.parametrize("old", [name for name in MOVED if not name.endswith("_source")])
def test_a_variable_that_moved_is_gone_and_its_new_name_exists(old):
    assert old not in VARIABLES
    assert MOVED[old].removeprefix("use ") in VARIABLES


@pytest.mark.parametrize("workload", ["deepspeed_bert", "bing_bert"])
def test_a_variable_that_moved_is_refused_with_its_new_name(workload):
    assert "deepspeed_bert_workers: use bing_bert_workers" in refusal(workload, deepspeed_bert_workers="2")


@pytest.mark.parametrize(
    ("workload", "old", "new"),
    [
        ("bing_bert", "deepspeed_bert_samples", "bing_bert_samples"),
        ("horovod_tf1_bert", "horovod_bert_length", "horovod_tf1_bert_length"),
    ],
)
def test_a_variable_of_the_former_workload_is_refused_with_its_new_name(workload, old, new):
    assert refusal(workload, **{old: "64"}) == f"{old}: {workload} does not read it; use {new}"


@pytest.mark.parametrize("workload", ["deepspeed_bert", "bing_bert"])
def test_a_value_that_was_renamed_is_refused_with_its_new_name(workload):
    name, old = f"{workload}_launcher", "gang"
    assert refusal(workload, **{name: old}) == f"{name}={old}: use {name}=job"


@pytest.mark.parametrize("workload", ["deepspeed", "deepspeed_bert", "bing_bert"])
def test_a_value_that_was_renamed_is_replaced_by_the_default(workload):
    specs = yaml.safe_load((ROLES / workload / "meta/argument_specs.yml").read_text())["argument_specs"]
    option = specs["main"]["options"][f"{workload}_launcher"]
    assert (f"{workload}_launcher", "gang") in parameters.RENAMED_VALUES
    assert option["default"] == "job"
    assert "gang" not in option["choices"] and "job" in option["choices"]


def test_both_workloads_together_have_their_own_variables():
    known = parameters.Known(load_workloads([str(ROLES)]), {}, VARIABLES)
    given = {
        "workload": "deepspeed_bert,bing_bert",
        "deepspeed_bert_samples": "64",
        "bing_bert_samples": "64",
    }
    assert parameters.read(["bench"], given, given, known)["workload"] == ["deepspeed_bert", "bing_bert"]
