# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""scripts/bench --survey: what AWX asks for is what the playbooks and roles take, in AWX's own form."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.scalebook.plan.parameters import PLAYBOOKS, rows_of

ROOT = Path(__file__).resolve().parents[3]
SPECS = {path.parents[1].name: path for path in ROOT.glob("roles/*/meta/argument_specs.yml")}
WORKLOADS = sorted(path.parents[1].name for path in ROOT.glob("roles/*/meta/workload.yml"))
# As AWX's description of survey_spec has them.
TYPES = {"text", "textarea", "password", "integer", "float", "multiplechoice", "multiselect"}
FIELDS = "question_name question_description variable type required default choices min max".split()


def printed(*words):
    argv = [sys.executable, ROOT / "scripts/bench", "--survey", *words]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def questions(*words):
    done = printed(*words)
    assert done.returncode == 0, done.stderr
    survey = json.loads(done.stdout)
    assert list(survey) == ["name", "description", "spec"]
    return {each["variable"]: each for each in survey["spec"]}


@pytest.mark.parametrize("playbook", PLAYBOOKS)
def test_every_parameter_of_a_playbook_is_asked_for_with_its_choices(playbook):
    asked = questions(playbook)
    rows = rows_of([playbook])
    assert list(asked) == list(rows)
    with_choices = {name: list(row.choices) for name, row in rows.items() if row.choices}
    assert {name: asked[name]["choices"] for name in with_choices} == with_choices
    assert all(list(each) == FIELDS and each["type"] in TYPES for each in asked.values())


def test_every_variable_of_every_role_is_asked_for_with_its_choices():
    options = {}
    for path in SPECS.values():
        for entry in yaml.safe_load(path.read_text())["argument_specs"].values():
            options |= entry.get("options") or {}
    asked = questions("bench", *SPECS)
    assert set(asked) == set(options) | set(rows_of(["bench"]))
    with_choices = {
        name: list(map(str, each["choices"])) for name, each in options.items() if "choices" in each
    }
    assert {name: asked[name]["choices"] for name in with_choices} == with_choices
    numbers = {name: each for name, each in options.items() if each.get("type") in ("int", "float")}
    defaults = {name: each["default"] for name, each in numbers.items() if "default" in each}
    assert {name: asked[name]["default"] for name in defaults} == defaults


@pytest.mark.parametrize("playbook", ["bench", "provision", "acceptance"])
def test_awx_takes_each_default_as_an_answer(playbook):
    """It refuses a default that is none of the choices, and of several choices takes lines."""
    for each in questions(playbook, "torch_gpt2").values():
        lines = str(each["default"]).splitlines()
        assert not each["choices"] or set(lines) <= set(each["choices"]), each
        assert each["type"] != "integer" or each["default"] == "" or isinstance(each["default"], int), each


def test_workloads_and_stacks_are_those_that_are_there():
    asked = questions("bench")
    assert (asked["workload"]["type"], asked["workload"]["choices"]) == ("multiselect", WORKLOADS)
    assert "dlperf2020" in asked["stack_name"]["choices"]


def test_what_is_switched_on_or_off_is_a_choice_and_one_number_a_number():
    asked = questions("bench")
    assert (asked["plan_only"]["type"], asked["plan_only"]["choices"]) == (
        "multiplechoice",
        ["true", "false"],
    )
    assert (asked["repeats"]["type"], asked["nodes"]["type"]) == ("integer", "text")


@pytest.mark.parametrize(
    ("word", "said"), [("nights", "allowed are bench, "), ("bench ../x", "no such role")]
)
def test_what_is_not_there_is_refused(word, said):
    done = printed(*word.split())
    assert done.returncode == 1 and said in done.stderr
