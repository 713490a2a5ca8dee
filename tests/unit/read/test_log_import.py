# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The module log_import: a directory of logs gets records and a plan, or a reason."""

import log_import
import pytest
from ansible.module_utils.scalebook.contracts import message
from ansible.module_utils.scalebook.control.log_import import summary
from dlperf_logs import WORKLOAD, log_of_speed
from imports import workloads
from run_module import call_module


def run(**args):
    return call_module(log_import, **{"workload": WORKLOAD.as_data(), **args})


@pytest.fixture
def tree(tmp_path):
    folder = tmp_path / "bz64" / "1n1g"
    folder.mkdir(parents=True)
    (folder / "bert_b64_fp32_1.log").write_text(log_of_speed(128.0))
    (folder / "bert_b64_fp32_2.log").write_text("")
    return {"logs": f"{folder.parent}/", "out": str(tmp_path / "out"), "name": "tf2_bert"}


def test_a_tree_gets_records_and_a_plan(tree, tmp_path):
    result = run(**tree)
    assert (result["counts"], result["out"]) == ({"ok": 1, "incomplete": 1}, tree["out"])
    assert [entry["status"] for entry in result["refused"]] == ["incomplete"]
    out = tmp_path / "out"
    assert len(list(out.glob("runs/*/*/result.json"))) == 2 and (out / "plan.json").exists()


def test_a_log_of_another_workload_says_which_one_reads_it(tree):
    declared = {name: each.as_data() for name, each in workloads().items()}
    result = run(**{**tree, "name": "torch_bert", "workload": declared["torch_bert"], "workloads": declared})
    assert result["counts"] == {"incomplete": 2}
    assert result["refused"][0]["reason"].endswith("; workload=tf2_bert reads it")


def test_the_terminal_shows_an_import_in_the_language_that_was_asked_for(tree):
    first, *others = run(**tree, report_language="zh")["display"].splitlines()
    assert first == f"{tree['logs']} 中的 2 个日志有 1 个有效"
    assert others == ["bz64/1n1g/bert_b64_fp32_2.log 为空，需要到第 120 步"]


def test_check_mode_counts_and_writes_nothing(tree, tmp_path):
    result = run(**tree, check=True)
    assert result["counts"] == {"ok": 1, "incomplete": 1}
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("field", "fixed"),
    [("xla", True), ("devices", False)],
)
def test_logs_of_other_cases_than_their_names_say_get_the_fix(field, fixed):
    values = {"file": "1n1g/a.log", "name": "it", "value": "1", "field": field, "wanted": 2}
    reason = message("reason.other-value", **values)
    result = {"counts": {"refused": 1}, "refused": [{"source": "1n1g/a.log", "reason": reason}]}
    assert ("Fix: give what the names of logs do not say" in summary(result, "logs", True)) is fixed


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"logs": "/y", "out": "/z"}, "missing required arguments: name"),
        ({"logs": "/nowhere", "out": "/z", "name": "x"}, "/nowhere: No such file or directory"),
    ],
)
def test_wrong_arguments_are_refused(args, message):
    result = run(**args)
    assert result["failed"] and result["msg"].startswith(message)


def test_a_tree_without_logs_is_refused_with_a_file_that_is_there(tmp_path):
    (tmp_path / "bz64" / "bz32").mkdir(parents=True)
    result = run(logs=str(tmp_path / "bz64"), out=str(tmp_path / "out"), name="tf2_bert")
    assert result["msg"].endswith("_<i>.log; bz64/bz32 is not named <N>n<G>g")
