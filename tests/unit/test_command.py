# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The command that measures a campaign again."""

from pathlib import Path

import pytest
from ansible.module_utils.scalebook.command import LEFT_OUT, Measured, command, commands
from ansible.module_utils.scalebook.plan import parameters
from ansible.module_utils.scalebook.store.load import load_campaign

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def test_an_earlier_plan_gives_all_settings_of_its_cases():
    plan = load_campaign(RESULTS / "h200x4-2026-11-22/fsdp").plan
    assert command(plan) == (
        'ansible-playbook -i inventory/local bench.yml -e "nodes=1 gpus=1,2,4 bsz=1024 dtype=bf16 xla=true '
        "repeats=3 accumulation=1 model=base workload=torch_bert device=gpu torch_bert_seq_length=128 "
        "torch_bert_predictions=20 torch_bert_optimizer=adamw torch_bert_attention=auto "
        "torch_bert_layer=auto torch_bert_compile_mode=default torch_bert_tf32=true "
        "torch_bert_dropout=0.1 torch_bert_clip=1.0 "
        'torch_bert_parallel=fsdp torch_bert_bucket_mb=100"'
    )


def test_a_plan_of_today_gives_the_variables_that_were_given():
    case = {"workload": "torch_bert", "settings": {"parallel": "fsdp", "clip": 1.0}}
    plan = {"parameters": {"bsz": [64, 128]}, "cases": [case], "variables": {"torch_bert_parallel": "fsdp"}}
    assert command(plan) == 'ansible-playbook bench.yml -e "bsz=64,128 torch_bert_parallel=fsdp"'


def test_what_names_the_campaign_or_changes_its_report_alone_is_left_out():
    given = {"bsz": [64], "campaign": "night1", "plan_only": False, "report_language": "zh", "compare": None}
    assert command({"parameters": given}) == 'ansible-playbook bench.yml -e "bsz=64"'


def test_every_parameter_that_report_yml_takes_too_is_left_out():
    shared = {row.name for row in parameters.TABLE if {"bench", "report"} <= set(row.playbooks)}
    assert set(LEFT_OUT) == {"plan_only", "campaign", *shared}


def test_settings_that_differ_between_cases_are_left_out():
    cases = [{"workload": "tf2_bert", "settings": {"version": each}} for each in ("2.3", "2.20")]
    assert command({"parameters": {"bsz": [64]}, "cases": cases}) == 'ansible-playbook bench.yml -e "bsz=64"'


def test_the_limit_of_a_search_is_in_the_command_of_a_search_alone():
    given = {"bsz": [64], "bsz_max_runs": 16}
    assert command({"parameters": given}) == 'ansible-playbook bench.yml -e "bsz=64"'
    given = {"bsz": ["max"], "bsz_max_runs": 16}
    assert command({"parameters": given}) == 'ansible-playbook bench.yml -e "bsz=max bsz_max_runs=16"'


def test_an_import_has_no_command():
    assert command({"source": "bz64"}) == ""


@pytest.mark.parametrize(
    ("value", "word"),
    [
        ("a b", "\"model='a b'\""),
        ('x" ; rm -rf ~', "'model='\"'\"'x\" ; rm -rf ~'\"'\"''"),
        ("$HOME", "'model='\"'\"'$HOME'\"'\"''"),
    ],
)
def test_a_value_cannot_leave_the_quotes_of_the_command(value, word):
    assert command({"parameters": {"model": value}}) == f"ansible-playbook bench.yml -e {word}"


PIPE = '{{ lookup("pipe", "id") }}'


@pytest.mark.parametrize("value", [PIPE, "{% raw %}", "{# none #}"])
def test_a_value_that_ansible_would_take_for_a_template_is_left_out(value):
    given = {"model": value, "bsz": [64]}
    assert command({"parameters": given}) == 'ansible-playbook bench.yml -e "bsz=64"'


def test_a_name_that_is_no_variable_is_left_out():
    given = {"x=1 campaign": "night", "bsz": [64]}
    assert command({"parameters": given}) == 'ansible-playbook bench.yml -e "bsz=64"'


CASE = {
    **{"name": "a", "workload": "torch_bert", "model": "base", "device": "gpu", "dtype": "fp16"},
    **{"xla": False, "bsz": 64, "accumulation": 1, "warmup": 20, "window": 100, "nodes": 1, "gpus": 1},
}
PLAN = {"parameters": {"bsz": [64]}}


def made(*cases, own=(), plan=PLAN, runs=3):
    return [each["command"] for each in commands(plan, [Measured(each, runs, own) for each in cases])]


def test_cases_that_are_all_combinations_share_a_command():
    cases = [{**CASE, "gpus": gpus, "bsz": bsz} for gpus in (1, 2) for bsz in (64, 32)]
    [line] = made(*cases)
    assert " bsz=32,64 nodes=1 gpus=1,2 repeats=3 " in line


def test_cases_of_which_a_combination_was_not_measured_have_commands_of_their_own():
    assert len(made(CASE, {**CASE, "gpus": 2}, {**CASE, "bsz": 32})) == 2


def test_cases_of_several_models_share_a_command():
    [line] = made(CASE, {**CASE, "model": "large"})
    assert " model=base,large " in line


def test_topologies_that_nodes_and_gpus_do_not_give_are_named():
    [line] = made(CASE, {**CASE, "nodes": 2, "gpus": 8})
    assert " topology=1n1g,2n8g " in line


@pytest.mark.parametrize("setting", [{"parallel": "fsdp"}, {"own_data": "/data"}])
def test_cases_with_other_settings_have_commands_of_their_own(setting):
    assert len(made(CASE, {**CASE, "settings": setting})) == 2


def test_a_setting_of_a_record_that_is_a_template_is_left_out():
    [line] = made({**CASE, "settings": {"own_data": PIPE}})
    assert "own_data" not in line


def test_what_a_case_does_not_decide_comes_from_the_command_of_its_records():
    own = 'ansible-playbook -i site bench.yml -e "workload=torch_bert stack_name=modern torch_bert_python=/p"'
    [line] = made(CASE, own=[own], plan={"inventory": "other", "parameters": {"stack_name": "dlperf2020"}})
    assert line.startswith("ansible-playbook -i site bench.yml ")
    assert "stack_name=modern" in line
    assert "torch_bert_python=/p" in line


def test_a_variable_of_another_workload_is_left_to_its_own_cases():
    own = 'ansible-playbook bench.yml -e "workload=torch_bert,torch_gpt2 torch_gpt2_clip=2.0"'
    assert "torch_gpt2" not in made(CASE, own=[own])[0]


def test_an_import_and_a_campaign_that_does_not_say_how_it_was_made_have_none():
    assert made(CASE, plan={"source": "logs"}) == made(CASE, plan={}) == []


def test_a_search_for_the_largest_batch_has_a_command_without_cases():
    search = {**CASE, "points": ["1n1g", "1n2g"], "limit": 9, "trials": [], "settings": {}}
    plan = {**PLAN, "searches": [search]}
    assert [each["cases"] for each in commands(plan, [Measured(CASE, 3)])] == [["a"], []]
    assert " bsz=max nodes=1 gpus=1,2 repeats=1 " in made(CASE, plan=plan)[1]
