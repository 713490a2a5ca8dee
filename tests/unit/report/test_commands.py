# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""«Repeat it» repeats: the commands of a report, planned, measure its cases and nothing else."""

from __future__ import annotations

import json
from collections import Counter

import measured
import pytest
from ansible.module_utils.scalebook.evaluate import document as evaluation
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.pages.blocks import Fold
from ansible.module_utils.scalebook.report import first_screen, render
from ansible.module_utils.scalebook.report.view import View
from ansible.module_utils.scalebook.store.load import load_campaign
from ansible.module_utils.scalebook.store.source import open_source
from planned import ROOT, identity, known, runs_of
from report_records import campaign, case, record

RESULTS = ROOT / "docs" / "results"
CAMPAIGNS = [RESULTS / name for name in measured.campaigns()]
REFUSED = {"oneflow_wide_deep"}
"""Its campaign has a warm-up of two steps, which its declaration refuses since it prints every tenth step."""


def planned(commands):
    """Return how many runs the commands plan of each case."""
    return Counter(case for each in commands for case, _repeat in runs_of(each["command"], REFUSED))


def recorded(directory):
    source = open_source(directory)
    records = [json.loads(source.read(file)) for file in source.records()]
    return Counter(identity(each["case"]) for each in records)


@pytest.mark.parametrize("directory", CAMPAIGNS, ids=lambda path: str(path.relative_to(RESULTS)))
def test_the_commands_of_a_committed_campaign_measure_its_cases_and_no_others(directory):
    made = build_results(load_campaign(directory), known().workloads)
    assert planned(made["commands"]) == recorded(directory)


def document(tmp_path, *records, **plan):
    return build_results(load_campaign(campaign(tmp_path, records, **plan)), known().workloads)


def made_by(command, **fields):
    return record(case(**fields), 1, 100.0, command=command)


BSZ = 'ansible-playbook -i site bench.yml -e "workload=tf2_bert stack_name=modern bsz=64 nodes=1 gpus=1"'


def test_a_campaign_that_one_command_made_has_it_on_top(tmp_path):
    made = document(tmp_path, made_by(BSZ))
    assert (
        "**Repeat it** \n\n```\nansible-playbook" in render.files(made, str(ROOT / "templates"))["report.md"]
    )
    assert made["commands"][0]["command"].startswith("ansible-playbook -i site bench.yml -e ")


def test_several_commands_stand_with_their_cases_and_none_on_top(tmp_path):
    loops = {"settings": {"steps_per_loop": 10}, "name": "loops"}
    made = document(tmp_path, made_by(BSZ), made_by(f'{BSZ[:-1]} tf2_bert_steps_per_loop=10"', **loops))
    files = render.files(made, str(ROOT / "templates"))
    assert "**Repeat it: 2 commands**" in files["report.md"]
    assert "<summary>Repeat it: 2 commands</summary>" in files["report.html"]
    [fold] = [block for block in first_screen.blocks(View(made)) if isinstance(block, Fold)]
    cases = {each.title: "steps_per_loop=10" in each.text for each in fold.blocks}
    assert cases == {
        "tf2_bert base fp32 b64 1n1g": False,
        "steps_per_loop=10 1n1g": True,
    }


def test_a_plan_with_another_inventory_does_not_change_the_command_of_finished_runs(tmp_path):
    made = document(tmp_path, made_by(BSZ), inventory="elsewhere", parameters={"bsz": [32]})
    assert [" -i site " in each["command"] for each in made["commands"]] == [True]


def test_a_planned_case_without_a_run_is_in_no_command(tmp_path):
    plan = {"parameters": {"bsz": [32, 64]}, "cases": [case(), case(bsz=32)]}
    [made] = document(tmp_path, record(case(), 1, 100.0), **plan)["commands"]
    assert " bsz=64 " in made["command"]


def test_the_evaluation_has_the_commands_of_the_reports():
    tops = [RESULTS / f"h200x2-2026-11-22/{name}" for name in ("ddp", "fsdp")]
    results = [build_results(load_campaign(top), known().workloads) for top in tops]
    ddp, fsdp = (evaluation.campaign_of(each, known().workloads)["commands"] for each in results)
    assert "torch_bert_parallel=fsdp" in fsdp[0]
    assert "fsdp" not in ddp[0]


@pytest.mark.parametrize("name", ["h200x2-2026-11-25/torch_resnet50", "h200x4-2026-11-26/tf2_bert"])
def test_the_evaluation_makes_the_commands_of_a_report_that_has_none(name):
    results = build_results(load_campaign(RESULTS / name), known().workloads)
    results.pop("commands")
    commands = evaluation.campaign_of(results, known().workloads)["commands"]
    assert planned([{"command": each} for each in commands]) == recorded(RESULTS / name)
