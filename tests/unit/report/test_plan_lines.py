# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The plan has the language that was asked for, down to why cases are skipped."""

import re

import pytest
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.plan import matrix
from ansible.module_utils.scalebook.plan.largest_batch import Outcome
from ansible.module_utils.scalebook.report.plan_lines import describe, describe_devices, why_nothing_runs
from cases import cluster, machine, read_parameters
from chinese import faults
from declared import workload

CHINESE = Wording("zh")
WORKLOAD = workload()


def planned(given, nodes=2, device="gpu", **outcome):
    """Return the plan of a campaign on a cluster; `outcome` is what becomes of a search run, by its batch."""

    def became(_campaign, case):
        batch = int(re.search(r"-b(\d+)-", case)[1])
        return Outcome("ok" if batch <= outcome["fits"] else "oom", None) if outcome else None

    parameters = read_parameters({"device": device, **given}, trainer=WORKLOAD)
    return matrix.plan(parameters, {"trainer": WORKLOAD}, cluster(nodes), device, outcome=became)


def in_chinese(*arguments, **options):
    """Return the lines of a plan in Chinese, which has no English phrase and no wrong mark or blank."""
    lines = describe(*arguments, **options, wording=CHINESE).splitlines()
    assert faults(lines) == []
    return lines


def test_the_plan_tells_its_runs_and_what_is_skipped_in_chinese():
    made = planned({"nodes": "1,2", "gpus": 8, "dtype": "fp32,fp16", "repeats": 2}, device="cpu")
    head, *lines = in_chinese(made, [(made["cases"][0]["name"], 1)])
    assert head == f"评测 {made['campaign']}：2 个用例 × 2 次重复 = 4 次运行，已测 1 次"
    assert lines == [
        "  运行     1n8g  b16   fp32  全局 batch：128（已测 1/2）",
        "  运行     2n8g  b16   fp32  全局 batch：256",
        "  跳过  1n8g,2n8g  b16   fp16  fp16 不能在 cpu 上运行；-e force=true 可强制尝试",
        "  注意：计划中没有 1n1g，因此没有加速比",
    ]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        ({}, "预计用时：未知，此前没有测过这些用例"),
        ({0: 60, 1: 90}, "预计用时：4 次运行约 5 分钟，按此前的运行估计"),
        ({0: 10}, "预计用时：2 次运行不到一分钟，按此前的运行估计；另有 2 次运行此前没有测过"),
    ],
)
def test_the_estimate_is_shown_in_chinese(seconds, said):
    made = planned({"nodes": "1,2", "gpus": 1, "repeats": 2})
    known = {made["cases"][place]["name"]: value for place, value in seconds.items()}
    assert in_chinese(made, seconds=known)[-1] == f"  {said}"


def test_a_search_is_shown_in_chinese():
    before, after = planned({"bsz": "max", "nodes": "1,2"}), planned({"bsz": "max", "nodes": "1"}, fits=48)
    assert "各最多 16 次短时运行（bsz_max_runs）；已做 0 次短时运行" in in_chinese(before)[1]
    assert "最大 batch 为 48，56 在 1n1g 上内存不足；已做" in in_chinese(after)[1]


def test_the_devices_are_shown_in_chinese():
    gpus = [{"gpus": [{"name": "NVIDIA H200"}] * 8}]
    assert describe_devices("gpu", cluster(2), gpus, CHINESE) == "设备 gpu（每个节点 8 × NVIDIA H200）"
    assert describe_devices("gpu", machine(2, 4), [], CHINESE) == "设备 gpu（每台机器 4 × GPU）"
    assert describe_devices("cpu", machine(2, 4), [], CHINESE) == "设备 cpu（每个节点 4 个 worker）"


def test_why_nothing_runs_is_shown_in_chinese():
    made = planned({"dtype": "fp16"}, device="cpu")
    why = "fp16 不能在 cpu 上运行；-e force=true 可强制尝试"
    assert why_nothing_runs(made, CHINESE) == f"没有可运行的用例。trainer：{why}。"
