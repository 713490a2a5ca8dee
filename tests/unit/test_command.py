# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The command that measures a campaign again."""

from pathlib import Path

import pytest
from ansible.module_utils.scalebook.command import LEFT_OUT, command
from ansible.module_utils.scalebook.plan import parameters
from ansible.module_utils.scalebook.report.load import load_campaign

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


def test_every_parameter_that_report_yml_takes_too_is_left_out_but_the_stack():
    shared = {row.name for row in parameters.TABLE if {"bench", "report"} <= set(row.playbooks)}
    assert {*LEFT_OUT, "stack_name"} == {"plan_only", *shared}


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
